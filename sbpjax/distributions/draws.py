"""Sampler of the binomial distribution, over `jax.random`."""

from __future__ import annotations

import jax

from sbpjax import Tensor
from sbpjax.func import draw


def binomial(key: jax.Array, count: jax.Array, probs: jax.Array, /) -> jax.Array:
    """Return how many of `count` tries succeed."""
    return jax.random.binomial(key, count, probs, dtype=probs.dtype)


def draw_binomial(count: Tensor, probs: Tensor) -> Tensor:
    """Return how many of `count` tries succeed, per element."""
    return draw(binomial, count, probs)
