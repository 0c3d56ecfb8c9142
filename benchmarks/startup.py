"""Start-up: what importing sbpjax adds to importing jax, and what the persistent cache saves on the second start.

    python benchmarks/startup.py

The second part starts the same short training script twice with an empty cache directory, and compares the times
from process start to the end of the first step.
"""

from __future__ import annotations

import os
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


def seconds(code: str, **environment) -> float:
    """Return the wall time of a fresh process that runs ``code``."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment}, capture_output=True)
    return time.perf_counter() - start


def imports() -> None:
    jax, ours = [], []
    for _ in range(ROUNDS):
        jax.append(seconds("import jax, jax.numpy"))
        ours.append(seconds("import jax, jax.numpy, sbpjax"))
    extra = statistics.median(ours) - statistics.median(jax)
    print(
        f"import   jax {statistics.median(jax):.2f} s, with sbpjax {statistics.median(ours):.2f} s: "
        f"{extra:+.2f} s  (target 0.30)"
    )


def starts() -> None:
    with tempfile.TemporaryDirectory() as cache:
        environment = {"SBPJAX_CACHE_DIR": cache, "SBPJAX_CPU_DEVICES": "8"}
        first = seconds(SCRIPT, **environment)
        second = statistics.median(seconds(SCRIPT, **environment) for _ in range(3))
    print(f"start    first {first:.2f} s, second {second:.2f} s: {second / first:.2f}  (target 0.35)")


if __name__ == "__main__":
    imports()
    starts()
