"""Sharding rules of shape primitives: transpose, reshape, broadcast, slice, concatenate, iota.

Reshape is an algebra of dim groups: ``(4, 8, 12) → (32, 12)`` has the groups ``(4, 8) → (32)`` and ``(12) → (12)``,
and a split survives on the leading dim of its group, provided it divides evenly.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from .table import B, Context, P, Strategy, is_number, local, other_dims, rule


def _partial(eqn) -> list[Strategy]:
    # Keys are no numbers: there is no sum of keys.
    return [Strategy((P,) * len(eqn.invars), (P,) * len(eqn.outvars))] if is_number(eqn.invars[0]) else []


@rule("transpose")
def transpose(eqn, size: int) -> list[Strategy]:
    """Move the split with its dim."""
    moved = enumerate(eqn.params["permutation"])
    shape = eqn.invars[0].aval.shape
    return [*(Strategy((i,), (o,)) for o, i in moved if shape[i] > 1), *_partial(eqn)]


@rule("broadcast_in_dim")
def broadcast_in_dim(eqn, size: int) -> list[Strategy]:
    """Split kept dims; a new dim may be made split out of a broadcast operand."""
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    if len(eqn.invars) != 1:
        return []
    operand = eqn.invars[0].aval.shape
    kept = {o: i for i, o in enumerate(dims) if operand[i] == shape[o]}
    # A new dim is made split at no cost, each rank broadcasting to its own part; a dim of size 1 that grows is such a
    # one.
    found = [Strategy((kept.get(o, B),), (o,)) for o, n in enumerate(shape) if n > 1]
    return [*found, *_partial(eqn)]


@local("broadcast_in_dim")
def broadcast_in_dim_local(ctx: Context, x):
    """Broadcast the block to this rank's shape."""
    return ctx.bind(x, shape=ctx.local_out(), sharding=None)


