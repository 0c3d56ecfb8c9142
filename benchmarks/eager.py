"""Eager speed: main-thread CPU time of one op, of a training step, and of an op on eight devices.

    NPROC=32 SBPJAX_CPU_DEVICES=8 python benchmarks/eager.py

Main-thread CPU time is what a user's loop pays; XLA computes on other threads. Peers run in the same process,
interleaved, so that a noisy machine disturbs both: every figure is a median over rounds, every claim a ratio. Torch
is given one thread.

* op: a recorded elementwise add and matmul of 64 × 64 against a cached `jax.jit` call of the same function.
* step: forward, backward and Adam update of a 2-layer transformer (B 4, T 16, D 32) against PyTorch eager.
* global: an add of two tensors split over eight devices.
* boxing: `to_global` and `to_local` of a small tensor on four devices, and of each the calls of Python functions.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time

os.environ.setdefault("SBPJAX_EVALUATE", "0")  # the steady state, in which NumPy computes no op any longer

import jax
import jax.numpy as jnp
import numpy as np
import torch

import sbpjax as flow

ROUNDS = 41


def interleaved(cases: dict, repeat: int) -> dict[str, float]:
    """Return the median main-thread microseconds per call of each case."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for run in cases.values():
        for _ in range(5):
            run()
    for _ in range(ROUNDS):
        for name, run in cases.items():
            start = time.thread_time()
            for _ in range(repeat):
                result = run()
            times[name].append((time.thread_time() - start) / repeat * 1e6)
            settle(result)
    return {name: statistics.median(values) for name, values in times.items()}


def settle(result) -> None:
    """Wait until a result is there, so that no case queues work for the next."""
    array = getattr(result, "_array", result)
    if isinstance(array, jax.Array):
        array.block_until_ready()


def ops() -> None:
    value = np.ones((64, 64), np.float32)
    raw = jnp.asarray(value)
    x = flow.tensor(value).requires_grad_()
    y = flow.tensor(value).requires_grad_()
    add, matmul = jax.jit(jnp.add), jax.jit(jnp.matmul)
    found = interleaved(
        {
            "jit add": lambda: add(raw, raw),
            "recorded add": lambda: x + y,
            "jit matmul": lambda: matmul(raw, raw),
            "recorded matmul": lambda: x @ y,
        },
        repeat=200,
    )
    for name in ("add", "matmul"):
        ours, peer = found[f"recorded {name}"], found[f"jit {name}"]
        print(f"{name:8} recorded {ours:6.1f} us   jax.jit {peer:6.1f} us   ratio {ours / peer:.2f}  (target 1.50)")


def transformer(lib, nn, F):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
            self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
            self.up, self.down = nn.Linear(32, 128), nn.Linear(128, 32)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 4, 24).transpose(1, 2).chunk(3, dim=-1)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.position = nn.Embedding(64, 32), nn.Embedding(16, 32)
            self.blocks = nn.ModuleList([Block(), Block()])
            self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 64)

        def forward(self, tokens, places):
            x = self.embed(tokens) + self.position(places)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    model = Model()
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)
    tokens = lib.tensor(rng.integers(0, 64, (4, 16)))
    targets = lib.tensor(rng.integers(0, 64, (64,)))
    places = lib.tensor(np.arange(16))

    def step():
        loss = F.cross_entropy(model(tokens, places).reshape(64, 64), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def steps() -> None:

    ours = transformer(flow, flow.nn, flow.nn.functional)
    peer = transformer(torch, torch.nn, torch.nn.functional)
    found = interleaved({"sbpjax": ours, "torch": peer}, repeat=5)
    ratio = found["sbpjax"] / found["torch"]
    print(
        f"step     sbpjax {found['sbpjax'] / 1e3:6.2f} ms   torch {found['torch'] / 1e3:6.2f} ms   "
        f"ratio {ratio:.2f}  (target 1.00)"
    )


def global_op() -> None:
    place = flow.placement.all("cpu")
    x = flow.ones(64, 64, placement=place, sbp=flow.sbp.split(0))
    y = flow.ones(64, 64, placement=place, sbp=flow.sbp.split(0))
    add = jax.jit(jnp.add)
    a, b = x.jax(), y.jax()
    found = interleaved({"sbpjax": lambda: x + y, "jit": lambda: add(a, b)}, repeat=100)
    print(
        f"global   {place.size} devices: sbpjax {found['sbpjax']:6.1f} us   jax.jit {found['jit']:6.1f} us   "
        f"ratio {found['sbpjax'] / found['jit']:.2f}  (target 50 us)"
    )


def count_calls(run) -> int:
    """Return how many Python functions a call runs."""
    events = []
    sys.setprofile(lambda frame, event, arg: events.append(event))
    run()
    sys.setprofile(None)
    return events.count("call")


def boxing() -> None:
    place = flow.placement("cpu", [0, 1, 2, 3])
    split, broadcast = flow.sbp.split(0), flow.sbp.broadcast
    x = flow.ones(8, 4, placement=place, sbp=split)
    y = flow.ones(8, 4, placement=place, sbp=broadcast)
    cases = {
        "S0 -> B": lambda: x.to_global(place, broadcast),
        "B -> S0": lambda: y.to_global(place, split),
        "to_local": lambda: x.to_local(),
    }
    for name, time_us in interleaved(cases, repeat=100).items():
        print(f"boxing   {name:8} {time_us:6.1f} us   {count_calls(cases[name]) - 1} calls")


def main() -> None:
    torch.set_num_threads(1)
    print(f"{platform.processor() or platform.machine()}, jax {jax.__version__}, torch {torch.__version__}")
    ops()
    steps()
    global_op()
    boxing()


if __name__ == "__main__":
    main()
