"""Whole training steps in pure JAX, and the pins of the usual strategies; for tests and benchmarks of the planner.

A *step* is a flat function: ``step(*leaves) -> (*new_leaves, loss)`` over the leaves of (parameters, Adam's first and
second moments, step count, batch). `Step` knows which leaf is what, so that a strategy is a few lines of sbp per
parameter name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

B = -1


@dataclass
class Step:
    """A training step with its leaves named.

    Attributes:
        fn: flat leaves → flat new state and the loss.
        names: the name of every input leaf, e.g. ``p.h0.wq``, ``m.h0.wq``, ``count``, ``x.tokens``.
        avals: shape and dtype of every input leaf.
        state: how many leaves are state; they come first, and come out in the same order.
    """

    fn: object
    names: list[str]
    avals: list
    state: int

    def values(self, seed: int = 0) -> list[np.ndarray]:
        """Return example values: small random parameters, zero moments, a random batch."""
        rng = np.random.default_rng(seed)
        result = []
        for name, aval in zip(self.names, self.avals):
            if name.startswith("p."):
                scale = 1.0 if len(aval.shape) == 1 else 1 / math.sqrt(aval.shape[0])
                value = (rng.standard_normal(aval.shape) * scale * 0.5).astype(aval.dtype)
            elif name.startswith("x.") and np.issubdtype(aval.dtype, np.integer):
                value = rng.integers(0, self.vocab, aval.shape).astype(aval.dtype)
            elif name.startswith("x."):
                value = rng.standard_normal(aval.shape).astype(aval.dtype)
            elif name.startswith("v."):
                value = np.full(aval.shape, 1e-2, aval.dtype)
            else:
                value = np.zeros(aval.shape, aval.dtype)
            result.append(value)
        return result

    vocab: int = 0


def _flat_step(loss_fn, params: dict, batch: dict, vocab: int = 0) -> Step:
    """Return the Adam step of ``loss_fn(params, batch)`` over flat leaves."""
    paths, tree = jax.tree_util.tree_flatten_with_path(params)
    names = [".".join(str(getattr(k, "key", getattr(k, "idx", k))) for k in path) for path, _ in paths]
    leaves = [leaf for _, leaf in paths]
    batch_names = list(batch)
    count = len(leaves)

    def step(*flat):
        p, m, v = flat[:count], flat[count : 2 * count], flat[2 * count : 3 * count]
        t = flat[3 * count] + 1
        data = dict(zip(batch_names, flat[3 * count + 1 :]))
        loss, grads = jax.value_and_grad(lambda q: loss_fn(jax.tree.unflatten(tree, q), data))(list(p))
        time = t.astype(jnp.float32)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**time) / (1 - 0.9**time)
        new_m = [0.9 * a + 0.1 * g for a, g in zip(m, grads)]
        new_v = [0.999 * a + 0.001 * g * g for a, g in zip(v, grads)]
        new_p = [w - rate * a / (jnp.sqrt(b) + 1e-8) for w, a, b in zip(p, new_m, new_v)]
        return (*new_p, *new_m, *new_v, t, loss)

    avals = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves] * 3
    avals += [jax.ShapeDtypeStruct((), jnp.int32)]
    avals += [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in batch.values()]
    every = [f"{kind}.{n}" for kind in "pmv" for n in names] + ["count"] + [f"x.{n}" for n in batch_names]
    return Step(step, every, avals, 3 * count + 1, vocab)


def _f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def mlp(batch: int, width: int, hidden: int, layers: int = 2, bias: bool = True) -> Step:
    """Return the Adam step of an MLP ``width → hidden → width``, of ``layers`` matrices, with a squared loss."""
    sizes = [width if i % 2 == 0 else hidden for i in range(layers + 1)]
    params = [{"w": _f32(a, b), **({"b": _f32(b)} if bias else {})} for a, b in zip(sizes, sizes[1:])]

    def loss(params, data):
        x = data["x"]
        for i, layer in enumerate(params):
            x = x @ layer["w"]
            if bias:
                x = x + layer["b"]
            if i + 1 < len(params):
                x = jax.nn.relu(x)
        return jnp.mean((x - data["y"]) ** 2)

    return _flat_step(loss, params, {"x": _f32(batch, sizes[0]), "y": _f32(batch, sizes[-1])})


def wide_deep(rows: int, width: int, fields: int, batch: int, hidden: int) -> Step:
    """Return the Adam step of wide & deep: a weight per id, and a network of one hidden layer over their embeddings."""
    params = {"wte": _f32(rows, width), "wide": _f32(rows), "up": _f32(fields * width, hidden), "upb": _f32(hidden)}
    params["down"] = _f32(hidden, 1)

    def loss(params, data):
        ids = data["ids"]  # (B, F)
        deep = params["wte"][ids].reshape(batch, fields * width)
        deep = jax.nn.relu(deep @ params["up"] + params["upb"]) @ params["down"]  # (B, 1)
        score = params["wide"][ids].sum(1) + deep[:, 0]
        return jnp.mean(jnp.logaddexp(0.0, score) - data["clicked"] * score)

    ids = jax.ShapeDtypeStruct((batch, fields), jnp.int32)
    return _flat_step(loss, params, {"ids": ids, "clicked": _f32(batch)}, rows)


def _norm(x, scale, shift):
    mean = jnp.mean(x, -1, keepdims=True)
    centred = x - mean
    return centred * jax.lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5) * scale + shift


def gpt_loss(params, data, heads: int, constrain=lambda x, kind: x):
    """Return the loss of a GPT; ``constrain(x, kind)`` lets a hand-written sharding mark activations."""
    tokens = data["tokens"]
    batch, time = tokens.shape
    width = params["wte"].shape[1]
    x = constrain(params["wte"][tokens] + params["wpe"][:time], "residual")  # (B, T, D)
    mask = jnp.tril(jnp.ones((time, time), bool))
    for layer in params["h"]:
        y = _norm(x, layer["ln1"], layer["ln1b"])
        q, k, v = (
            constrain((y @ layer[n] + layer[f"{n}b"]).reshape(batch, time, heads, width // heads), "heads")
            for n in ("wq", "wk", "wv")
        )
        score = jnp.einsum("bthd,bshd->bhts", q, k) / math.sqrt(width // heads)
        weight = jax.nn.softmax(jnp.where(mask, score, -1e9), axis=-1)  # (B, H, T, T)
        mixed = constrain(jnp.einsum("bhts,bshd->bthd", weight, v), "heads").reshape(batch, time, width)
        x = constrain(x + mixed @ layer["wo"] + layer["wob"], "residual")
        y = _norm(x, layer["ln2"], layer["ln2b"])
        hidden = constrain(jax.nn.gelu(y @ layer["up"] + layer["upb"]), "hidden")  # (B, T, 4D)
        x = constrain(x + hidden @ layer["down"] + layer["downb"], "residual")
    logits = constrain(_norm(x, params["lnf"], params["lnfb"]) @ params["head"], "logits")  # (B, T, V)
    log_p = jax.nn.log_softmax(logits, axis=-1)
    return -jnp.mean(jnp.take_along_axis(log_p, data["targets"][..., None], axis=-1))


def gpt_params(layers: int, width: int, vocab: int, time: int) -> dict:
    """Return the shapes of a GPT's parameters."""
    layer = {
        "ln1": _f32(width), "ln1b": _f32(width), "ln2": _f32(width), "ln2b": _f32(width),
        "up": _f32(width, 4 * width), "upb": _f32(4 * width), "down": _f32(4 * width, width), "downb": _f32(width),
    }  # fmt: skip
    for n in ("wq", "wk", "wv", "wo"):
        layer |= {n: _f32(width, width), f"{n}b": _f32(width)}
    return {
        "wte": _f32(vocab, width),
        "wpe": _f32(time, width),
        "h": [dict(layer) for _ in range(layers)],
        "lnf": _f32(width),
        "lnfb": _f32(width),
        "head": _f32(width, vocab),
    }


