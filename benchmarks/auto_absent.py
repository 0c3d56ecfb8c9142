"""Auto parallelism by the word of compilers for absent machines: found plans, hand plans, and how they rank.

    python -m benchmarks.auto_absent v5p:2x2x2 --model gpt --into gpt.jsonl     # plan, compile, show
    python -m benchmarks.auto_absent show gpt.jsonl                             # only show

It needs the extra `aot`. Every plan has a process of its own with a time limit, and what a compiler has said is a line
of the file at once: a run that is broken off goes on where it was, and a second run does what is missing. Plans are
named by their strategy and grid: ``dp``, ``tp``, ``dp+tp@4x2``; ``found`` is what the planner chooses. A hand plan is
compiled by XLA's own partitioner, and as sbpjax compiles the planner's plan with the same pins; the found plan only as
sbpjax does it.

With ``--early`` the TPU compiler is stopped when its passes are done, before it makes machine code: 3 s of CPU time for
a GPT instead of 100, bytes as compiled, memory as its buffers are placed, no `optimal_seconds`.

The TPU compiler's `optimal_seconds` prices products and the memory of the chip, and a collective as the memory that it
reads and writes: 64 MB all-reduced over 8 chips cost 163 µs with what is around it, which is 384 MB of memory traffic
and nothing for the interconnect. So plans are compared by it, and by its sum with the compiled bytes at the links'
speed.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict

import jax
import numpy as np

from benchmarks import auto as five
from sbpjax._core.compiler import hlo
from sbpjax._core.inspect.auto.baseline import hand_pins
from sbpjax._core.inspect.auto.cost_summary import totals
from sbpjax._core.planner.prices.cost import PRESETS
from sbpjax._core.planner.prices.links import of_placement
from sbpjax.graph.auto.planning_problem import PlanningProblem
from sbpjax.sbp.placement import placement
from tests import models_jax

PLANS = "found,dp,zero1,fsdp,tp,dp+tp"
COMPILERS = ("sbpjax", "partitioner")


def chips(machine: str) -> int:
    """Return how many devices a machine has."""
    return int(np.prod([int(n) for n in machine.partition(":")[2].split("x")]))


def grid_of(machine: str, plan: str) -> list[int]:
    """Return the grid of a plan: what stands behind ``@``, else one axis, or two of which the inner has two ranks."""
    name, _, grid = plan.partition("@")
    if grid:
        return [int(n) for n in grid.split("x")]
    count = chips(machine)
    return [count // 2, 2] if "+" in name else [count]


def step_of(options) -> tuple[models_jax.Step, str]:
    """Return the training step that the options name, and its title."""
    count = chips(options.machine)
    if options.model == "gpt":
        batch = options.batch or count
        heads = options.width // 128
        step = models_jax.gpt(options.layers, batch, options.time, options.width, heads, options.vocab)
        sizes = f"{options.layers} layers, B{batch} T{options.time} D{options.width} V{options.vocab}"
        return five.in_bfloat16(step), f"GPT {sizes}, bfloat16"
    if options.model == "mlp":
        batch = options.batch or 2048 * count
        step = models_jax.mlp(batch, options.width, 4 * options.width, options.layers)
        return five.in_bfloat16(step), f"MLP of {options.layers} matrices, {batch} x {options.width}, bfloat16"
    batch = options.batch or 65536
    step = models_jax.wide_deep(options.rows, 64, 26, batch, 1024)
    return step, f"wide & deep, 26 ids of {options.rows} x 64, batch {batch}, hidden 1024, float32"


def case_of(options, plan: str) -> tuple[PlanningProblem, models_jax.Step]:
    """Return the subject on the grid of a plan, and the step in plain JAX."""
    where = placement.topology(options.machine, grid_of(options.machine, plan))
    cost = of_placement(where, PRESETS[options.machine.partition(":")[0]])
    cost = cost if options.latency else cost.with_latency(0.005)
    step, title = step_of(options)
    return five.problem(step, where, cost, f"{title}, {options.machine}"), step


# -- one plan ----------------------------------------------------------------------------------------------------------


def one(options, plan: str, missing: list[str]) -> None:
    """Plan and compile, and write a line of what each step gave."""
    with jax.enable_x64(False):
        case, step = case_of(options, plan)
        pins = None if plan.startswith("found") else hand_pins(case, plan.partition("@")[0])
        began = time.process_time()
        made = case.plan(pins)
        t = totals(case, made, plan)
        say(
            options,
            plan,
            "model",
            {**t.as_dict(), "interconnect_us": t.interconnect_us, "plan_s": time.process_time() - began},
        )
        for compiler in missing:
            judge = early_figures if options.early else five.figures
            if compiler == "sbpjax":
                text, found = five.by_sbpjax(case, made, judge)
            else:
                text, found = five.by_partitioner(case, step.fn, pins, judge)
            what = {"early": True} if options.early else {}
            say(options, plan, compiler, {**asdict(found), "wire_per_s": case.cost.interconnect_bytes_per_s, **what})
            if options.keep:
                with open(os.path.join(options.keep, f"{options.model}.{plan}.{compiler}.hlo"), "w") as file:
                    file.write(text)

    if options.early:
        sys.stdout.flush()
        os._exit(0)  # the compilers are still at work


def early_figures(lowered, peak: float) -> tuple[str, five.Figures]:
    """Return the text of a lowered program after the compiler's passes, and what it says; as `auto.figures`."""
    began = time.process_time()
    text, held = after_passes(lowered)
    return text, five.Figures(hlo.total_interconnect_bytes(text), None, held, 0, time.process_time() - began)


