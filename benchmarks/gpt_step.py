"""A compiled GPT training step of sbpjax against the same model with hand-written sharding constraints.

Both are pure JAX functions of the same text (`tests/models_jax.py`), on 8 CPU devices as 2 × 4 (data × tensor): 12
layers, Adam, float32. The peer is what one writes by hand in Megatron's style: parameters split as in Megatron,
``with_sharding_constraint`` on the residual stream, the heads, the hidden layer and the logits, and XLA's partitioner
for the rest.

    python -m benchmarks.gpt_step                  # about four minutes on two cores

The planner sees a sequence length at which the work that Megatron's layout repeats on every tensor-parallel rank
(norms, residuals) costs more than latency, and splits it over the sequence; the hand-written peer keeps it whole, as
Megatron does.

Steps are timed interleaved, one of ours, one of the peer's; medians are compared. So is compilation: in this process,
with the persistent cache off, from lowered program to executable, several times in turn. Our layers are calls of one
function (`_core.programs.outline`); the peer's text is a loop over layers in Python, as one writes it.
"""

from __future__ import annotations

import argparse
import os
import statistics
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
from sbpjax._core.compiler.conversions import from_logical, to_logical
from sbpjax._core.planner.prices import cost
from sbpjax.sbp.layout import layout_of
from sbpjax.sbp.placement import placement
from tests import models_jax


def peer_constraints(mesh):
    """Return ``constrain(x, kind)``: the marks that one writes by hand on activations."""
    spec = jax.sharding.PartitionSpec
    marks = {
        "residual": spec("a0"),
        "heads": spec("a0", None, "a1"),
        "hidden": spec("a0", None, "a1"),
        "logits": spec("a0", None, "a1"),
    }
    return lambda x, kind: jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh, marks[kind]))


def timed_compile(lower) -> tuple:
    """Compile what ``lower()`` returns afresh: its executable, seconds on the wall, seconds of CPU."""
    jax.clear_caches()
    lowered = lower()
    began, cpu = time.perf_counter(), time.process_time()
    executable = lowered.compile()
    return executable, time.perf_counter() - began, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--time", type=int, default=256)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--vocab", type=int, default=512)
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--compiles", type=int, default=5)
    parser.add_argument("--cost", default="cpu", help="preset of the planner's cost model")
    parser.add_argument("--latency", type=float, default=100.0, help="microseconds per collective in the cost model")
    parser.add_argument("--roll", action="store_true", help="run the repeated layers as loops, not as calls")
    options = parser.parse_args()
    shape = (options.layers, options.batch, options.time, options.width, options.heads, options.vocab)
    devices = placement("cpu", np.arange(8).reshape(2, 4))
    ours = models_jax.gpt(*shape)
    peer = models_jax.gpt(*shape, constrain=peer_constraints(devices.mesh))
    codes = models_jax.pins(ours, "dp+tp")
    layouts = [layout_of(devices, c, a.shape, np.dtype(a.dtype)) for c, a in zip(codes, ours.avals)]
    state = tuple(range(ours.state))
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, 8 CPU devices as 2 x 4; layers, B, T, D, heads, V = {shape}")

    jax.jit(lambda x: x + 1).lower(1.0).compile()  # the first compile of a process also sets up the compiler

    began = time.perf_counter()
    model = cost.preset(options.cost).with_latency(options.latency)
    compiled = compile_program(ours.fn, devices, layouts, [*state, "B,B"], donate=state, cost=model, roll=options.roll)
    print(f"sbpjax: plan {time.perf_counter() - began:.1f} s")

    shardings = [x.sharding for x in layouts]
    replicated = jax.sharding.NamedSharding(devices.mesh, jax.sharding.PartitionSpec())
    peer_jit = jax.jit(
        peer.fn, in_shardings=shardings, out_shardings=(*shardings[: len(state)], replicated), donate_argnums=state
    )
    peer_avals = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in peer.avals]
    walls, cpus = ([], []), ([], [])
    for _ in range(options.compiles):
        executable, wall, cpu = timed_compile(compiled.lower)
        peer_executable, peer_wall, peer_cpu = timed_compile(lambda: peer_jit.lower(*peer_avals))
        for kept, ours_took, peer_took in ((walls, wall, peer_wall), (cpus, cpu, peer_cpu)):
            kept[0].append(ours_took)
            kept[1].append(peer_took)
    for name, wall, cpu in zip(("sbpjax", "peer"), walls, cpus):
        print(f"{name}: compile {min(wall):.1f}-{max(wall):.1f} s of wall, {min(cpu):.1f}-{max(cpu):.1f} s of CPU")
    our_compile, peer_compile = map(statistics.median, walls)
    our_cpu, peer_cpu = map(statistics.median, cpus)

    texts = [executable.as_text(), peer_executable.as_text()]
    for name, text in zip(("sbpjax", "peer"), texts):
        kinds: dict = {}
        for c in hlo.collectives(text):
            kinds[c.kind] = kinds.get(c.kind, 0) + c.count
        print(f"{name}: {hlo.total_interconnect_bytes(text):,} bytes on the interconnect per device and step; {kinds}")
    print(f"planned: {compiled.plan.bytes:,} bytes")

    values = ours.values()
    runs = []
    for run, leaf_layouts in ((executable, compiled.in_layouts), (peer_executable, layouts)):
        arrays = [from_logical(v, devices, x.sbp)[0] for v, x in zip(values, leaf_layouts)]
        runs.append([run, arrays[: len(state)], arrays[len(state) :], [], [], []])
    for step in range(options.steps + 2):
        for run in runs:
            began, cpu = time.perf_counter(), time.process_time()
            *new, loss = run[0](*run[1], *run[2])
            jax.block_until_ready(new)
            if step >= 2:  # the first two steps warm up
                run[3].append(time.perf_counter() - began)
                run[5].append(time.process_time() - cpu)
            run[1] = new
            run[4].append(
                float(np.asarray(to_logical(loss, compiled.out_layouts[-1]))) if run is runs[0] else float(loss)
            )
    medians = [statistics.median(run[3]) for run in runs]
    spread = [f"{min(r[3]) * 1e3:.1f}-{max(r[3]) * 1e3:.1f}" for r in runs]
    worst = max(abs(a - b) / abs(b) for a, b in zip(runs[0][4], runs[1][4]))
    print(f"step:    sbpjax {medians[0] * 1e3:.1f} ms ({spread[0]}), peer {medians[1] * 1e3:.1f} ms ({spread[1]})")
    work = [statistics.median(run[5]) for run in runs]
    print(f"CPU:     step sbpjax {work[0]:.3f} s, peer {work[1]:.3f} s; compile {our_cpu:.1f} s, {peer_cpu:.1f} s")
    print(f"ratios of CPU time: step {work[0] / work[1]:.2f}, compile {our_cpu / peer_cpu:.2f}")
    print(f"loss:    {runs[0][4][0]:.6f} -> {runs[0][4][-1]:.6f}, largest relative difference {worst:.1e}")
    step_ratio, compile_ratio = medians[0] / medians[1], our_compile / peer_compile
    print(f"ratios:  step {step_ratio:.2f} (target 0.80), compile {compile_ratio:.2f} (target 0.60)")


if __name__ == "__main__":
    main()
