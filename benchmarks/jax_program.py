"""Cost of sbpjax in a JAX program: its ops under `jax.jit` beside plain JAX, and eager ops under an ambient mesh.

    python -m benchmarks.jax_program

Prints ratios of CPU times, each of the least over rounds in which both sides run in turn: work of other processes does
not count in them. Forward and gradient of an attention block of 8 × 64 tokens of width 128 under
`jax.jit`; eager ops of tensors of 8 × 8, local and global, under `jax.set_mesh` of all devices and without.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import contextlib
import functools
import itertools
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import AxisType

import sbpjax as flow
from sbpjax import nn, sbp

ROUNDS, PASSES = 25, 5


def ratio(one: Callable, other: Callable, calls: int) -> float:
    """Return the least CPU time of ``one`` by that of ``other``, over rounds in which both run in turn."""

    def seconds(run: Callable) -> float:
        begin = time.process_time()
        for _ in range(calls):
            out = run()
        jax.block_until_ready(out)
        return time.process_time() - begin

    for run in (one, other):
        seconds(run)
    rounds = [(seconds(one), seconds(other)) for _ in range(ROUNDS)]
    return min(a for a, _ in rounds) / min(b for _, b in rounds)


def plain(w: dict, x: jax.Array) -> jax.Array:
    """Return the loss of a block in plain JAX."""
    b, t, d = x.shape
    h = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    q, k, v = (y.reshape(b, t, 4, -1) for y in jnp.split(h @ w["qkv"], 3, -1))
    x = x + jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(b, t, d) @ w["out"]
    return (jax.nn.gelu(x @ w["up"]) @ w["down"]).mean()


def ours(w: dict, x: jax.Array) -> jax.Array:
    """Return the same loss by sbpjax's functions."""
    w, x = {name: flow.from_jax(value) for name, value in w.items()}, flow.from_jax(x)
    b, t, d = x.shape
    h = nn.functional.layer_norm(x, (d,))
    q, k, v = (y.reshape(b, t, 4, -1).transpose(1, 2) for y in (h @ w["qkv"]).chunk(3, -1))
    out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + out.transpose(1, 2).reshape(b, t, d) @ w["out"]
    return (nn.functional.gelu(x @ w["up"], approximate="tanh") @ w["down"]).mean().jax()


def under_jit() -> None:
    """Print the ratios of compiled programs."""
    d = 128
    shapes = {"qkv": (d, 3 * d), "out": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
    w = {n: 0.02 * jax.random.normal(jax.random.key(i), s, "float32") for i, (n, s) in enumerate(shapes.items())}
    x = jax.random.normal(jax.random.key(9), (8, 64, d), "float32")
    for name, change in (("forward", lambda f: f), ("gradient", jax.grad)):
        a, b = jax.jit(change(ours)), jax.jit(change(plain))
        far = max(jax.tree.leaves(jax.tree.map(lambda x, y: float(abs(x - y).max()), a(w, x), b(w, x))))
        found = ratio(lambda a=a: a(w, x), lambda b=b: b(w, x), 20)
        print(f"jax.jit, {name}: {found:.3f} of plain JAX, largest difference {far:.1e}", flush=True)


def under_a_mesh() -> None:
    """Print the ratios of eager ops under a mesh to those without: of each the median of passes over all of them."""
    p = flow.placement("cpu", [[0, 1], [2, 3]])
    local, whole = flow.ones(8, 8), flow.ones(8, 8, placement=p, sbp=[sbp.split(0), sbp.broadcast])
    ops = {"add": lambda x: x + x, "matmul": lambda x: x @ x, "exp": lambda x: x.exp(), "sum": lambda x: x.sum(0)}
    found: dict[str, list[float]] = {}

    def run(mesh, op, x):
        with jax.set_mesh(mesh) if mesh is not None else contextlib.nullcontext():
            for _ in range(200):
                y = op(x)
        return y._fresh()._array

    for _ in range(PASSES):
        for types in (AxisType.Auto, AxisType.Explicit):
            mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(types,) * 2)
            for (kind, x), (name, op) in itertools.product({"local": local, "global": whole}.items(), ops.items()):
                sides = [functools.partial(run, m, op, x) for m in (mesh, None)]
                found.setdefault(f"{types.name} axes, {kind} {name}", []).append(ratio(*sides, 1))
    for title, ratios in found.items():
        print(f"{title}: {statistics.median(ratios):.3f} of without a mesh", flush=True)


if __name__ == "__main__":
    under_jit()
    under_a_mesh()
