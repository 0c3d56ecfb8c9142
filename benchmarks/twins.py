"""The models of `benchmarks/models.py` as one writes them by hand in JAX with optax: the peers of the graph benchmarks.

Parameters are a dict under the names of the modules' ``state_dict``, so that both start from the same numbers. The text
is what JAX users write: `jax.nn`, `jax.value_and_grad`, one `jax.jit` with donated state.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import optax


def _linear(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def _cross_entropy(logits, targets):
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


def mlp(p, stats, x, y):
    """Return the loss and no statistics."""
    for i in (0, 2):
        x = jax.nn.relu(_linear(p, str(i), x))
    return _cross_entropy(_linear(p, "4", x), y), stats


def _layer_norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def _gelu(x):
    return 0.5 * x * (1 + jax.lax.erf(x * math.sqrt(0.5)))  # jax.nn.gelu takes erfc, which costs 7 times the FLOPs


def gpt(p, stats, tokens, targets, *, layers: int, heads: int):
    """Return the loss and no statistics."""
    batch, length = tokens.shape
    x = p["token.weight"][tokens] + p["position.weight"]
    width = x.shape[-1]
    causal = jnp.tril(jnp.ones((length, length), bool))
    for i in range(layers):
        name = f"blocks.{i}"
        y = _linear(p, f"{name}.qkv", _layer_norm(p, f"{name}.norm1", x))
        q, k, v = jnp.split(y.reshape(batch, length, heads, 3 * width // heads).transpose(0, 2, 1, 3), 3, -1)
        scores = q @ k.swapaxes(2, 3) / math.sqrt(width // heads)
        y = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), -1) @ v
        x = x + _linear(p, f"{name}.out", y.transpose(0, 2, 1, 3).reshape(batch, length, width))
        y = _gelu(_linear(p, f"{name}.up", _layer_norm(p, f"{name}.norm2", x)))
        x = x + _linear(p, f"{name}.down", y)
    logits = _layer_norm(p, "norm", x) @ p["token.weight"].T
    return _cross_entropy(logits.reshape(-1, logits.shape[-1]), targets), stats


def _conv(p, name, x, stride, pad):
    return jax.lax.conv_general_dilated(
        x, p[f"{name}.weight"], (stride, stride), [(pad, pad)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def _batch_norm(p, stats, new, name, x):
    mean = x.mean((0, 2, 3))
    var = x.var((0, 2, 3))
    count = x.size // x.shape[1]
    new[f"{name}.running_mean"] = 0.9 * stats[f"{name}.running_mean"] + 0.1 * mean
    new[f"{name}.running_var"] = 0.9 * stats[f"{name}.running_var"] + 0.1 * var * count / (count - 1)
    new[f"{name}.num_batches_tracked"] = stats[f"{name}.num_batches_tracked"] + 1
    scale = jax.lax.rsqrt(var + 1e-5) * p[f"{name}.weight"]
    return (x - mean[:, None, None]) * scale[:, None, None] + p[f"{name}.bias"][:, None, None]


def resnet18(p, stats, x, y):
    """Return the loss and the new statistics of the batch norms."""
    new: dict = {}
    norm = functools.partial(_batch_norm, p, stats, new)
    x = jax.nn.relu(norm("norm", _conv(p, "stem", x, 2, 3)))
    window = (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, *window)
    for i in range(8):
        name, stride = f"blocks.{i}", 2 if i in (2, 4, 6) else 1
        z = jax.nn.relu(norm(f"{name}.norm1", _conv(p, f"{name}.conv1", x, stride, 1)))
        z = norm(f"{name}.norm2", _conv(p, f"{name}.conv2", z, 1, 1))
        if stride == 2:
            x = norm(f"{name}.shortcut.1", _conv(p, f"{name}.shortcut.0", x, 2, 0))
        x = jax.nn.relu(z + x)
    return _cross_entropy(_linear(p, "head", x.mean((2, 3))), y), new


def _sgd():
    return optax.sgd(0.01, momentum=0.9)


def _adam():
    return optax.adamw(1e-3, weight_decay=0.01)


def twin(name: str, sizes: dict):
    """Return ``(params, optimizer state, statistics, x, y) -> (the same three, loss)`` compiled, and the optimizer.

    Args:
        name: one of `benchmarks.models.MODELS`.
        sizes: its sizes.
    """
    loss = mlp if name == "mlp" else resnet18
    if "layers" in sizes:
        loss = functools.partial(gpt, layers=sizes["layers"], heads=sizes["heads"])
    optimizer = _sgd() if loss is resnet18 else _adam()

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def step(params, state, stats, x, y):
        (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(params, stats, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, stats, value

    return step, optimizer