def after_passes(lowered, limit: float = 600.0) -> tuple[str, int]:
    """Return a lowered program's text after the compiler's passes, and the bytes that a device holds in it.

    The compiler goes on in a thread and cannot be stopped: call `os._exit` when all is said.

    Raises:
        TimeoutError: the passes took longer than ``limit`` seconds.
    """
    folder = tempfile.mkdtemp()
    options = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
    failed: list[BaseException] = []

    def work() -> None:
        try:
            lowered.compile(compiler_options=options)
        except BaseException as error:  # it is raised below, in the caller's thread
            failed.append(error)

    threading.Thread(target=work, daemon=True).start()
    began = time.monotonic()
    while time.monotonic() - began < limit:
        if failed:
            raise failed[0]
        time.sleep(0.3)
        reports = glob.glob(f"{folder}/*memory-usage-report.txt")
        if reports:
            time.sleep(1.0)  # it is written to its end
            report = max(reports, key=os.path.getsize)
            with open(report) as file:
                held = int(re.search(r"color=0\)\s*Total bytes: (\d+)", file.read()).group(1))
            with open(report.replace("-memory-usage-report", "")) as file:
                return file.read(), held
    raise TimeoutError(f"the compiler's passes took longer than {limit} s")


def say(options, plan: str, what: str, figures: dict) -> None:
    """Append a line to the file."""
    with open(options.into, "a") as file:
        file.write(json.dumps({"case": key(options), "plan": plan, "what": what, **figures}) + "\n")
    print(f"{plan:14} {what:12} {json.dumps(figures)}", flush=True)


def key(options) -> str:
    """Return what names a case: two cases may share a file."""
    sizes = {"gpt": ("layers", "batch", "time", "width", "vocab"), "mlp": ("layers", "batch", "width")}
    names = ("machine", "model", *sizes.get(options.model, ("batch", "rows")), "latency")
    return " ".join(f"{n}={getattr(options, n)}" for n in names)


# -- all of them -------------------------------------------------------------------------------------------------------


def every(options) -> None:
    """Run what is missing, a process per plan."""
    for plan in options.plans.split(","):
        known = read(options.into).get(key(options), {}).get(plan, {})
        wanted = ["sbpjax"] if plan.startswith("found") else options.by.split(",")
        missing = [c for c in wanted if c not in known or known[c].get("early") and not options.early]
        if not missing and "model" in known:
            continue
        for by in missing if options.early else [",".join(missing)]:
            call = [sys.executable, "-m", "benchmarks.auto_absent", *sys.argv[1:], "--one", plan, "--by", by]
            try:
                code = subprocess.run(call, timeout=options.limit, check=False).returncode
            except subprocess.TimeoutExpired:
                code = f"no answer within {options.limit} s"
            if code:
                print(f"{plan}: {code}", flush=True)


def read(path: str) -> dict[str, dict[str, dict[str, dict]]]:
    """Return what a file has: case → plan → compiler, or ``model`` → figures; later lines win."""
    found: dict = {}
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                entry = json.loads(line)
                plan = found.setdefault(entry.pop("case"), {}).setdefault(entry.pop("plan"), {})
                what = entry.pop("what")
                if not (entry.get("early") and what in plan and not plan[what].get("early")):
                    plan[what] = entry
    return found


def show(path: str) -> None:
    """Print a table per case, and the ratios that count."""
    for case, plans in read(path).items():
        print(f"\n{case}")
        print(f"{'':14} {'model ms':>9} {'computing':>9} {'planned MB':>10} {'memory MB':>9}", end="")
        print("".join(f" | {c + ' ms':>14} {'wire MB':>8} {'memory':>8} {'CPU s':>6}" for c in COMPILERS))
        for name, plan in sorted(plans.items(), key=lambda p: p[1].get("model", {}).get("time_us", 0)):
            print(_row(name, plan))
        for line in verdicts(plans):
            print(line)