def gpt(layers: int, batch: int, time: int, width: int, heads: int, vocab: int, constrain=lambda x, kind: x) -> Step:
    """Return the Adam step of a GPT with learned positions and an untied head; for ``constrain`` see `gpt_loss`."""
    data = {n: jax.ShapeDtypeStruct((batch, time), jnp.int32) for n in ("tokens", "targets")}
    params = gpt_params(layers, width, vocab, time)
    return _flat_step(lambda p, d: gpt_loss(p, d, heads, constrain), params, data, vocab)


# --- strategies -------------------------------------------------------------------------------------------------------

# Megatron's layout: columns of the first matrix, rows of the second, and the vocabulary.
_MEGATRON = {
    "wq": 1, "wk": 1, "wv": 1, "wqb": 0, "wkb": 0, "wvb": 0, "wo": 0, "up": 1, "upb": 0, "down": 0, "wte": 0, "head": 1,
    "0.w": 1, "0.b": 0, "1.w": 0,
}  # fmt: skip


def _tensor_parallel(name: str) -> int:
    parts = name.split(".")
    return _MEGATRON.get(parts[-1], _MEGATRON.get(".".join(parts[-2:]), B))


def pins(step: Step, strategy: str) -> list[tuple[int, ...]]:
    """Return the nd-sbp of every input leaf.

    Args:
        step: the training step.
        strategy: ``dp``, ``tp``, ``zero1``, ``fsdp`` (one axis), or ``dp+tp``, ``fsdp+tp``… (two axes, outer first).
    """
    per_axis = [_pins_1d(step, s) for s in strategy.split("+")]
    return [tuple(codes) for codes in zip(*per_axis)]


def _pins_1d(step: Step, strategy: str) -> list[int]:
    found = []
    for name, aval in zip(step.names, step.avals):
        kind, _, leaf = name.partition(".")
        code = B
        if not aval.shape:
            code = B
        elif strategy == "tp":
            code = B if kind == "x" else _tensor_parallel(leaf)
        elif kind == "x":
            code = 0
        elif strategy == "fsdp" or (strategy == "zero1" and kind in "mv"):
            code = 0
        found.append(code)
    return found
