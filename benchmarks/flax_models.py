"""GPT-2 and Llama as one writes them in Flax NNX, with optax: the peers of `benchmarks/models_vs_flax.py`.

Modules have the names of `sbpjax.models`, so that both start from the same numbers. On a mesh the matrices are split
as in Megatron, by a table of partition specs; the batch and the residual stream are marked once for each block.

Shapes at the line ends: B batch, T positions, D width, H heads, C head.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

SPLIT = (  # endings of names, and how the parameter lies on the axes data and tensor
    (("embedding", "kernel"), P(None, "tensor")),
    (("token", "embedding"), P("tensor", None)),
    (("out", "kernel"), P("tensor", None)),
    (("down", "kernel"), P("tensor", None)),
    (("out", "bias"), P()),
    (("down", "bias"), P()),
    (("position", "embedding"), P()),
    (("bias",), P("tensor")),
    (("embedding",), P("tensor", None)),
    (("kernel",), P(None, "tensor")),
)


def mark(x):
    """Return the residual stream `(B, T, D)`, split over the axis data where there is a mesh."""
    return x if jax.sharding.get_abstract_mesh().empty else jax.lax.with_sharding_constraint(x, P("data"))


class Attention(nnx.Module):
    """Causal attention; keys and values may have fewer heads."""

    def __init__(self, width: int, heads: int, kv_heads: int, bias: bool, rngs: nnx.Rngs):
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        linear = functools.partial(nnx.Linear, width, use_bias=bias, rngs=rngs)
        self.q, self.out = linear(width), linear(width)
        self.k, self.v = linear(kv_heads * self.size), linear(kv_heads * self.size)

    def __call__(self, x, turn=None):
        batch, length, width = x.shape
        q = self.q(x).reshape(batch, length, self.heads, self.size)  # (B, T, H, C)
        k = self.k(x).reshape(batch, length, self.kv_heads, self.size)
        v = self.v(x).reshape(batch, length, self.kv_heads, self.size)
        if turn is not None:
            q, k = turn(q), turn(k)
        return self.out(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(batch, length, width))


class GPT2MLP(nnx.Module):
    """Two matrices with a GELU between them."""

    def __init__(self, width: int, rngs: nnx.Rngs):
        self.up, self.down = nnx.Linear(width, 4 * width, rngs=rngs), nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x):
        return self.down(nnx.gelu(self.up(x)))


class GPT2Block(nnx.Module):
    """Attention and MLP behind layer norms."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs):
        self.norm1 = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)
        self.attention = Attention(width, heads, heads, True, rngs)
        self.norm2 = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)
        self.mlp = GPT2MLP(width, rngs)

    def __call__(self, x):
        x = mark(x + self.attention(self.norm1(x)))
        return mark(x + self.mlp(self.norm2(x)))


class GPT2(nnx.Module):
    """Learned positions; the output matrix is the embedding."""

    def __init__(self, vocab: int, length: int, width: int, layers: int, heads: int):
        rngs = nnx.Rngs(0)
        self.token = nnx.Embed(vocab, width, rngs=rngs)
        self.position = nnx.Embed(length, width, rngs=rngs)
        self.blocks = nnx.List(GPT2Block(width, heads, rngs) for _ in range(layers))
        self.norm = nnx.LayerNorm(width, epsilon=1e-5, rngs=rngs)

    def __call__(self, tokens):
        x = mark(self.token(tokens) + self.position(jnp.arange(tokens.shape[1])))
        for block in self.blocks:
            x = block(x)
        return self.token.attend(self.norm(x))


class LlamaMLP(nnx.Module):
    """SwiGLU."""

    def __init__(self, width: int, hidden: int, rngs: nnx.Rngs):
        self.gate = nnx.Linear(width, hidden, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(width, hidden, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(hidden, width, use_bias=False, rngs=rngs)

    def __call__(self, x):
        return self.down(nnx.silu(self.gate(x)) * self.up(x))


class LlamaBlock(nnx.Module):
    """Attention and MLP behind RMS norms."""

    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int, rngs: nnx.Rngs):
        self.attention_norm = nnx.RMSNorm(width, epsilon=1e-6, rngs=rngs)
        self.attention = Attention(width, heads, kv_heads, False, rngs)
        self.mlp_norm = nnx.RMSNorm(width, epsilon=1e-6, rngs=rngs)
        self.mlp = LlamaMLP(width, hidden, rngs)

    def __call__(self, x, turn):
        x = mark(x + self.attention(self.attention_norm(x), turn))
        return mark(x + self.mlp(self.mlp_norm(x)))


class Llama(nnx.Module):
    """Rotary positions; an output matrix of its own."""

    def __init__(self, vocab: int, width: int, layers: int, heads: int, kv_heads: int, hidden: int):
        rngs = nnx.Rngs(0)
        self.size = width // heads
        self.embedding = nnx.Embed(vocab, width, rngs=rngs)
        self.blocks = nnx.List(LlamaBlock(width, heads, kv_heads, hidden, rngs) for _ in range(layers))
        self.norm = nnx.RMSNorm(width, epsilon=1e-6, rngs=rngs)
        self.head = nnx.Linear(width, vocab, use_bias=False, rngs=rngs)

    def __call__(self, tokens):
        turns = 10000.0 ** (-jnp.arange(0, self.size, 2, dtype=jnp.float32) / self.size)
        angles = jnp.arange(tokens.shape[1], dtype=jnp.float32)[:, None, None] * turns  # (T, 1, C / 2)
        cos, sin = jnp.cos(angles), jnp.sin(angles)

        def turn(x):  # (B, T, H, C)
            a, b = jnp.split(x, 2, -1)
            return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

        x = mark(self.embedding(tokens))
        for block in self.blocks:
            x = block(x, turn)
        return self.head(self.norm(x))


def load(model: nnx.Module, values: dict[str, np.ndarray], mesh: jax.sharding.Mesh | None) -> None:
    """Give a model the parameters of ours, by name, and lay them out on a mesh."""
    for path, variable in nnx.to_flat_state(nnx.state(model, nnx.Param)):
        names = tuple(map(str, path))
        ours = ".".join((*names[:-1], "bias" if names[-1] == "bias" else "weight"))
        value = values.pop(ours)
        value = value.T if names[-1] == "kernel" else value
        if mesh is not None:
            spec = next((s for ending, s in SPLIT if names[-len(ending) :] == ending), P())
            value = jax.device_put(value, NamedSharding(mesh, spec))
        variable.set_value(jnp.asarray(value))
    assert not values, list(values)


def trainer(model: nnx.Module):
    """Return ``(state, x, y) -> (state, loss)``, compiled with donated state, and the first state."""
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3, weight_decay=0.01), wrt=nnx.Param)
    graph, state = nnx.split((model, optimizer))

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, x, y):
        model, optimizer = nnx.merge(graph, state)

        def loss_of(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

        loss, grads = nnx.value_and_grad(loss_of)(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), loss

    return step, state