def _row(name: str, plan: dict) -> str:
    m = plan.get("model")
    cells = [f"{name:14}" + (" " * 41 if m is None else f" {m['time_us'] / 1e3:9.3f} {computing(m) / 1e3:9.3f}"
             f" {m['bytes'] / 1e6:10.1f} {m['memory_bytes'] / 1e6:9.0f}")]  # fmt: skip
    for compiler in COMPILERS:
        f = plan.get(compiler)
        ms = "" if f is None or f["seconds"] is None else f"{f['seconds'] * 1e3:.3f}"
        cells.append(" " * 39 if f is None else f"{ms:>14} {f['bytes'] / 1e6:8.1f} {f['memory'] / 1e6:8.0f}"
                     f" {f['compile_s']:6.0f}")  # fmt: skip
    return " | ".join(cells)


def computing(model: dict) -> float:
    """Return the modelled time apart from collectives."""
    return model["time_us"] - model["interconnect_us"]


def with_wire(f: dict) -> float:
    """Return a compiler's estimate and the time of what it moves."""
    return f["seconds"] + f["bytes"] / f["wire_per_s"]


def verdicts(plans: dict) -> list[str]:
    """Return the found plan against the best hand plan, and how model and compiler rank the plans."""
    lines = []
    for found in (n for n in plans if n.startswith("found") and "sbpjax" in plans[n]):
        ours, model = plans[found]["sbpjax"], plans[found]["model"]
        lines.append(f"{found}: bytes planned / compiled {model['bytes'] / max(ours['bytes'], 1):.4f}, "
                     f"memory predicted / compiled {model['memory_bytes'] / ours['memory']:.3f}")  # fmt: skip
        hand = [n for n in plans if not n.startswith("found") and "model" in plans[n]]
        models = {n: plans[n]["model"] for n in hand}
        lines.append(_against(found, models, model, "modelled time", lambda m: m["time_us"]))
        for compiler in COMPILERS:
            theirs = {n: plans[n][compiler] for n in hand if compiler in plans[n]}
            for what, figure in measures(ours):
                if theirs:
                    lines.append(_against(found, theirs, ours, f"{compiler}: {what}", figure))
    for compiler in COMPILERS:
        every = [n for n in plans if "model" in plans[n] and _judged(plans[n], compiler)]
        if len(every) > 2:
            models, estimates = [plans[n]["model"] for n in every], [_judged(plans[n], compiler) for n in every]
            lines += [_ranked(compiler, what, models, estimates, figure) for what, figure in measures(estimates[0])]
    return lines


def measures(figures: dict) -> list[tuple]:
    """Return by what a compiler's figures are compared."""
    every = [("bytes", lambda f: f["bytes"])]
    if figures["seconds"] is None:
        return every
    return [*every, ("optimal_seconds", lambda f: f["seconds"]), ("with the interconnect", with_wire)]


def _judged(plan: dict, compiler: str) -> dict | None:
    return plan.get(compiler) or (plan.get("sbpjax") if "partitioner" not in plan and compiler != "sbpjax" else None)


def _against(found: str, hand: dict, ours: dict, what: str, figure) -> str:
    best = min(hand, key=lambda n: figure(hand[n]))
    ratio = figure(ours) / max(figure(hand[best]), 1e-30)
    return f"{found} / best of {len(hand)} hand plans, {what}: {ratio:.3f} ({best})"


def _ranked(compiler: str, what: str, models: list, estimates: list, figure) -> str:
    by_model = {
        "bytes": lambda m: m["bytes"],
        "optimal_seconds": computing,
        "with the interconnect": lambda m: m["time_us"],
    }
    rank = five.spearman([by_model[what](m) for m in models], [figure(f) for f in estimates])
    whole = five.spearman([m["time_us"] for m in models], [figure(f) for f in estimates])
    extra = f"; by the modelled time {whole:.3f}" if what == "optimal_seconds" else ""
    return f"Spearman of {len(models)} plans, {compiler}, {what}: {rank:.3f}{extra}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("machine", help="e.g. v5p:2x2x2 or h100:8; `show` to show a file")
    parser.add_argument("into_file", nargs="?", help="for `show`: the file")
    parser.add_argument("--model", choices=["gpt", "mlp", "wide"], default="gpt")
    parser.add_argument("--plans", default=PLANS, help=f"comma-separated; {PLANS} by default")
    parser.add_argument("--by", default=",".join(COMPILERS), help="who compiles the hand plans")
    parser.add_argument("--into", default="auto_absent.jsonl", help="the file of results")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds that one plan may take")
    parser.add_argument("--early", action="store_true", help="stop the TPU compiler before it makes machine code")
    parser.add_argument("--keep", help="a folder for the compiled programs' text")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--time", type=int, default=2048)
    parser.add_argument("--vocab", type=int, default=32768)
    parser.add_argument("--batch", type=int, help="by default one sequence per chip")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--latency", action="store_true", help="count the latency of collectives in the model")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.machine == "show":
        show(options.into_file)
    elif options.one:
        one(options, options.one, [c for c in options.by.split(",") if c])
    else:
        print(f"jax {jax.__version__}, {os.cpu_count()} cores; {' '.join(sys.argv[1:])}", flush=True)
        every(options)
        show(options.into)


if __name__ == "__main__":
    main()
