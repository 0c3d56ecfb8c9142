"""Draws that JAX has ready-made."""

from __future__ import annotations

import jax

from sbpjax._core.ops.randoms.random import _key
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.generator import default_generator
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.dispatch.op import op_of


def binomial(key: jax.Array, count: jax.Array, probs: jax.Array, /) -> jax.Array:
    """Return how many of `count` tries succeed."""
    return jax.random.binomial(_key(key), count, probs, dtype=probs.dtype)


def draw_binomial(count: Tensor, probs: Tensor) -> Tensor:
    """Return how many of `count` tries succeed, per element."""
    return dispatch.run(op_of(binomial), (default_generator.key(), count, probs))
