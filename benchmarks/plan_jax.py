"""Training steps of plain JAX laid out by `sbpjax.auto.plan`, beside `jax.jit` with shardings by hand.

A GPT-2 of 12 layers in Flax NNX (124M parameters, 1,024 tokens a sequence) and a Llama of 6.7 billion parameters as a
function over a dict (a checkpointed scan over 32 layers, 2,048 tokens), both with AdamW and one sequence a device.

    python -m benchmarks.plan_jax gpt 8 --report --hand dp fsdp tp           # or llama; on 2x4 dp+tp fsdp+tp, too
    python -m benchmarks.plan_jax llama v5p:4x4x4/16x4 --dtype bfloat16

Prints the seconds of planning, the planned collectives beside the compiled ones, with ``--report`` the strategies as
the same planner plans them, and with ``--hand`` the bytes of the same step compiled by `jax.jit` with a strategy's
shardings of parameters, optimizer state and batch. Nothing runs. Absent devices need the extra `aot`.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "8")
os.environ["SBPJAX_CACHE_DIR"] = "off"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import sbpjax
from sbpjax._core.compiler import hlo
from sbpjax._core.inspect.display import bytes_text

TX = optax.adamw(3e-4)


class Block(nnx.Module):
    """A block of GPT-2."""

    def __init__(self, width: int, heads: int, dtype, rngs: nnx.Rngs) -> None:
        linear = functools.partial(nnx.Linear, rngs=rngs, dtype=dtype, param_dtype=jnp.float32)
        self.ln1, self.ln2 = nnx.LayerNorm(width, rngs=rngs), nnx.LayerNorm(width, rngs=rngs)
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)
        self.up, self.down = linear(width, 4 * width), linear(4 * width, width)
        self.heads = heads

    def __call__(self, x):
        b, t, d = x.shape
        q, k, v = (y.reshape(b, t, self.heads, -1) for y in jnp.split(self.qkv(self.ln1(x)), 3, -1))
        x = x + self.out(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(b, t, d))
        return x + self.down(jax.nn.gelu(self.up(self.ln2(x))))


class GPT(nnx.Module):
    """GPT-2, small."""

    def __init__(self, dtype, rngs: nnx.Rngs) -> None:
        self.wte, self.wpe = nnx.Embed(50_304, 768, rngs=rngs), nnx.Embed(1024, 768, rngs=rngs)
        self.blocks = nnx.List([Block(768, 12, dtype, rngs) for _ in range(12)])
        self.ln = nnx.LayerNorm(768, rngs=rngs)

    def __call__(self, tokens):
        x = self.wte(tokens) + self.wpe(jnp.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.wte.attend(self.ln(x))


def cross_entropy(logits, targets):
    """Return the mean loss."""
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), targets).mean()


def gpt(ranks: int, dtype):
    """Return the step of the GPT and its arguments."""

    def make():
        model = GPT(dtype, nnx.Rngs(0))
        return model, nnx.Optimizer(model, TX, wrt=nnx.Param)

    def step(model, optimizer, tokens, targets):
        loss, grads = nnx.value_and_grad(lambda m: cross_entropy(m(tokens), targets))(model)
        optimizer.update(model, grads)
        return loss

    tokens = jax.ShapeDtypeStruct((ranks, 1024), jnp.int32)
    return step, (*nnx.eval_shape(make), tokens, tokens)


def _rms(x, scale):
    normal = x * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-5)
    return normal.astype(x.dtype) * scale.astype(x.dtype)


def _rotate(x):
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None] / 10_000 ** (jnp.arange(half, dtype=jnp.float32) / half)
    cos, sin = (f(angles)[None, :, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama(ranks: int, dtype):
    """Return the step of the Llama and its arguments."""
    vocab, d, heads, f, depth = 32_000, 4096, 32, 11_008, 32
    aval = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.float32)  # noqa: E731
    square = {name: aval(depth, d, d) for name in ("wq", "wk", "wv", "wo")}
    wide = {"gate": aval(depth, d, f), "up": aval(depth, d, f), "down": aval(depth, f, d)}
    layers = {**square, **wide, "n1": aval(depth, d), "n2": aval(depth, d)}
    params = {"embed": aval(vocab, d), "layers": layers, "norm": aval(d), "head": aval(d, vocab)}

    def layer(x, w):
        w = {name: v.astype(dtype) for name, v in w.items()}
        b, t, _ = x.shape
        h = _rms(x, w["n1"])
        q, k, v = ((h @ w[n]).reshape(b, t, heads, -1) for n in ("wq", "wk", "wv"))
        out = jax.nn.dot_product_attention(_rotate(q), _rotate(k), v, is_causal=True)
        x = x + out.reshape(b, t, d) @ w["wo"]
        h = _rms(x, w["n2"])
        return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], None

    def step(params, opt_state, tokens, targets):
        def loss_fn(p):
            x, _ = jax.lax.scan(jax.checkpoint(layer), p["embed"].astype(dtype)[tokens], p["layers"])
            return cross_entropy(_rms(x, p["norm"]) @ p["head"].astype(dtype), targets)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, opt_state = TX.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tokens = jax.ShapeDtypeStruct((ranks, 2048), jnp.int32)
    return step, (params, jax.eval_shape(TX.init, params), tokens, tokens)


def rule_of(strategy: str, mesh: Mesh):
    """Return the spec of a leaf by its name and shape, and of the batch, under a strategy as it is written by hand."""
    names = tuple(mesh.axis_names)
    data, tensor = names if "+" in strategy else (names, names)
    data = None if strategy == "tp" else data
    tensor = tensor if "tp" in strategy else None
    shard = data if "fsdp" in strategy else None

    def rule(name: str, shape: tuple) -> P:
        stacked = (None,) * (len(shape) == 3)
        own = name.removesuffix(".kernel").rpartition(".")[2]
        if len(shape) < 2:
            return P(tensor) if shape and name.endswith(("qkv.bias", "up.bias")) else P()
        if own in ("qkv", "up", "gate", "wq", "wk", "wv", "head"):
            return P(*stacked, shard, tensor)
        if own in ("out", "down", "wo"):
            return P(*stacked, tensor, shard)
        if own in ("embed", "embedding"):
            return P(tensor, shard)
        return P(*stacked, shard) if stacked else P(None, shard)

    return rule, P(data)


def by_hand(strategy: str, step, args: tuple, mesh: Mesh) -> dict[str, int]:
    """Return the bytes by kind of collective of a step compiled by `jax.jit` with a strategy's shardings."""
    uses_nnx = isinstance(args[0], nnx.Module)
    if uses_nnx:
        graph, state = nnx.split(args[:2])
    else:
        state = args[:2]

    def pure(state, *batch):
        if not uses_nnx:
            *state, loss = step(*state, *batch)
            return tuple(state), loss
        objects = nnx.merge(graph, state)
        loss = step(*objects, *batch)
        return nnx.state(objects), loss

    rule, batch = rule_of(strategy, mesh)

    def sharding(path, x):
        name = jax.tree_util.keystr(path, simple=True, separator=".").removesuffix(".value")
        return NamedSharding(mesh, rule(name, x.shape))

    shardings = jax.tree_util.tree_map_with_path(sharding, state)
    ins = (shardings, *[NamedSharding(mesh, batch)] * 2)
    outs = (shardings, NamedSharding(mesh, P()))
    jitted = jax.jit(pure, in_shardings=ins, out_shardings=outs, donate_argnums=0)
    found: dict[str, int] = {}
    for c in hlo.collectives(jitted.lower(state, *args[2:]).compile().as_text()):
        found[c.kind] = found.get(c.kind, 0) + c.interconnect_bytes
    return found


