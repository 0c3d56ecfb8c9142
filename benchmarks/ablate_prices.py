"""What each price of TPUs changes in the plans that the planner chooses.

    python -m benchmarks.ablate_prices                         # plan without each price: about 15 minutes of CPU time
    python -m benchmarks.ablate_prices --only wide             # the cases whose title has this text
    python -m benchmarks.ablate_prices --compile 8x8 --only "wide & deep, 64" --price "rows of"  # ask libtpu's compiler
    python -m benchmarks.ablate_prices --show                  # write the tables of benchmarks/results

A price is taken out of the cost model, the step is planned on several grids of the chips, and the plan that then looks
fastest is priced by the full model: its ratio to the plan of the full model says what the price is worth. Every case is
an Adam step with all layouts free (`benchmarks.auto_absent`). Figures are lines of a file, so that a run that is broken
off goes on where it was. Needs the extra `aot`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from types import SimpleNamespace
from unittest import mock

import jax

from benchmarks import auto_absent
from benchmarks.auto import by_sbpjax, figures
from sbpjax._core.planner import problem
from sbpjax._core.planner.graph import build
from sbpjax._core.planner.prices import local_work
from sbpjax._core.planner.prices.cost import CostModel
from sbpjax._core.planner.problem import Problem, total_us
from sbpjax._core.planner.program import _plan, _search
from sbpjax.graph.auto.planning_problem import PlanningProblem

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
SMALL, LARGE = "v5p:2x2x2", "v5p:4x4x4"
# title → machine, model and its sizes, grids
CASES = {
    "GPT 2 × 2048, 8 chips": (SMALL, "gpt", {}, ("8", "2x4", "4x2")),
    "GPT 2 × 2048, 64 chips": (LARGE, "gpt", {}, ("64", "32x2")),
    "wide & deep, 8 chips": (SMALL, "wide", {}, ("8", "2x4", "4x2")),
    "wide & deep, 64 chips": (LARGE, "wide", {}, ("64", "32x2", "8x8")),
    "GPT 2 × 8192, 8 chips": (SMALL, "gpt", {"width": 8192}, ("8", "2x4")),
    "GPT 80 × 8192 (65B), 64 chips": (LARGE, "gpt", {"layers": 80, "width": 8192}, ("8x8",)),
}


@dataclasses.dataclass(frozen=True)
class Price:
    """How a price is taken out.

    Attributes:
        change: of the cost model.
        patches: ``(module or class, name, what stands there instead)`` while a plan is made.
    """

    change: Callable = lambda model: model
    patches: tuple = ()


def without(*patches) -> Price:
    """Return the removal of what is patched."""
    return Price(patches=patches)


def model_with(**fields) -> Price:
    """Return the removal by other fields of the cost model."""
    return Price(lambda model: dataclasses.replace(model, **fields))


def _no_bytes(*_) -> float:
    return 0.0


def _held_only(windows, codes, indices, index_codes, sizes) -> float:
    return local_work._local_bytes(windows, codes, sizes)


def _read_and_written(eqn, ins, outs, sizes) -> float:
    ends = (*zip(eqn.invars, ins, strict=True), *zip(eqn.outvars, outs, strict=True))
    return sum(local_work._local_bytes(v, c, sizes) for v, c in ends)


def _no_torus(model: CostModel) -> CostModel:
    links = tuple(dataclasses.replace(link, as_all_reduce=()) for link in model.links)
    return dataclasses.replace(model, links=links)


# price → what takes it out
PRICES = {
    "all prices of tiles": model_with(tiles=False),
    "blocks that a device touches": without((problem, "local_bytes", lambda *_: None)),
    "rows of tables in tiles": without(
        (local_work, "_looked_up", _held_only),
        (local_work, "_row_addition_bytes", _read_and_written),
        (local_work, "_transposed_bytes", _no_bytes),
    ),
    "narrow rows lie across tiles": without(
        (local_work, "_READ_NARROW", local_work._READ), (local_work, "_ADDED_NARROW", 2)
    ),
    "single elements are no narrow rows": without((local_work, "_are_rows", lambda *_: True)),
    "the copy from which a transposed table is looked up": without((local_work, "_transposed_bytes", _no_bytes)),
    "that copy in bfloat16": without((local_work, "BF16_BYTES", 4)),
    "sums into a transposed table made in rows": without((local_work, "is_added_in_rows", lambda *_: False)),
    "inputs read and new state written": without((problem, "stored_operands", lambda _: {})),
    "memory that collectives touch": without((CostModel, "_traffic_bytes", _no_bytes)),
    "all-reduces over a whole torus": Price(_no_torus),
}


def options_of(machine: str, model: str, sizes: dict) -> SimpleNamespace:
    """Return the options of `benchmarks.auto_absent` for a case."""
    usual = {"layers": 2, "width": 2048, "time": 2048, "vocab": 32768, "batch": None, "rows": 4_000_000}
    return SimpleNamespace(machine=machine, model=model, latency=False, **{**usual, **sizes})


def planned(case: PlanningProblem, graph, price: str) -> tuple:
    """Return what is chosen without a price, and its time by the prices that are left."""
    removal = PRICES[price] if price else Price()
    with contextlib.ExitStack() as stack:
        for patch in removal.patches:
            stack.enter_context(mock.patch.object(*patch))
        best, us, _ = _search(Problem(graph, case.sizes, removal.change(case.cost)))
    return best, us


def plans(title: str, grid: str, prices: list[str]):
    """Yield for each price its case, the plan without it, and a line of figures; without a name, the full model."""
    machine, model, sizes, _ = CASES[title]
    case, _ = auto_absent.case_of(options_of(machine, model, sizes), f"found@{grid}")
    codes = tuple(None if x.is_free else x.own for x in case.inputs)
    graph = build(case.program, codes, case.out_pins, case.free, case.everywhere)
    full = Problem(graph, case.sizes, case.cost)
    for price in prices:
        best, own_us = planned(case, graph, price)
        us = total_us(full, best)
        plan = _plan(full, best, codes, case.out_pins, 0.0, us)
        line = {"case": title, "grid": grid, "price": price, "own_us": own_us, "us": us, "bytes": int(plan.bytes)}
        yield case, plan, {**line, "plan": digest(plan)}


def digest(plan) -> str:
    """Return what two plans share if they are the same."""
    text = repr(
        (plan.in_codes, plan.strategies, plan.out_codes, sorted((i, b.strategies) for i, b in plan.bodies.items()))
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def plan_all(title: str, into: str, prices: list[str]) -> None:
    """Plan a case on its grids, by the full model and without each price, and write a line for each."""
    known = {(e["case"], e["grid"], e["price"]) for e in read(into)}
    for grid in CASES[title][3]:
        missing = [p for p in ("", *prices) if (title, grid, p) not in known]
        for _, _, line in plans(title, grid, missing) if missing else ():
            write(line, into)


def compile_one(title: str, grid: str, price: str, into: str) -> None:
    """Compile the plan of a case without a price to the end, and write a line of what the compiler says."""
    for case, plan, line in plans(title, grid, [price]):
        _, estimates = by_sbpjax(case, plan, figures)
        interconnect_us = estimates.bytes / case.cost.interconnect_bytes_per_s * 1e6
        found = {
            "optimal_us": estimates.seconds * 1e6,
            "interconnect_us": interconnect_us,
            "compiled": estimates.bytes,
            "memory": estimates.memory,
        }
        write({**line, **found}, into)


def write(line: dict, into: str) -> None:
    """Append a line to the file of results."""
    print(json.dumps(line), flush=True)
    with open(into, "a") as file:
        file.write(json.dumps(line) + "\n")


def read(path: str) -> list[dict]:
    """Return the lines of a file of results."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


