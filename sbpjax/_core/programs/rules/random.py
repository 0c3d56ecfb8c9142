"""Sharding rules of random keys and random bits.

``random_bits`` of shape ``(8, 6)`` hashes the numbers 0 to 47, one per element, with the key (JAX's partitionable
threefry). A rank that holds rows 2 and 3 hashes 12 to 23: no rank generates another's elements, and the stream is the
same under every layout. Keys of other kinds generate everywhere and are cut.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.jax_private import threefry2x32_p

from .table import B, Context, Strategy, compute_whole, local, rule, same_dims

_SMALL = 2**32


@rule("random_clone")
def clone(eqn, size: int) -> list[Strategy]:
    """Split any dim of the keys."""
    return same_dims(eqn)


@rule("random_seed", "random_fold_in")
def make_keys(eqn, size: int) -> list[Strategy]:
    """Split any dim: every key is made on its own."""
    return same_dims(eqn) if _threefry(eqn.outvars[0]) else []


@rule("random_wrap", "random_unwrap")
def wrap_or_unwrap_keys(eqn, size: int) -> list[Strategy]:
    """Split dims of the keys; the words of one key stay together."""
    keys = min((v.aval.shape for v in (eqn.invars[0], eqn.outvars[0])), key=len)
    return [Strategy((d,), (d,)) for d, n in enumerate(keys) if n > 1]


@rule("random_bits", "random_split")
def generate(eqn, size: int) -> list[Strategy]:
    """Split dims of the keys S → S; a new dim may be made split from broadcast keys."""
    if not _threefry(eqn.invars[0]):
        return []
    keys, out = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    return [Strategy((d if d < len(keys) else B,), (d,)) for d, n in enumerate(out) if n > 1]


def _threefry(variable) -> bool:
    # `tag` names the kind of key; jax has no public test for it.
    config: Any = jax.config  # its flags are made at run time
    return variable.aval.dtype._impl.tag == "fry" and config.jax_threefry_partitionable


@local("random_bits", "random_split")
def generate_local(ctx: Context, keys):
    """Hash the numbers of this rank's elements."""
    first = len(ctx.in_shape(0))
    if all(code < first for code in ctx.outs[0]):
        return compute_whole(ctx, [keys])
    shape = ctx.local_out()
    high, low = _numbers(ctx, first, shape)
    data = jax.random.key_data(keys)
    one, two = (jax.lax.broadcast_in_dim(data[..., k], shape, range(first)) for k in (0, 1))
    one, two = threefry2x32_p.bind(one, two, high, low)
    if ctx.eqn.primitive.name == "random_split":
        return jax.random.wrap_key_data(jnp.stack([one, two], -1), impl=ctx.eqn.outvars[0].aval.dtype._impl)
    width = ctx.params["bit_width"]
    dtype = jnp.dtype(f"uint{width}")
    if width == 64:
        return (one.astype(dtype) << jnp.asarray(32, dtype)) | two.astype(dtype)
    return (one ^ two).astype(dtype)


@rule("iota_2x32_shape")
def iota_2x32(eqn, size: int) -> list[Strategy]:
    """Split any dim: each rank counts its own elements."""
    return [Strategy((), (d, d)) for d, n in enumerate(eqn.params["shape"]) if n > 1]


@local("iota_2x32_shape")
def iota_2x32_local(ctx: Context):
    """Count this rank's elements."""
    return _numbers(ctx, 0, ctx.local_out())


def _numbers(ctx: Context, first: int, shape: tuple[int, ...]):
    """Return the high and low words of the row-major numbers of this rank's elements, dims before `first` aside."""
    whole = ctx.out_shape()
    dtype = jnp.uint32 if math.prod(whole[first:]) <= _SMALL else jnp.uint64
    number = jnp.zeros(shape, dtype)
    for d in range(first, len(whole)):
        offset, _ = ctx.out_part(0, d)
        index = jnp.asarray(offset).astype(dtype) + jax.lax.broadcasted_iota(dtype, shape, d)
        number += index * jnp.asarray(math.prod(whole[d + 1 :]), dtype)
    if dtype == jnp.uint32:
        return jnp.zeros_like(number), number
    return (number >> jnp.asarray(32, dtype)).astype(jnp.uint32), number.astype(jnp.uint32)


@rule("threefry2x32")
def threefry(eqn, size: int) -> list[Strategy]:
    """Split any dim of the counters: a hash is pointwise."""
    return same_dims(eqn)
