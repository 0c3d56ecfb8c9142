"""Pipelines: the bubble with stages of fixed waits, what the driver costs, compile time against one program.

    python -m benchmarks.pipeline [--part bubble processes overhead compile]

* bubble: 4 stages that only wait (100 ms forward, 200 ms backward; 300 and 600 with 32 micro-batches), one device each,
  so that two cores suffice. A wait on a busy machine ends late, and the stage is busy until then.
* processes: the same with a process per stage, under the launcher.
* overhead: CPU time of the main thread per task call, stages of next to no work, whole steps without waiting.
* compile: trace, plan and compile of a 24-layer GPT in 4 equal stages against the same on one placement (wall and CPU).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

if "RANK" not in os.environ:
    os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
    os.environ.setdefault("NPROC", "64")

import jax

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of
from tests.graph.pipeline.waiting import spent, wait

B = flow.sbp.broadcast
PLACES = [flow.placement("cpu", [r]) for r in range(len(flow.placement.all("cpu").ranks))]


class Row(nn.Graph):
    """Linear layers in a row, each on its placement, which wait if they are asked to."""

    def __init__(self, layers, places, micro_batches, schedule, seconds):
        super().__init__()
        self.layers, self.places, self.seconds = layers, places, seconds
        self.add_optimizer(flow.optim.SGD(layers.parameters(), lr=0.1))
        self.config.set_gradient_accumulation_steps(micro_batches)
        self.config.set_pipeline(schedule)

    def build(self, x, y):
        op = op_of(wait, (("forward", self.seconds), ("backward", 2 * self.seconds)))
        for layer, place in zip(self.layers, self.places, strict=True):
            x = layer(x.to_global(placement=place))
            if self.seconds:
                x = dispatch.run(op, (x,))
        loss = ((x - y) ** 2).mean()
        loss.backward()
        return loss


def row(stages, micro_batches, schedule, chunks=1, seconds=0.0, width=64):
    places = PLACES[:stages] * chunks
    layers = nn.ModuleList([nn.Linear(width, width) for _ in places])
    for layer, place in zip(layers, places, strict=True):
        layer.to_global(place, [B])
    graph = Row(layers, places, micro_batches, schedule, seconds / chunks)
    x = flow.ones(2 * micro_batches, width)
    batch = x.to_global(places[0], B), x.to_global(places[-1], B)
    graph(*batch)
    return graph, batch


def settle(graph) -> None:
    """Wait until all processes have done the step."""
    jax.block_until_ready([s.data for p in graph.layers.parameters() for s in p.jax().addressable_shards])
    flow.distributed.barrier()


def bubble(most: int = 4) -> None:
    turns = 3
    for stages, micro_batches, schedule, chunks in (
        (4, 8, "1f1b", 1), (4, 8, "gpipe", 1), (4, 8, "interleaved", 2), (4, 32, "1f1b", 1), (2, 8, "1f1b", 1)
    ):  # fmt: skip
        if stages > most or (most < 4 and schedule != "1f1b"):
            continue
        seconds = 0.1 if micro_batches < 32 else 0.3  # late wake-ups are 1 % of the shorter ones, a tenth of a bubble
        graph, batch = row(stages, micro_batches, schedule, chunks, seconds)
        found = []
        for _ in range(turns):
            settle(graph)
            spent.clear()
            start = time.perf_counter()
            graph(*batch)
            settle(graph)
            took = time.perf_counter() - start
            busy = sum(spent)
            if flow.env.get_world_size() > 1:
                every: list = [None] * flow.env.get_world_size()
                flow.distributed.all_gather_object(every, busy)
                busy = sum(every)
            found.append((1 - busy / stages / took, 1 - 3 * seconds * micro_batches / took))
        real, requested = (statistics.median(column) for column in zip(*found, strict=True))
        ideal = (stages - 1) / (micro_batches + stages - 1)
        planned = graph.program.pipeline.body.schedule.bubble
        if flow.env.get_rank() == 0:
            print(f"{schedule:11} S={stages} M={micro_batches:2} bubble {real:.3f} (by time asked {requested:.3f}), "
                  f"ideal {ideal:.3f}, planned {planned:.3f}, ratio {real / ideal:.2f}", flush=True)  # fmt: skip


def processes() -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("NPROC", "SBPJAX_CPU_DEVICES")}
    for count in (4, 2):
        print(f"{count} processes", flush=True)
        command = [sys.executable, "-m", "sbpjax.distributed.launch", "--port", "0", "--nproc_per_node", str(count)]
        command += ["--cpu_devices", "1", "-m", "benchmarks.pipeline", "--most", str(count), "--part", "bubble"]
        subprocess.run(command, env=environment, check=True)


def overhead() -> None:
    for stages, micro_batches in ((4, 8), (4, 32)):
        graph, batch = row(stages, micro_batches, "1f1b", width=128)
        tasks = (2 * stages - 1) * micro_batches
        times = []
        for _ in range(20):
            settle(graph)
            start = time.thread_time()
            graph(*batch)
            times.append(time.thread_time() - start)
        print(f"S={stages} M={micro_batches}: {statistics.median(times) / tasks * 1e6:.0f} µs of the main thread "
              f"per task call ({tasks} calls, transfers and the step around them included)", flush=True)  # fmt: skip


class Block(nn.Module):
    """A transformer block."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Deep(nn.Graph):
    """Blocks in a row, each on its placement."""

    def __init__(self, blocks, places, scan):
        super().__init__()
        self.blocks, self.places = blocks, places
        self.add_optimizer(flow.optim.AdamW(blocks.parameters(), lr=1e-3))
        self.config.set_gradient_accumulation_steps(4)
        if scan is not None:
            self.config.enable_block_scan(scan)

    def build(self, x, y):
        for block, place in zip(self.blocks, self.places, strict=True):
            x = block(x.to_global(placement=place))
        loss = ((x - y) ** 2).mean()
        loss.backward()
        return loss


