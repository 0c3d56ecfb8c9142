"""Eager work around a model against PyTorch: gradient clipping over many parameters, and chains of elementwise ops.

    python -m benchmarks.small_things

One CPU device, one core and one thread for either side, in turns; CPU time of the whole process, medians and the
median of the ratios of neighbouring rounds.

* clip: ``clip_grad_norm_`` over 300 parameters of 64 × 64, all gradients scaled down each time.
* chain: ten elementwise ops on 10⁶ floats, without and with backward.
"""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "1")

import jax
import numpy as np
import torch

import sbpjax as flow

ROUNDS, PARAMETERS, SIZE = 21, 300, 1_000_000


def clip(lib):
    """Return a function that clips the gradients of 300 parameters, and what it wrote."""
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(PARAMETERS, 64, 64)).astype(np.float32)
    parameters = [lib.nn.Parameter(lib.zeros(64, 64)) for _ in range(PARAMETERS)]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = lib.tensor(gradient)
    norms = iter(np.linspace(1000, 1, 1000))  # below the norm that the last call left

    def run():
        return [lib.nn.utils.clip_grad_norm_(parameters, float(next(norms))), parameters[-1].grad]

    return run


def chain(lib, backward: bool):
    """Return a function that runs ten elementwise ops, and their backward."""
    rng = np.random.default_rng(0)
    x, y = (lib.tensor(rng.normal(size=SIZE).astype(np.float32)) for _ in range(2))
    x.requires_grad_(backward)

    def run():
        z = x * 2 + y
        z = lib.tanh(z) * y - x
        z = lib.sigmoid(z) + lib.exp(-z * z)
        z = lib.clamp(z, -1, 1) / 2
        if not backward:
            return [z]
        x.grad = None
        z.sum().backward()
        return [x.grad]

    return run


def values_of(results: list) -> list[np.ndarray]:
    return [r.numpy() for r in results]


def measure(name: str, ours, peer) -> None:
    """Print the times of both, ours first; their results must agree."""
    times: tuple = [], []
    for number in range(ROUNDS + 3):
        results = []
        for side, run in zip(times, (ours, peer), strict=True):
            began = time.process_time()
            found = run()
            if side is times[0]:
                jax.block_until_ready([r._fresh()._array for r in found])
            if number >= 3:
                side.append(time.process_time() - began)
            results.append(values_of(found))
        for mine, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-5)
    ms = [statistics.median(side) * 1e3 for side in times]
    ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
    print(f"{name:16} {ms[0]:8.2f} / {ms[1]:8.2f} ms   ratio {ratio:.2f}  (target 1.00)", flush=True)


def main() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # XLA sizes its pool by it, at first use
    torch.set_num_threads(1)
    print(f"jax {jax.__version__}, torch {torch.__version__} on one core; ours / PyTorch")
    measure("clip", clip(flow), clip(torch))
    measure("chain", chain(flow, False), chain(torch, False))
    measure("chain, backward", chain(flow, True), chain(torch, True))


if __name__ == "__main__":
    main()
