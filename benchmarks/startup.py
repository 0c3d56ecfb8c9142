"""Start-up: what importing sbpjax adds to importing jax, and what the persistent cache saves on the second start.

    python benchmarks/startup.py

The second part starts the same short training script twice with an empty cache directory, and compares the times
from process start to the end of the first step, in wall and in CPU seconds. Python's bytecode is there from the start,
as after an installation: the script has run once before with another cache directory.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 7

SCRIPT = """
import numpy as np
import sbpjax as flow
from sbpjax import nn
place = flow.placement.all("cpu")
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8))
model.to_global(place, flow.sbp.broadcast)
optimizer = flow.optim.Adam(model.parameters(), lr=1e-3)
x = flow.tensor(np.ones((16, 32), np.float32)).to_global(place, flow.sbp.split(0))
y = flow.tensor(np.zeros(16, np.int64)).to_global(place, flow.sbp.split(0))
loss = nn.functional.cross_entropy(model(x), y)
loss.backward()
optimizer.step()
print(loss.item())
"""


def seconds(code: str, **environment) -> tuple[float, float]:
    """Return wall and CPU time of a fresh process that runs ``code``."""
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env={**inherited, **environment}, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def median(runs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the medians of wall and of CPU time."""
    wall, cpu = zip(*runs)
    return statistics.median(wall), statistics.median(cpu)


def imports() -> None:
    jax, ours = [], []
    seconds("import sbpjax")  # writes the bytecode
    for _ in range(ROUNDS):
        jax.append(seconds("import jax, jax.numpy"))
        ours.append(seconds("import jax, jax.numpy, sbpjax"))
    (wall, cpu), (our_wall, our_cpu) = median(jax), median(ours)
    print(
        f"import   jax {wall:.2f} s, with sbpjax {our_wall:.2f} s: {our_wall - wall:+.2f} s, in CPU time "
        f"{our_cpu - cpu:+.2f} s  (target 0.30)"
    )


def starts() -> None:
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
        seconds(SCRIPT, SBPJAX_CACHE_DIR=other, SBPJAX_CPU_DEVICES="8")
        environment = {"SBPJAX_CACHE_DIR": cache, "SBPJAX_CPU_DEVICES": "8"}
        wall, cpu = seconds(SCRIPT, **environment)
        again, cpu_again = median([seconds(SCRIPT, **environment) for _ in range(5)])
    print(
        f"start    first {wall:.2f} s, second {again:.2f} s: {again / wall:.2f}; in CPU time {cpu:.2f} s, "
        f"{cpu_again:.2f} s: {cpu_again / cpu:.2f}  (target 0.35)"
    )


if __name__ == "__main__":
    imports()
    starts()
