"""Planned bytes of whole Adam steps, against those of hand strategies compiled by XLA's partitioner.

Three tables, all float32, wire bytes per device and step, 8 CPU devices (nothing runs, everything is compiled):

1. Pins: for each strategy the plan's bytes, the bytes in our compiled program, and those of ``jax.jit`` with the same
   in and out shardings.
2. Free: the plan with the layouts of parameters, state and batch released, against the best strategy above (sizes of
   the planner's design figures).
3. Depth: CPU time of preparation (trace, normalise) and planning of a GPT at 6 to 48 layers.

    python -m benchmarks.planner            # about five minutes on two cores
    python -m benchmarks.planner --quick    # small sizes, one minute
"""

from __future__ import annotations

import argparse
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
os.environ.setdefault("NPROC", "64")
os.environ["SBPJAX_CACHE_DIR"] = "off"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jax
import numpy as np

import sbpjax  # noqa: F401 - configures JAX
from sbpjax._core.compiler import hlo
from sbpjax._core.compiler.compile import compile_program
from sbpjax._core.planner import plan_program
from sbpjax._core.programs.normalise import normalise
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import placement
from tests import models_jax

ONE_AXIS = ["dp", "zero1", "fsdp", "tp"]
TWO_AXES = ["dp+tp", "fsdp+tp"]


def grid(strategy: str) -> placement:
    return placement("cpu", np.arange(8).reshape((2, 4) if "+" in strategy else (8,)))


def layouts_of(step, strategy: str, p: placement) -> list:
    return [layout_of(p, c, a.shape, np.dtype(a.dtype)) for c, a in zip(models_jax.pins(step, strategy), step.avals)]


def out_pins(step, p: placement) -> list:
    return [*range(step.state), ",".join("B" * len(p.hierarchy))]


def partitioner_bytes(step, layouts, p: placement) -> int:
    """Return the interconnect bytes of the step compiled with these in and out shardings by XLA's partitioner."""
    shardings = [x.sharding for x in layouts]
    loss = jax.sharding.NamedSharding(p.mesh, jax.sharding.PartitionSpec())
    compiled = jax.jit(step.fn, in_shardings=shardings, out_shardings=(*shardings[: step.state], loss))
    lowered = compiled.lower(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in step.avals))
    return hlo.total_interconnect_bytes(lowered.compile().as_text())


def pinned(models: dict, strategies) -> None:
    print("\n1. same pins            planned       compiled    partitioner   planned/partitioner")
    for name, step in models.items():
        for strategy in strategies:
            p = grid(strategy)
            layouts = layouts_of(step, strategy, p)
            program = compile_program(step.fn, p, layouts, out_pins(step, p))
            ours, peer = hlo.total_interconnect_bytes(program.hlo()), partitioner_bytes(step, layouts, p)
            planned = program.plan.bytes
            mark = "" if abs(ours - planned) <= 0.01 * ours and planned <= peer else "   <-- outside"
            print(
                f"{name:12} {strategy:8} {planned:12,} {ours:14,} {peer:14,} {planned / max(peer, 1):11.2f}{mark}",
                flush=True,
            )


def free(models: dict, strategies) -> None:
    print("\n2. layouts free          sbpjax      best of    partitioner's best")
    for name, step in models.items():
        p = grid(strategies[0])
        layouts = layouts_of(step, strategies[0], p)
        chosen = [i for i, a in enumerate(step.avals) if a.shape]
        program = compile_program(step.fn, p, layouts, out_pins(step, p), free_inputs=chosen)
        peers = {s: partitioner_bytes(step, layouts_of(step, s, p), p) for s in strategies}
        best = min(peers, key=lambda s: peers[s])
        pins = {
            s: compile_program(step.fn, p, layouts_of(step, s, p), out_pins(step, p)).plan.bytes for s in strategies
        }
        print(
            f"{name:22} {program.plan.bytes / 1e6:10.3f} MB   {best:6} {peers[best] / 1e6:12.3f} MB    "
            f"(ours pinned: {', '.join(f'{s} {n / 1e6:.3f}' for s, n in pins.items())})",
            flush=True,
        )


def depth(layers: list[int]) -> None:
    print("\n3. depth     equations   prepare s   plan s (1-D)   plan s (2 x 4)")
    for count in layers:
        step = models_jax.gpt(count, 8, 64, 128, 8, 512)
        began = time.process_time()
        program = normalise(jax.make_jaxpr(step.fn)(*step.avals))
        prepared = time.process_time() - began
        times = []
        for strategy, sizes in (("dp", (8,)), ("dp+tp", (2, 4))):
            began = time.process_time()
            plan_program(program, sizes, models_jax.pins(step, strategy), [*range(step.state), (-1,) * len(sizes)])
            times.append(time.process_time() - began)
        print(f"{count:8} {len(program.eqns):12,} {prepared:10.2f} {times[0]:12.2f} {times[1]:15.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, 8 CPU devices")
    models = {"MLP": models_jax.mlp(64, 32, 64), "GPT 1 layer": models_jax.gpt(1, 8, 16, 32, 8, 64)}
    if not quick:
        models["GPT 3 layers"] = models_jax.gpt(3, 8, 64, 128, 8, 512)
    pinned(models, [*ONE_AXIS, *TWO_AXES])
    sizes = {
        "MLP 32x64x16384": models_jax.mlp(32, 64, 16384),
        "MLP 16384x128x128": models_jax.mlp(16384, 128, 128),
        "wide & deep 400k x 32": models_jax.wide_deep(400_000, 32, 26, 4096, 256),
    }
    free(sizes, ONE_AXIS)
    if not quick:
        large = {"GPT 2 B8 T1024 D1024": models_jax.gpt(2, 8, 1024, 1024, 16, 50304)}
        free(large, ONE_AXIS)
        free(large, ["dp+tp"])
    depth([6, 12] if quick else [6, 12, 48])


if __name__ == "__main__":
    main()