def compile_times() -> None:
    found = {}
    for name, stages in (("one placement", 1), ("4 stages", 4)):
        with tempfile.TemporaryDirectory() as empty:  # no plan or program of an earlier run
            command = [sys.executable, "-m", "benchmarks.pipeline", "--stages", str(stages)]
            text = subprocess.run(
                command, env={**os.environ, "SBPJAX_CACHE_DIR": empty}, check=True, capture_output=True, text=True
            ).stdout
        found[name] = float(text.split()[0])
        print(f"{name}: {text.strip()}", flush=True)
    print(f"ratio of CPU times {found['4 stages'] / found['one placement']:.2f}")


def compile_once(stages: int) -> None:
    layers, width = 24, 128
    places = [PLACES[i * stages // layers] for i in range(layers)]
    blocks = nn.ModuleList([Block(width, 4) for _ in range(layers)])
    for block, place in zip(blocks, places, strict=True):
        block.to_global(place, [B])
    graph = Deep(blocks, places, None)
    x = flow.ones(8, 64, width)
    batch = x.to_global(places[0], B), x.to_global(places[-1], B)
    start, cpu = time.perf_counter(), time.process_time()
    graph.compile(*batch)
    phases = ", ".join(f"{k} {v:.1f}" for k, v in graph.program.seconds.items())
    print(f"{time.process_time() - cpu:.1f} s CPU, {time.perf_counter() - start:.1f} s wall ({phases})")


PARTS = {"bubble": bubble, "processes": processes, "overhead": overhead, "compile": compile_times}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--stages", type=int, help="only compile the deep model in so many stages")
    parser.add_argument("--most", type=int, default=4, help="leave out bubbles of more stages")
    args = parser.parse_args()
    if args.stages:
        compile_once(args.stages)
    elif args.part == ["bubble"]:
        bubble(args.most)
    else:
        for part in args.part:
            PARTS[part]()
