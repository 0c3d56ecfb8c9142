"""What saving a checkpoint costs the training loop: ``python -m benchmarks.checkpoint``.

A state of some hundred megabytes on eight devices (weights and Adam's moments, split over a 2 × 4 grid) is saved
synchronously, and asynchronously with the loop going on meanwhile. Times are medians of interleaved rounds:

    whole     `save(..., asynchronous=False)`, which the loop would wait for
    blocks    the call `save(..., asynchronous=True)`, after which the loop goes on
    until     from that call until the checkpoint is complete
    load      `load(into=...)` of it, checksums included

The claim: an asynchronous save blocks the loop for at most a quarter of a synchronous one: it copies, the other
copies, makes checksums and writes.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time

os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")

import jax

import sbpjax as flow
from sbpjax import checkpoint

CLAIM = 0.25


def state(megabytes: int, layers: int = 12) -> dict:
    """Return the state of a model of some megabytes: a third weights, two thirds moments."""
    grid = flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    sbp = [flow.sbp.split(0), flow.sbp.split(1)]
    side = int((megabytes * 1e6 / (3 * layers * 4)) ** 0.5) // 8 * 8
    make = lambda: flow.randn(side, side, placement=grid, sbp=sbp)  # noqa: E731
    return {kind: {f"layer{i}": make() for i in range(layers)} for kind in ("model", "exp_avg", "exp_avg_sq")}


def measure(made: dict, folder: str, asynchronous: bool) -> tuple[float, float]:
    """Return the seconds that one save blocks, and those until it is complete."""
    jax.block_until_ready([x._array for part in made.values() for x in part.values()])
    begun = time.perf_counter()
    saving = checkpoint.save(made, os.path.join(folder, "checkpoint"), asynchronous=asynchronous)
    blocked = time.perf_counter() - begun
    saving.wait()
    return blocked, time.perf_counter() - begun


def measure_load(made: dict, folder: str) -> float:
    """Return the seconds that one load into tensors takes."""
    begun = time.perf_counter()
    checkpoint.load(os.path.join(folder, "checkpoint"), into=made)
    jax.block_until_ready([x._array for part in made.values() for x in part.values()])
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default=None, help="where to write (a temporary directory)")
    options = parser.parse_args()
    made = state(options.megabytes)
    folder = tempfile.mkdtemp(dir=options.folder)
    whole, blocks, until, load = [], [], [], []
    try:
        measure(made, folder, True)  # imports, compiles
        measure_load(made, folder)
        for _ in range(options.rounds):
            whole.append(measure(made, folder, False)[0])
            blocked, done = measure(made, folder, True)
            blocks.append(blocked)
            until.append(done)
            load.append(measure_load(made, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    size = sum(x.numel() * x.element_size() for part in made.values() for x in part.values())
    ratio = statistics.median(blocks) / statistics.median(whole)
    tensors = sum(map(len, made.values()))
    print(f"{size / 1e6:.0f} MB in {tensors} tensors, {options.rounds} rounds, {os.cpu_count()} cores")
    for name, times in (("whole", whole), ("blocks", blocks), ("until", until), ("load", load)):
        span, middle = f"({min(times) * 1e3:.0f} to {max(times) * 1e3:.0f})", statistics.median(times)
        print(f"  {name:7s} {middle * 1e3:8.0f} ms   {span}   {size / 1e6 / middle:6.0f} MB/s")
    print(f"  blocks / whole = {ratio:.3f} (at most {CLAIM})")


if __name__ == "__main__":
    main()