def fastest(lines: list[dict]) -> dict:
    """Return the plan that is taken of those on several grids, as `placement.auto` does: more axes must win by 1 %."""
    best = lines[0]
    for line in lines[1:]:
        more = line["grid"].count("x") > best["grid"].count("x")
        best = line if line["own_us"] < best["own_us"] * (0.99 if more else 1.0) else best
    return best


def tables(lines: list[dict], heading: str) -> str:
    """Return the tables of a file of results in Markdown."""
    parts = [f"# {heading}\n", NOTE]
    for title in CASES:
        mine = [e for e in lines if e["case"] == title and "optimal_us" not in e]
        full = {e["grid"]: e for e in mine if not e["price"]}
        if not full:
            continue
        best = fastest(list(full.values()))
        estimates = f"[{best['grid']}], {best['us'] / 1e3:.2f} ms, {best['bytes'] / 1e6:.0f} MB"
        parts.append(f"\n## {title}\n\nFull model: {estimates}. Grids: {', '.join(f'[{g}]' for g in full)}.\n")
        parts.append("| without | chosen grid | time | bytes | time on each grid |")
        parts.append("|---|---|---|---|---|")
        for price in dict.fromkeys(e["price"] for e in mine if e["price"]):
            given = [e for e in mine if e["price"] == price]
            taken = fastest(given)
            by_grid = {e["grid"]: f"{e['us'] / full[e['grid']]['us']:.3f}" for e in given}
            each = ", ".join(by_grid.get(grid, "-") for grid in full)
            shares = f"{taken['us'] / best['us']:.3f} | {taken['bytes'] / best['bytes']:.3f}"
            parts.append(f"| {price} | [{taken['grid']}] | {shares} | {each} |")
    estimates = [e for e in lines if "optimal_us" in e]
    if estimates:
        parts.append(COMPILED)
        parts.append(
            "| case | grid | without | modelled, ms | `optimal_seconds`, ms | with the interconnect, ms | MB |"
        )
        parts.append("|---|---|---|---|---|---|---|")
        for e in estimates:
            cells = (e["case"], f"[{e['grid']}]", e["price"] or "nothing", f"{e['us'] / 1e3:.2f}")
            whole = (e["optimal_us"] + e["interconnect_us"]) / 1e3
            told_ms = f"{e['optimal_us'] / 1e3:.3f} | {whole:.3f} | {e['compiled'] / 1e6:.0f}"
            parts.append(f"| {' | '.join(cells)} | {told_ms} |")
    return "\n".join(parts) + "\n"


