"""Computation of each collective: functions of one rank's blocks inside `shard_map`.

``n`` is the number of ranks, ``axis`` the mesh axis; a 0-d block is a 0-d array. Each returns a tuple of blocks.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jax import lax

from sbpjax.sbp.multi_host import bits, from_uint_bits

_BITWISE = {"band": jnp.bitwise_and, "bor": jnp.bitwise_or, "bxor": jnp.bitwise_xor}


def reduce_ranks(x, axis: str, n: int, op: str):
    """Return the reduction of ``x`` over the ranks."""
    if x.dtype == jnp.bool_ and op in ("sum", "max", "min", "prod"):
        wide = x.astype(jnp.int32)
        return (lax.pmax(wide, axis) if op in ("sum", "max") else lax.pmin(wide, axis)).astype(jnp.bool_)
    if op == "sum":
        return lax.psum(x, axis)
    if op == "avg":
        return lax.psum(x, axis) / n
    if op == "max":
        return lax.pmax(x, axis)
    if op == "min":
        return lax.pmin(x, axis)
    return _fold_leading(lax.all_gather(x, axis), op)


def _fold_leading(stacked, op: str):
    """Reduce the leading dim."""
    if op in _BITWISE:
        return functools.reduce(_BITWISE[op], [stacked[i] for i in range(stacked.shape[0])])
    if stacked.dtype == jnp.bool_:
        return jnp.any(stacked, 0) if op in ("sum", "max") else jnp.all(stacked, 0)
    kinds = {"sum": jnp.sum, "avg": jnp.mean, "prod": jnp.prod, "max": jnp.max, "min": jnp.min}
    return kinds[op](stacked, 0).astype(stacked.dtype)


def all_reduce(*xs, axis, n, op):
    """Reduce each array over the ranks; several arrays are one program."""
    return tuple(reduce_ranks(x, axis, n, op) for x in xs)


def average(*xs, axis, n, cap_bytes):
    """Average each array over the ranks: joined by dtype into buckets, one all-reduce per bucket."""
    results: list = [None] * len(xs)
    buckets: dict = {}
    for i, x in enumerate(xs):
        bucket = buckets.setdefault(x.dtype, [[]])
        if bucket[-1] and sum(xs[k].nbytes for k in bucket[-1]) + x.nbytes > cap_bytes:
            bucket.append([])
        bucket[-1].append(i)
    for members in (m for lists in buckets.values() for m in lists):
        joined = lax.psum(jnp.concatenate([xs[i].reshape(-1) for i in members]), axis) / n
        start = 0
        for i in members:
            results[i] = lax.slice_in_dim(joined, start, start + xs[i].size).reshape(xs[i].shape)
            start += xs[i].size
    return tuple(results)


def all_gather(x, *, axis, n):
    """Return all blocks, stacked, on every rank."""
    return (lax.all_gather(x, axis),)


def broadcast(*xs, axis, n, src):
    """Return the blocks of rank ``src``, bit for bit, on every rank."""
    speaks = lax.axis_index(axis) == src
    return tuple(from_uint_bits(lax.psum(jnp.where(speaks, bits(x), 0), axis), x.dtype) for x in xs)


def scatter(x, *, axis, n, src):
    """Return on rank k the k-th row of rank ``src``'s block, bit for bit."""
    speaks = lax.axis_index(axis) == src
    mine = lax.psum_scatter(jnp.where(speaks, bits(x), 0), axis, scatter_dimension=0, tiled=False)
    return (from_uint_bits(mine, x.dtype),)


def reduce_scatter(x, *, axis, n, op):
    """Return on rank k the reduction of all ranks' k-th rows."""
    if op in ("sum", "avg") and x.dtype != jnp.bool_:
        out = lax.psum_scatter(x, axis, scatter_dimension=0, tiled=False)
        return (out / n if op == "avg" else out,)
    return (_fold_leading(lax.all_to_all(x, axis, 0, 0, tiled=False), op),)


def all_to_all(x, *, axis, n):
    """Return on rank k every rank's k-th row."""
    return (lax.all_to_all(x, axis, 0, 0, tiled=False),)


def permute_blocks(x, *, axis, n, pairs):
    """Send blocks from rank to rank; a rank without a sender gets zeros."""
    return (lax.ppermute(x, axis, pairs),)