def reshape_groups(source: tuple[int, ...], target: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Return the groups of dims that a reshape maps onto each other, dims of size 1 left out.

    Example:
        >>> reshape_groups((4, 8, 12), (32, 3, 4))
        [([0, 1], [0]), ([2], [1, 2])]
    """
    left = [d for d, n in enumerate(source) if n != 1]
    right = [d for d, n in enumerate(target) if n != 1]
    groups = []
    while left and right:
        a, b = [left.pop(0)], [right.pop(0)]
        size_a, size_b = source[a[0]], target[b[0]]
        while size_a != size_b:
            if size_a < size_b:
                a.append(left.pop(0))
                size_a *= source[a[-1]]
            else:
                b.append(right.pop(0))
                size_b *= target[b[-1]]
        groups.append((a, b))
    return groups


@rule("reshape")
def reshape(eqn, size: int) -> list[Strategy]:
    """Keep a split on the leading dim of its group; where the group is not one to one it must be even."""
    source, target = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if len(eqn.invars) != 1 or eqn.params["dimensions"] is not None or math.prod(source) == 0:
        return []
    found = []
    for ins, outs in reshape_groups(source, target):
        i, o = ins[0], outs[0]
        if len(ins) == len(outs) == 1:
            found.append(Strategy((i,), (o,)))
        # Padding inside a group would end up between the elements of the other side.
        elif source[i] % size == 0 and target[o] % size == 0:
            found.append(Strategy((i,), (o,), rigid_ins=(0,), rigid_outs=(0,)))
    return [*found, *_partial(eqn)]


@local("reshape")
def reshape_local(ctx: Context, x):
    """Reshape the block to this rank's shape."""
    return jnp.reshape(x, ctx.local_out())


@rule("squeeze")
def squeeze(eqn, size: int) -> list[Strategy]:
    """Move the split with its dim."""
    shape = eqn.invars[0].aval.shape
    kept = [d for d in range(len(shape)) if d not in {d % len(shape) for d in eqn.params["dimensions"]}]
    return [*(Strategy((i,), (o,)) for o, i in enumerate(kept) if shape[i] > 1), *_partial(eqn)]


@rule("expand_dims")
def expand_dims(eqn, size: int) -> list[Strategy]:
    """Move the split with its dim."""
    target = eqn.outvars[0].aval.shape
    new = {d % len(target) for d in eqn.params["dimensions"]}
    kept = [d for d in range(len(target)) if d not in new]
    return [*(Strategy((i,), (o,)) for i, o in enumerate(kept) if target[o] > 1), *_partial(eqn)]


@rule("rev")
def rev(eqn, size: int) -> list[Strategy]:
    """Split dims that are not reversed."""
    return [*other_dims(eqn, eqn.params["dimensions"]), *_partial(eqn)]


@rule("concatenate")
def concatenate(eqn, size: int) -> list[Strategy]:
    """Split dims other than the concatenated one."""
    # Blocks of the operands, one after the other, are no block of the result: rows would have to move.
    return [*other_dims(eqn, (eqn.params["dimension"],)), *_partial(eqn)]


@rule("split")
def split(eqn, size: int) -> list[Strategy]:
    """Split dims other than the one that is cut."""
    return [*other_dims(eqn, (eqn.params["axis"],)), *_partial(eqn)]


@rule("stack")
def stack(eqn, size: int) -> list[Strategy]:
    """Split dims of the operands, shifted if they come after the new one; the new dim itself is not split."""
    axis, shape = eqn.params["axis"], eqn.invars[0].aval.shape
    found = [Strategy((d,) * len(eqn.invars), (d + (d >= axis),)) for d, n in enumerate(shape) if n > 1]
    return [*found, *_partial(eqn)]


@rule("unstack")
def unstack(eqn, size: int) -> list[Strategy]:
    """Split dims other than the one that is unstacked."""
    axis, shape = eqn.params["axis"], eqn.invars[0].aval.shape
    found = [Strategy((d,), (d - (d > axis),) * len(eqn.outvars)) for d, n in enumerate(shape) if n > 1 and d != axis]
    return [*found, *_partial(eqn)]


@rule("tile")
def tile(eqn, size: int) -> list[Strategy]:
    """Split dims that are not repeated."""
    reps, shape = eqn.params["reps"], eqn.invars[0].aval.shape
    new = len(reps) - len(shape)
    found = [Strategy((d,), (new + d,)) for d, n in enumerate(shape) if n > 1 and reps[new + d] == 1]
    return [*found, *_partial(eqn)]


@rule("pad")
def pad(eqn, size: int) -> list[Strategy]:
    """Split dims without padding; a partial operand needs a partial padding value."""
    shape = eqn.invars[0].aval.shape
    config = eqn.params["padding_config"]
    free = [d for d, c in enumerate(config) if tuple(c) == (0, 0, 0) and shape[d] > 1]
    return [*(Strategy((d, B), (d,)) for d in free), *_partial(eqn)]


@rule("slice")
def slice_strategies(eqn, size: int) -> list[Strategy]:
    """Split whole dims; a cut dim that is split gives P: every rank adds the rows it has."""
    source, target = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    found = [Strategy((d,), (d,)) for d, n in enumerate(source) if n > 1 and n == target[d]]
    if is_number(eqn.invars[0]):
        # Else a slice of one row of a split table would gather the table.
        found += [Strategy((d,), (P,)) for d, n in enumerate(source) if n > 1 and n != target[d]]
    return [*found, *_partial(eqn)]


@local("slice")
def slice_local(ctx: Context, x):
    """Slice whole dims by their local size; of a split cut dim take the rows that are here, zeros elsewhere."""
    start = list(ctx.params["start_indices"])
    stop = list(ctx.params["limit_indices"])
    stride = list(ctx.params["strides"] or (1,) * x.ndim)
    for dim in range(x.ndim):
        if not ctx.in_axes(0, dim):
            continue
        if ctx.in_shape(0)[dim] == ctx.out_shape()[dim]:
            stop[dim] = x.shape[dim]
            continue
        offset, count = ctx.in_part(0, dim)
        # The summands of the ranks are disjoint: each row of the result is on one of them, and zero on the others.
        row = start[dim] + stride[dim] * jnp.arange(ctx.out_shape()[dim], dtype=jnp.int32) - offset
        inside = ((row >= 0) & (row < count)).reshape((-1,) + (1,) * (x.ndim - dim - 1))
        picked = jnp.take(x, jnp.clip(row, 0, x.shape[dim] - 1), axis=dim, mode="clip")
        x = jnp.where(inside, picked, jnp.zeros_like(picked))
        start[dim], stop[dim], stride[dim] = 0, x.shape[dim], 1
    return jax.lax.slice(x, start, stop, stride)


@rule("iota")
def iota(eqn, size: int) -> list[Strategy]:
    """Split any dim: each rank counts from its own offset."""
    return [Strategy((), (d,)) for d, n in enumerate(eqn.params["shape"]) if n > 1] if not eqn.invars else []


@local("iota")
def iota_local(ctx: Context):
    """Count along the dim from this rank's offset."""
    dim = ctx.params["dimension"]
    offset, _ = ctx.out_part(0, dim)
    dtype = ctx.params["dtype"]
    counted = jax.lax.broadcasted_iota(dtype, ctx.local_out(), dim)
    return counted + jnp.asarray(offset).astype(dtype)