HEADING = "Prices of TPUs: what each changes in plans"
NOTE = """Made by `python -m benchmarks.ablate_prices`: v5p, jax 0.10.2, modelled times. Time and bytes are those of
the plan that is chosen without a price, by the full model, as shares of the full model's own plan. The chosen grid is
the one that looks fastest without the price; the last column has the ratio of time on every grid."""

COMPILED = """
## What libtpu's compiler says of some of these plans

`optimal_seconds`, which counts no wire, and with the compiled bytes at the links' speed.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="the cases whose title has this text")
    parser.add_argument("--price", help="the prices whose name has this text; for --compile the full model without it")
    parser.add_argument("--into", default="ablate_prices.jsonl", help="the file of results")
    parser.add_argument("--compile", metavar="GRID", help="compile the plan on this grid")
    parser.add_argument(
        "--show", metavar="NAME", nargs="?", const="tpu_prices", help="write the tables to results/NAME.md"
    )
    options = parser.parse_args()
    if options.show:
        os.makedirs(RESULTS, exist_ok=True)
        with open(os.path.join(RESULTS, f"{options.show}.md"), "w") as file:
            file.write(tables(read(options.into), HEADING))
        return
    prices = [p for p in PRICES if (options.price or "") in p]
    for title in CASES:
        if options.select in title:
            with jax.enable_x64(False):
                if options.compile:
                    compile_one(title, options.compile, prices[0] if options.price else "", options.into)
                else:
                    plan_all(title, options.into, prices)


if __name__ == "__main__":
    main()
