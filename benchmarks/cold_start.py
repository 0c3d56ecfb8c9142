"""The first minute: what building a MobileNet-like net and its first training steps cost, with no cache.

    python benchmarks/cold_start.py                       # this checkout
    python benchmarks/cold_start.py --against ../before   # and another one, in turns in one run

Every round is a new process with the cache off, the checkouts in turns. Printed are medians of the process's CPU
seconds, all threads counted, of the seconds that passed, and the number of programs that XLA compiled, which does not
depend on the machine's load.
The net has 27 shapes of parameters; the batch is 2 × 3 × 64 × 64, the optimizer SGD with momentum.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

STEPS = 3


def measure() -> None:
    """Build and train in this process; print a list of [name, CPU seconds, programs, seconds] as JSON."""
    import jax

    programs = 0

    def listen(event: str, duration: float, **_: object) -> None:
        nonlocal programs
        programs += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    import sbpjax as flow
    from sbpjax import nn

    laps: list[tuple[str, float, int, float]] = []
    start, began = time.process_time(), time.perf_counter()

    def lap(name: str) -> None:
        nonlocal start, began, programs
        laps.append((name, time.process_time() - start, programs, time.perf_counter() - began))
        start, began, programs = time.process_time(), time.perf_counter(), 0

    def block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
        wide = inputs * 4
        return nn.Sequential(
            *(nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.Hardswish()),
            *(nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.Hardswish()),
            *(nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs)),
        )

    widths = ((16, 24, 2), (24, 24, 1), (24, 40, 2), (40, 40, 1), (40, 80, 2), (80, 80, 1), (80, 112, 1))
    model = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()),
        *(block(*w) for w in widths),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(112, 10)),
    )
    lap("build")
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for i in range(STEPS):
        loss = nn.functional.cross_entropy(model(flow.randn(2, 3, 64, 64)), flow.tensor([1, 2]))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        lap(f"step {i + 1}")
    print(json.dumps(laps))


def main() -> None:
    """Measure the checkouts in turns and print a table."""
    here = pathlib.Path(__file__).resolve()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", help="the root of another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure()
        return
    roots = [here.parents[1]] + ([pathlib.Path(options.against).resolve()] if options.against else [])
    found: dict[pathlib.Path, list[list]] = {root: [] for root in roots}
    for _ in range(options.rounds):
        for root in roots:
            env = os.environ | {"SBPJAX_CACHE_DIR": "off", "PYTHONPATH": str(root)}
            command = [sys.executable, str(here), "--measure"]
            done = subprocess.run(command, env=env, cwd=root, check=True, capture_output=True, text=True)
            found[root].append(json.loads(done.stdout.splitlines()[-1]))
    print("| what | " + " | ".join(f"{root.name}: CPU s | wall s | programs" for root in roots) + " |")
    print("|---|" + "---:|---:|---:|" * len(roots))
    for i, (name, *_) in enumerate(found[roots[0]][0]):
        cells = []
        for root in roots:
            cpu, wall = (statistics.median(r[i][k] for r in found[root]) for k in (1, 3))
            cells.append(f"{cpu:.2f} | {wall:.2f} | {found[root][0][i][2]}")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
