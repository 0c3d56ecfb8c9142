"""Attention in blocks against the composition and PyTorch's `scaled_dot_product_attention`, on one CPU.

Forward and backward of 8 heads of 64, float32, as one compiled program here and op by op in PyTorch. Both are measured
in this process, in turns; times are the least CPU time of all threads, so a busy host disturbs them little.

    python benchmarks/attention.py                 # T = 4096: time and memory
    python benchmarks/attention.py --crossover     # from which length on blocks are faster than the composition
"""

from __future__ import annotations

import argparse
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np

from sbpjax._core.ops.attention.attention import scaled_dot_product_attention as attention

HEADS, WIDTH = 8, 64


def program(implementation: str, length: int, causal: bool):
    """Return forward and backward compiled for ``(1, HEADS, length, WIDTH)``."""

    def step(q, k, v, ct):
        run = lambda *x: attention(*x, is_causal=causal, implementation=implementation)  # noqa: E731
        out, back = jax.vjp(run, q, k, v)
        return out, *back(ct)

    x = jax.ShapeDtypeStruct((1, HEADS, length, WIDTH), "float32")
    return jax.jit(step).lower(x, x, x, x).compile()


def of_torch(arrays, causal: bool):
    """Return a call of PyTorch's forward and backward."""
    import torch

    q, k, v, ct = (torch.from_numpy(x) for x in arrays)
    inputs = [x.clone().requires_grad_() for x in (q, k, v)]

    def call():
        out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)
        return torch.autograd.grad(out, inputs, ct)

    return call


def cpu_seconds(calls: dict, rounds: int) -> dict:
    """Return the least CPU time of every call, measured in turns."""
    best = dict.fromkeys(calls, float("inf"))
    for n in range(rounds + 1):
        for name, call in calls.items():
            start = time.process_time()
            jax.block_until_ready(call())
            if n:  # the first warms up
                best[name] = min(best[name], time.process_time() - start)
    return best


def compare(length: int, causal: bool, rounds: int) -> None:
    """Print time and memory at one length."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((1, HEADS, length, WIDTH), dtype=np.float32) for _ in range(4)]
    on_device = [jax.device_put(x) for x in arrays]
    programs = {name: program(name, length, causal) for name in ("blocks", "plain")}
    calls = {name: (lambda p=p: p(*on_device)) for name, p in programs.items()}
    times = cpu_seconds({**calls, "torch": of_torch(arrays, causal)}, rounds)
    memory = {name: p.memory_analysis().temp_size_in_bytes / 2**20 for name, p in programs.items()}
    print(f"T = {length}, {HEADS} heads of {WIDTH}, {'causal' if causal else 'no mask'}, CPU seconds:", end=" ")
    print(", ".join(f"{name} {seconds:.3f}" for name, seconds in times.items()))
    by_torch, by_plain = (times["blocks"] / times[name] for name in ("torch", "plain"))
    print(f"  CPU time: blocks / torch {by_torch:.2f}, blocks / plain {by_plain:.2f}")
    less = memory["plain"] / memory["blocks"]
    print(f"  temporaries: {memory['blocks']:.0f} MiB in blocks, {memory['plain']:.0f} MiB plain: 1 / {less:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--crossover", action="store_true")
    options = parser.parse_args()
    print(f"jax {jax.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for length in (128, 256, 384, 512, 768, 1024) if options.crossover else (options.length,):
        for causal in (False, True):
            compare(length, causal, options.rounds)


if __name__ == "__main__":
    main()
