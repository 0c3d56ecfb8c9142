"""Ops that meet a new shape in each call: CPU time and memory a shape, beside `jax.numpy`.

    python -m benchmarks.new_shapes                # 1,000 shapes of each op
    python -m benchmarks.new_shapes --shapes 100

The arrays are (3, 100), (3, 101), …; one CPU device, no cache on disk, CPU milliseconds of the process, all threads
counted. Resident memory is what the process has gained by then, in MB.
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["SBPJAX_CPU_DEVICES"] = "1"
os.environ["SBPJAX_CACHE_DIR"] = "off"
os.environ["SBPJAX_COMPILE_NOTE"] = "off"

import jax
import numpy as np
from jax import numpy as jnp

import sbpjax as flow

OURS = {
    "cat": lambda x: flow.cat([x, x], 0),
    "sum": lambda x: x.sum(1),
    "softmax": lambda x: flow.softmax(x, -1),
    "index": lambda x: x[1:, 5:],
}
JAX = {
    "cat": lambda x: jnp.concatenate([x, x]),
    "sum": lambda x: x.sum(1),
    "softmax": jax.nn.softmax,
    "index": lambda x: x[1:, 5:],
}


def resident() -> float:
    """Return the resident memory of this process in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def measure(op, inputs: list) -> tuple[float, float]:
    """Return CPU milliseconds and MB a call of an op on new shapes."""
    np.asarray(op(inputs[0]))
    memory, began = resident(), time.process_time()
    for x in inputs[1:]:
        np.asarray(op(x))
    count = len(inputs) - 1
    return (time.process_time() - began) / count * 1e3, (resident() - memory) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=int, default=1000)
    shapes = [(3, 100 + i) for i in range(parser.parse_args().shapes)]
    arrays = [np.random.default_rng(i).normal(size=shape).astype(np.float32) for i, shape in enumerate(shapes)]
    print(f"jax {jax.__version__}, {len(shapes)} shapes, load {os.getloadavg()[0]:.0f}")
    print("| op | sbpjax ms | jax.numpy ms | sbpjax MB | jax.numpy MB |\n|---|---|---|---|---|")
    for name in OURS:
        ours = measure(OURS[name], [flow.tensor(a) for a in arrays])
        theirs = measure(JAX[name], [jnp.asarray(a) for a in arrays])
        print(f"| {name} | {ours[0]:.1f} | {theirs[0]:.1f} | {ours[1]:.2f} | {theirs[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
