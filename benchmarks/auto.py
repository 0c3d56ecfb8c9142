"""Auto parallelism against the usual strategies on 8 CPU devices: bytes, modelled time, memory.

    python -m benchmarks.auto              # five models; about ten minutes on two cores
    python -m benchmarks.auto --only MLP   # those whose title has this text
    python -m benchmarks.auto --launches   # small GPTs, by bytes alone and with the latency of an H100's collectives

A *hand plan* is a strategy of `_core.inspect.auto.baseline` (data parallel, ZeRO-1, FSDP, tensor parallel; on two axes
their products too), compiled by XLA's own partitioner: plain ``jax.jit`` with in and out shardings, nothing of sbpjax
in it. The *found* plan has the layouts of parameters, state and batch free, and is compiled as sbpjax compiles
plans. Every step is Adam, forward and backward; nothing runs. `benchmarks.auto_absent` asks compilers of TPUs and GPUs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
os.environ.setdefault("NPROC", "64")
os.environ["SBPJAX_CACHE_DIR"] = "off"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import rankdata

from sbpjax._core.compiler import hlo
from sbpjax._core.compiler.lower import spmd_function
from sbpjax._core.inspect.auto.baseline import hand_pins, strategies
from sbpjax._core.inspect.auto.cost_summary import totals
from sbpjax._core.planner.prices.cost import PRESETS, CostModel
from sbpjax._core.planner.prices.launches import launches
from sbpjax._core.programs.plan import Plan
from sbpjax.graph.auto.planning_problem import PlanningProblem, planning_problem_of
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import placement
from tests import models_jax

KINDS = {"p": "parameter", "m": "state", "v": "state", "x": "batch", "count": "number"}


@dataclass(frozen=True)
class Figures:
    """What a compiler says of a step.

    Attributes:
        bytes: received by one device over the interconnect.
        seconds: the compiler's own estimate of a step; None if it gives none.
        memory: of one device: arguments, temporaries, results that replace no argument.
        arguments: of it the arguments.
        compile_s: CPU seconds of compilation.
    """

    bytes: int
    seconds: float | None
    memory: int
    arguments: int
    compile_s: float


def in_bfloat16(step: models_jax.Step) -> models_jax.Step:
    """Return a step whose floats are bfloat16, state included."""
    half = [
        jax.ShapeDtypeStruct(a.shape, jnp.bfloat16) if np.issubdtype(a.dtype, np.floating) else a for a in step.avals
    ]

    def fn(*flat):
        results = step.fn(*flat)
        return (*(r.astype(a.dtype) for r, a in zip(results, half)), *results[step.state :])

    return models_jax.Step(fn, step.names, half, step.state, step.vocab)


def problem(step: models_jax.Step, where: placement, cost: CostModel, title: str) -> PlanningProblem:
    """Return a step as a subject of auto parallelism."""
    kinds = [KINDS[n.partition(".")[0]] for n in step.names]
    return planning_problem_of(
        step.fn, step.avals, where, names=step.names, kinds=kinds, returned=step.state, cost=cost, title=title
    )


# -- compilers ---------------------------------------------------------------------------------------------------------


def figures(lowered, peak: float) -> tuple[str, Figures]:
    """Return the compiled text of a lowered program, and what the compiler says of it."""
    began = time.process_time()
    compiled = lowered.compile()
    took = time.process_time() - began
    m = compiled.memory_analysis()
    held = m.argument_size_in_bytes + m.temp_size_in_bytes + m.output_size_in_bytes - m.alias_size_in_bytes
    text = compiled.as_text()
    seconds = optimal_seconds(compiled, peak)
    return text, Figures(hlo.total_interconnect_bytes(text), seconds, held, m.argument_size_in_bytes, took)


def optimal_seconds(compiled, peak: float) -> float | None:
    """Return the TPU compiler's estimate; it prices a custom call at minus one second, see `benchmarks.absent`."""
    costs = compiled.cost_analysis()
    if not costs or "optimal_seconds" not in costs:
        return None
    found = costs["optimal_seconds"]
    while found < costs["flops"] / peak:
        found += 1.0
    return found


def by_partitioner(case: PlanningProblem, fn: Callable, pins: dict, judge: Callable = figures) -> tuple[str, Figures]:
    """Return text and figures of a hand plan by XLA's partitioner."""
    layouts = [layout_of(case.placement, pins[i], x.shape, x.dtype) for i, x in enumerate(case.inputs)]
    shardings = [x.sharding for x in layouts]
    whole = jax.sharding.NamedSharding(case.placement.mesh, jax.sharding.PartitionSpec())
    state = sum(isinstance(pin, int) for pin in case.out_pins)
    outs = (*shardings[:state], *(whole,) * (len(case.out_pins) - state))
    call = jax.jit(fn, in_shardings=shardings, out_shardings=outs, donate_argnums=tuple(range(state)))
    lowered = call.lower(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in case.inputs))
    return judge(lowered, case.cost.flops_bf16)


