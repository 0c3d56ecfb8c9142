"""What it costs that ranks compare what they call (``SBPJAX_CHECK=sampled``), against ``off``, in one run.

    python -m sbpjax.distributed.launch --nproc_per_node 2 benchmarks/agreement.py

Prints, of rank 0, for an eager training step and a graph's:

- wall and processor time with both settings in turn (medians over blocks, so that a busy machine disturbs both alike);
  processor time is that of the whole process, its background threads included;
- the same added up: calls noted a step × the processor time of noting one, as far down in the library as the call was,
  and the processor time of the background thread, over the processor time of the step. This is the figure that a busy
  machine does not blur.
"""

from __future__ import annotations

import argparse
import statistics
import time

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.runtime import collective_trace
from sbpjax.distributed.rendezvous import start


def eager_step(width: int):
    """Return a training step of an MLP, op by op."""
    flow.manual_seed(0)
    p = flow.placement.all("cpu")
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to_global(p, flow.sbp.broadcast)
    optimizer = flow.optim.Adam(model.parameters(), lr=1e-3)
    x = flow.randn(64, width, placement=p, sbp=flow.sbp.split(0))

    def step() -> None:
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()

    return step


def graph_step(width: int):
    """Return a training step of the same MLP as a graph."""
    flow.manual_seed(0)
    p = flow.placement.all("cpu")
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to_global(p, flow.sbp.broadcast)
    optimizer = flow.optim.Adam(model.parameters(), lr=1e-3)
    x = flow.randn(64, width, placement=p, sbp=flow.sbp.split(0))

    class Step(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = (self.model(x) ** 2).mean()
            loss.backward()
            return loss

    graph = Step()
    return lambda: graph(x).item()


def switch(on: bool) -> None:
    """Let calls be noted and compared, or not: what ``off`` leaves out, within one process."""
    collective_trace.Call.note = NOTE if on else lambda self, numbers=(): None
    collective_trace.wake.set = WAKE if on else lambda: None
    collective_trace.raise_found_difference.__globals__["trails"] = TRACES if on else {}


NOTE, WAKE, TRACES = collective_trace.Call.note, collective_trace.wake.set, collective_trace.trails


def background_s() -> float:
    """Return the processor time that the thread which compares has used."""
    return time.clock_gettime(time.pthread_getcpuclockid(start._watch._comparison._thread.ident))


def compared(step, blocks: int, seconds: float) -> dict[bool, list[tuple[float, float, float, float]]]:
    """Return per step its wall and processor time, the background's, and the calls noted; by setting, of each block."""
    for _ in range(20):
        step()
    flow.distributed.barrier()
    begun = time.perf_counter()
    for _ in range(10):
        step()
    estimates = [None] * flow.env.get_world_size()
    flow.distributed.all_gather_object(estimates, max(5, int(seconds / ((time.perf_counter() - begun) / 10))))
    count = min(estimates)
    found: dict[bool, list] = {True: [], False: []}
    trace = collective_trace.trace_of(tuple(range(flow.env.get_world_size())))
    for block in range(2 * blocks):
        on = bool((block + block // 2) % 2)  # on off off on: a machine that slows down disturbs both
        flow.distributed.barrier()
        switch(on)
        wall, processor, background, noted = time.perf_counter(), time.process_time(), background_s(), trace.count
        for _ in range(count):
            step()
        now = time.perf_counter(), time.process_time(), background_s(), trace.count
        before = wall, processor, background, noted
        found[on].append(tuple((a - b) / count for a, b in zip(now, before, strict=True)))
        switch(True)
    return found


def report(name: str, found: dict) -> None:
    """Print one line."""
    for which, label in ((0, "wall"), (1, "processor")):
        on = statistics.median(f[which] for f in found[True])
        off = statistics.median(f[which] for f in found[False])
        ratios = [a[which] / b[which] for a, b in zip(found[True], found[False], strict=True)]
        ratio = statistics.median(ratios)
        spread = statistics.quantiles(ratios, n=4)
        print(
            f"{name:6} {label:9} sampled {on * 1e6:9.1f} us  off {off * 1e6:9.1f} us  "
            f"ratio {ratio:.4f} (quartiles {spread[0]:.4f} … {spread[2]:.4f})"
        )
    noted, note_us = statistics.median(f[3] for f in found[True]), noted_ns(6) / 1e3
    background = statistics.mean(f[2] for f in found[True]) * 1e6
    step_us = statistics.median(f[1] for f in found[False]) * 1e6
    share = (noted * note_us + background) / step_us
    print(
        f"{name:6} added up: {noted:.1f} calls x {note_us:.2f} us + background {background:.2f} us "
        f"of {step_us:.0f} us = {share:.2%}"
    )


def noted_ns(depth: int) -> float:
    """Return what noting a call takes, called through so many functions of the library."""
    call = collective_trace.Call(collective_trace.CollectiveTrace((0, 1)), "add")
    source = "def inner(note, n):\n    for _ in range(n): note()\n"
    for k in range(depth):
        source += f"def f{k}(note, n): return {'inner' if k == 0 else f'f{k - 1}'}(note, n)\n"
    space: dict = {}
    exec(compile(source, collective_trace.__file__, "exec"), space)
    run = space[f"f{depth - 1}"]
    best = []
    for _ in range(9):
        begun = time.thread_time_ns()
        run(call.note, 20000)
        best.append((time.thread_time_ns() - begun) / 20000)
    return statistics.median(best)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--blocks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    lines = []
    for name, step in (("eager", eager_step(options.width)), ("graph", graph_step(options.width))):
        lines.append((name, compared(step, options.blocks, options.seconds)))
    flow.distributed.barrier()
    if flow.env.get_rank() == 0:
        for name, found in lines:
            report(name, found)
        print(f"noting a call: {noted_ns(2):.0f} ns from 2 frames within the library, {noted_ns(8):.0f} ns from 8")
    flow.distributed.barrier()


if __name__ == "__main__":
    main()