def mesh_of(text: str) -> Mesh:
    """Return the mesh of ``8``, ``2x4`` (CPU devices) or ``v5p:4x4x4/16x4``."""
    name, _, grid = text.rpartition("/")
    sizes = tuple(map(int, grid.split("x")))
    axes = ("data", "model")[: len(sizes)]
    if not name:
        return jax.make_mesh(sizes, axes, axis_types=(AxisType.Auto,) * len(sizes))
    return Mesh(sbpjax.placement.topology(name, sizes).devices, axes)


def main() -> None:
    """Print the figures of one step on one mesh."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=["gpt", "llama"])
    parser.add_argument("mesh")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--hand", nargs="*", default=[])
    options = parser.parse_args()
    mesh = mesh_of(options.mesh)
    step, args = {"gpt": gpt, "llama": llama}[options.model](mesh.devices.size, jnp.dtype(options.dtype))
    wall, cpu = time.time(), time.process_time()
    plan = sbpjax.auto.plan(step, *args, mesh=mesh)
    print(f"{plan}\nplanned in {time.process_time() - cpu:.1f} CPU seconds, {time.time() - wall:.1f} s", flush=True)
    print(plan.traffic(), flush=True)
    for strategy in options.hand:
        found = by_hand(strategy, step, args, mesh)
        kinds = ", ".join(f"{kind} {bytes_text(count)}" for kind, count in found.items())
        print(f"{strategy} by hand: {bytes_text(sum(found.values()))} ({kinds})", flush=True)
    if options.report:
        print(plan.report.tables()[0], flush=True)


if __name__ == "__main__":
    main()