def by_sbpjax(case: PlanningProblem, plan: Plan, judge: Callable = figures) -> tuple[str, Figures]:
    """Return text and figures of a plan as sbpjax compiles it."""
    repeats = "calls" if case.placement.type == "cpu" else "copies"
    state = sum(isinstance(pin, int) for pin in case.out_pins)
    run = spmd_function(plan, case.placement, repeats=repeats, over={i: i for i in range(state)})
    call = jax.jit(run, donate_argnums=tuple(range(state)))
    layouts = case.layouts(plan)
    lowered = call.lower(*(jax.ShapeDtypeStruct(x.physical_shape, x.dtype, sharding=x.sharding) for x in layouts))
    return judge(lowered, case.cost.flops_bf16)


def spearman(a: list[float], b: list[float]) -> float:
    """Return the rank correlation of two lists of figures; what is equal to four digits shares a rank."""
    ranks = [rankdata([float(f"{x:.4g}") for x in figures]) for figures in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])


# -- tables ------------------------------------------------------------------------------------------------------------


def compare(case: PlanningProblem, fn: Callable) -> None:
    """Print a row per hand plan and for the found one, then the ratios that count.

    Args:
        case: the step.
        fn: the same in plain JAX.
    """
    print(f"\n{case.title} on {' × '.join(map(str, case.sizes))}, prices of {case.cost.name}")
    print(f"{'':10} {'model µs':>10} {'planned':>14} {'memory':>14} | {'compiled':>14} {'memory':>14}", flush=True)
    modelled, estimates = {}, {}
    names = strategies(case)
    for name in ["found", *names]:
        began = time.process_time()
        pins = None if name == "found" else hand_pins(case, name)
        plan = case.plan(pins)
        took = time.process_time() - began
        t = modelled[name] = totals(case, plan, name)
        _, f = by_sbpjax(case, plan) if pins is None else by_partitioner(case, fn, pins)
        estimates[name] = f
        cells = f"{name:10} {t.time_us:10.1f} {t.bytes:14,} {t.memory_bytes:14,} | {f.bytes:14,} {f.memory:14,}"
        print(f"{cells} | plan {took:.1f} s, compile {f.compile_s:.0f} s", flush=True)
    found, shown = estimates["found"], modelled["found"]
    best = min(names, key=lambda n: estimates[n].bytes)
    print(f"bytes: found / best hand plan ({best}) {found.bytes / max(estimates[best].bytes, 1):.3f}")
    print(f"bytes: planned / compiled {shown.bytes / max(found.bytes, 1):.4f}")
    least = min(modelled[n].time_us for n in names)
    print(f"modelled time: found / best hand plan {shown.time_us / least:.3f}; gap {shown.gap:.1e}")
    print(f"memory: predicted / compiled {shown.memory_bytes / found.memory:.3f}")


def compare_launches() -> None:
    """Print what plans cost that count latency, and plans that do not, both by prices that do."""
    priced = PRESETS["h100"]
    for width, time_, vocab in ((128, 64, 512), (512, 256, 4096)):
        step = models_jax.gpt(4, 8, time_, width, 8, vocab)
        for ranks in (np.arange(8), np.arange(8).reshape(2, 4)):
            case = problem(step, placement("cpu", ranks), priced.with_latency(0.0), "")
            by_bytes, by_time = case.plan(), replace(case, cost=priced).plan()
            print(f"\nGPT of 4 layers, B8 T{time_} D{width} V{vocab} on {list(ranks.shape)}")
            for name, plan, extra in (("by bytes", by_bytes, priced.alpha_us), ("with latency", by_time, 0.0)):
                number = sum(launches(plan, priced).values())
                us = plan.modelled_us + extra * number
                print(f"{name:13} {us:8.1f} µs {plan.bytes / 1e6:8.2f} MB {number:4} collectives", flush=True)


def main() -> None:
    """Compare on the five models of the planner's design figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="those of the models whose title has this text")
    parser.add_argument("--launches", action="store_true", help="what counting the latency of collectives changes")
    options = parser.parse_args()
    only = options.select
    if options.launches:
        return compare_launches()
    print(f"jax {jax.__version__}, {os.cpu_count()} cores; {' '.join(sys.argv[1:])}")
    line, grid = placement("cpu", np.arange(8)), placement("cpu", np.arange(8).reshape(2, 4))
    gpt = lambda: models_jax.gpt(2, 8, 1024, 1024, 16, 50304)  # noqa: E731
    cases = [
        ("MLP 32 x 64 x 16384", lambda: models_jax.mlp(32, 64, 16384), line),
        ("MLP 16384 x 128 x 128", lambda: models_jax.mlp(16384, 128, 128), line),
        ("wide & deep 400k x 32", lambda: models_jax.wide_deep(400_000, 32, 26, 4096, 256), line),
        ("GPT 2 layers, B8 T1024 D1024 V50304", gpt, line),
        ("GPT 2 layers, B8 T1024 D1024 V50304", gpt, grid),
    ]
    for title, make, where in cases:
        if only in f"{title} {where.hierarchy}":
            step = make()
            compare(problem(step, where, PRESETS["h100"].with_latency(0.0), title), step.fn)


if __name__ == "__main__":
    main()
