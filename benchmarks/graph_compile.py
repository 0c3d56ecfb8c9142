"""How long it takes to trace, plan and compile the graph of a deep GPT, and what block scan changes.

    python -m benchmarks.graph_compile                   # about three minutes on two cores
    python -m benchmarks.graph_compile --part depth      # trace + compile of 48 layers against 4, with block scan
    python -m benchmarks.graph_compile --part trace      # trace alone, without block scan
    python -m benchmarks.graph_compile --part threshold  # step, memory and compile with and without block scan

AdamW step of the GPT of `benchmarks/models.py`, width 256, one CPU device, persistent cache off. Times are CPU time:
of the calling thread for traces, of the process (the compiler has threads) for compilation. A first graph of 2 layers
warms up JAX and the compiler; every graph is new. Steps are interleaved.

*trace* is without the creation of optimizer state, which happens once per parameter and is memory traffic; it is
printed beside. *off* is ``enable_block_scan(False)``, where every layer's Python runs; *reuse* is what a graph does by
itself below its threshold: equal layers are traced once and not rolled.

`benchmarks/results/performance.md` has figures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")
os.environ["SBPJAX_CACHE_DIR"] = "off"

import jax

import sbpjax as flow
from benchmarks.models import data, train_graph
from sbpjax.graph.config import GraphConfig

SIZES = {"width": 256, "heads": 8, "context": 128, "vocab": 512}
BATCH = 4
MODES = {"off": False, "reuse": None, "scan": True}


def built(layers: int, mode: str, width: int = 256) -> tuple:
    """Return a traced graph, its arguments, and the seconds of optimizer state, trace with plan, plan (wall)."""
    sizes = dict(SIZES, layers=layers, width=width)
    values = tuple(map(flow.tensor, data("gpt2", BATCH, sizes)))
    _, optimizer, graph = train_graph(flow, "gpt2", sizes)
    turns = GraphConfig.least_iterations
    if mode == "reuse":
        GraphConfig.least_iterations = lambda self, device, ranks: 0  # at any depth, also above the threshold
    else:
        graph.config.enable_block_scan(MODES[mode])
    try:
        began = time.thread_time()
        optimizer.prepare()
        prepared = time.thread_time()
        graph.build_graph(*values)
        traced = time.thread_time()
    finally:
        GraphConfig.least_iterations = turns
    plan = graph.program.seconds["plan"]
    return graph, values, (prepared - began, traced - prepared, plan)


def compiled(graph) -> float:
    """Compile a traced graph and return the CPU seconds."""
    began = time.process_time()
    graph.finish_compile_and_init_runtime()
    return time.process_time() - began


def depth() -> None:
    totals = {}
    for layers in (4, 48):
        runs = []
        for _ in range(3):
            graph, _, (_, trace, _) = built(layers, "scan")
            runs.append((trace, compiled(graph)))
        trace, compilation = (statistics.median(column) for column in zip(*runs))
        totals[layers] = statistics.median(map(sum, runs))
        print(f"scan, {layers:2} layers: trace and plan {trace:.2f} s, compile {compilation:.2f} s")
    print(f"48 layers / 4 layers: {totals[48] / totals[4]:.2f}  (target 1.50)", flush=True)


def trace() -> None:
    for mode in ("reuse", "off"):
        found = {}
        for layers in (4, 24, 48):
            runs = [built(layers, mode)[2] for _ in range(6)][1:]
            state, found[layers], plan = (statistics.median(column) for column in zip(*runs))
            print(f"{mode:5} {layers:2} layers: trace {found[layers]:.3f} s, plan {plan:.3f} s, state {state:.3f} s")
        slope = found[48] - found[24]
        print(f"{mode:5} per further 24 layers: {slope:.3f} s  (target 0.2)", flush=True)


def threshold(layers: int, steps: int, width: int) -> None:
    runs = {}
    for mode in ("reuse", "scan"):
        graph, values, (_, trace, _) = built(layers, mode, width)
        seconds = compiled(graph)
        memory = graph.program.compile().memory_analysis().temp_size_in_bytes
        runs[mode] = graph, values, []
        print(f"{mode:5} {layers:2} layers: trace {trace:.2f} s, compile {seconds:.2f} s, temporaries {memory:,} B")
    for step in range(steps + 2):
        for graph, values, times in runs.values():
            began = time.process_time()
            jax.block_until_ready(graph(*values)._array)
            jax.block_until_ready([p._array for p in graph.model.to(flow.nn.Module).parameters()])
            if step > 1:
                times.append(time.process_time() - began)
    for mode, (_, _, times) in runs.items():
        print(f"{mode:5} {layers:2} layers: step {statistics.median(times) * 1e3:.1f} ms CPU")
    ratio = statistics.median(a / b for a, b in zip(runs["scan"][2], runs["reuse"][2]))
    print(f"step scan / reuse: {ratio:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("depth", "trace", "threshold"))
    parser.add_argument("--layers", type=int, nargs="+", default=[12])
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--steps", type=int, default=9)
    options = parser.parse_args()
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, one CPU device, float32; {SIZES}, batch {BATCH}")
    compiled(built(2, "reuse")[0])
    if options.part in (None, "depth"):
        depth()
    if options.part in (None, "trace"):
        trace()
    if options.part in (None, "threshold"):
        for layers in options.layers:
            threshold(layers, options.steps, options.width)


if __name__ == "__main__":
    main()
