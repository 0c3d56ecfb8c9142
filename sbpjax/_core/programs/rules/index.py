"""Sharding rules of indexing: gather, scatter, dynamic_slice, dynamic_update_slice.

The lookup ``table[ids]`` of a ``(V, D)`` table is a gather. Split over V, every rank looks up the ids that fall into
its rows and has zeros for the others, so the result is a partial sum: ``S0,B → P``. Split over D it stays split, and
split ids give a split result. The gradient is a scatter-add, the mirror: split ids and updates add up to a partial
sum, a table split over V takes the updates that fall into its rows.

An index outside the tensor must behave as if unsharded (clamp, fill or drop), so ranks judge it against the whole
tensor first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.lax import GatherScatterMode

from sbpjax._core.programs.primitives import SCATTER_SUMS, SCATTERS
from sbpjax.sbp.conversion_steps import reshape_mask

from .table import B, Context, P, Strategy, is_number, local, rule


@dataclass(frozen=True)
class _Dims:
    """The dim correspondence of an operand, its indices and its windows (a gather's output, a scatter's updates).

    Attributes:
        shape: the operand's shape.
        indices: the shape of the indices; the last dim holds the index vectors.
        window: pairs of an operand dim and its dim of the windows.
        extent: the size of one window along each operand dim.
        batch: for each dim of the indices but the last, its dim of the windows.
        paired: for a dim of the indices the operand dim that it runs along with.
        indexed: the operand dims that an index vector addresses.
    """

    shape: tuple[int, ...]
    indices: tuple[int, ...]
    window: list[tuple[int, int]]
    extent: list[int]
    batch: list[int]
    paired: dict[int, int]
    indexed: list[int]

    def whole(self) -> list[tuple[int, int]]:
        """Return the pairs of `window` whose windows span the operand dim."""
        return [(d, w) for d, w in self.window if self.shape[d] > 1 and self.extent[d] == self.shape[d]]

    def picked_dims(self) -> list[int]:
        """Return the operand dims of which an index picks one row."""
        return [d for d in self.indexed if self.shape[d] > 1 and self.extent[d] == 1]


def _gather_dims(eqn) -> _Dims:
    numbers = eqn.params["dimension_numbers"]
    shape, indices = (v.aval.shape for v in eqn.invars)
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [d for d in range(len(shape)) if d not in gone]
    return _Dims(
        shape,
        indices,
        list(zip(window, map(int, numbers.offset_dims), strict=True)),
        list(eqn.params["slice_sizes"]),
        [d for d in range(len(eqn.outvars[0].aval.shape)) if d not in numbers.offset_dims],
        dict(zip(numbers.start_indices_batching_dims, map(int, numbers.operand_batching_dims), strict=True)),
        [int(d) for d in numbers.start_index_map],
    )


def _scatter_dims(eqn) -> _Dims:
    numbers = eqn.params["dimension_numbers"]
    shape, indices, updates = (v.aval.shape for v in eqn.invars)
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    window = [(d, int(w)) for d, w in zip((d for d in range(len(shape)) if d not in gone), numbers.update_window_dims)]
    extent = [1] * len(shape)
    for d, w in window:
        extent[d] = updates[w]
    return _Dims(
        shape,
        indices,
        window,
        extent,
        [d for d in range(len(updates)) if d not in numbers.update_window_dims],
        dict(zip(numbers.scatter_indices_batching_dims, map(int, numbers.operand_batching_dims), strict=True)),
        [int(d) for d in numbers.scatter_dims_to_operand_dims],
    )


@rule("gather")
def gather(eqn, size: int) -> list[Strategy]:
    """Split index and window dims; a split indexed dim gives P, as does a partial operand."""
    dims = _gather_dims(eqn)
    found = [Strategy((dims.paired.get(i, B), i), (o,)) for i, o in enumerate(dims.batch) if dims.indices[i] > 1]
    found += [Strategy((d, B), (o,)) for d, o in dims.whole()]
    if is_number(eqn.invars[0]):
        # Keys of random numbers have no zero, and so no partial sum.
        found += [*(Strategy((d, B), (P,)) for d in dims.picked_dims()), Strategy((P, B), (P,))]
    return found


@local("gather")
def gather_local(ctx: Context, x, indices):
    """Gather from the block; index vectors that point into other ranks' rows read zeros."""
    dims, mode = _gather_dims(ctx.eqn), ctx.params["mode"]
    extent = list(dims.extent)
    # A window that spans its dim spans this rank's part of it.
    for d, _ in dims.whole():
        extent[d] = x.shape[d]
    partial = [a for a, code in enumerate(ctx.outs[0]) if code == P]
    fill = mode == GatherScatterMode.FILL_OR_DROP
    split = [d for d in dims.picked_dims() if ctx.in_axes(0, d)]
    # The fill values of a gather would be added up once per summand, so that case is masked as well.
    if not split and not (fill and partial):
        return ctx.bind(x, indices, slice_sizes=tuple(extent))
    limits = jnp.array([dims.shape[d] - dims.extent[d] for d in dims.indexed], jnp.int32)
    # A filling gather casts the indices to a type that fits the operand's shape before it looks at them.
    wide = indices.astype(jnp.int32) if fill else _clamp(indices, limits)
    inside = jnp.all((wide >= 0) & (wide <= limits), axis=-1)
    ours, here = _local_indices(ctx, wide, dims, split)
    read = ctx.bind(
        x,
        jnp.clip(ours, 0, jnp.array([x.shape[d] - extent[d] for d in dims.indexed], ours.dtype)),
        slice_sizes=tuple(extent),
        # Indices outside were masked above, against the whole table; a mode of its own would judge by this rank's rows.
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
        indices_are_sorted=False,
    )

    def along(mask):
        return jax.lax.broadcast_in_dim(mask, read.shape, dims.batch)

    result = jnp.where(along(here), read, jnp.zeros_like(read))
    if not fill:
        return result
    # Filled on the first rank only: as a partial sum it would be added up once per rank.
    value = jnp.where(
        _first(ctx, partial), jnp.asarray(ctx.params["fill_value"], read.dtype), jnp.zeros((), read.dtype)
    )
    return jnp.where(along(inside), result, value)


@rule(*SCATTERS)
def scatter(eqn, size: int) -> list[Strategy]:
    """Split window and indexed dims; sums of split updates give P, partial updates add to a partial operand."""
    dims, name = _scatter_dims(eqn), eqn.primitive.name
    found = [Strategy((d, i, dims.batch[i]), (d,)) for i, d in dims.paired.items() if dims.indices[i] > 1]
    found += [Strategy((d, B, w), (d,)) for d, w in dims.whole()]
    found += [Strategy((d, B, B), (d,)) for d in dims.picked_dims()]
    if not is_number(eqn.invars[0]):
        return found
    if name in SCATTER_SUMS and dims.indexed:
        free = [i for i in range(len(dims.batch)) if i not in dims.paired and dims.indices[i] > 1]
        found += [Strategy((P, i, dims.batch[i]), (P,)) for i in free]
    # Where two updates meet, ranks could each keep another one; sums and single updates know no such choice.
    alone = eqn.params["unique_indices"] or all(n == 1 for n in dims.indices[:-1])
    if name in SCATTER_SUMS or (name == "scatter" and alone):
        found.append(Strategy((P, B, P), (P,)))
    if name == "scatter-mul":
        found.append(Strategy((P, B, B), (P,)))
    return found


@local(*SCATTERS)
def scatter_local(ctx: Context, x, indices, updates):
    """Scatter into the block; updates of other ranks' rows, and padded ones, are dropped."""
    dims = _scatter_dims(ctx.eqn)
    split = [d for d in dims.picked_dims() if ctx.in_axes(0, d)]
    uneven = [i for i in range(len(dims.batch)) if ctx.in_axes(1, i) and i not in dims.paired]
    if not split and not uneven:
        return _scatter_rows(ctx, dims, x, indices, updates)
    limits = jnp.array([dims.shape[d] - dims.extent[d] for d in dims.indexed], jnp.int32)
    wide = _clamp(indices, limits) if ctx.params["mode"] == GatherScatterMode.CLIP else _to_signed(indices)
    ours, here = _local_indices(ctx, wide, dims, split)
    # Padding among the indices is no index: its updates would be added somewhere.
    here = ctx.mask(here[..., None], 1, uneven, False)
    return _scatter_rows(
        ctx,
        dims,
        x,
        # Outside of every block, where the mode below drops it. So many indices may be -1, and none is in its order.
        jnp.where(here, ours, -1),
        updates,
        mode=GatherScatterMode.FILL_OR_DROP,
        indices_are_sorted=False,
        unique_indices=False,
    )


def _scatter_rows(ctx: Context, dims: _Dims, x, indices, updates, **params):
    """Scatter, with the updates as one row each where their windows come last."""
    # On a TPU updates of 1,024 by 26 rows would fill 32 rows of tiles for every 26.
    batch = len(dims.batch)
    if batch < 2 or dims.paired or dims.batch != list(range(batch)) or not updates.size:
        return ctx.bind(x, indices, updates, **params)
    numbers = ctx.params["dimension_numbers"]
    windows = tuple(d - batch + 1 for d in numbers.update_window_dims)
    return ctx.bind(
        x,
        indices.reshape(-1, indices.shape[-1]),
        updates.reshape(-1, *updates.shape[batch:]),
        dimension_numbers=numbers._replace(update_window_dims=windows),
        **params,
    )


def _to_signed(indices):
    """Return indices in a signed type in which -1 and every row number exist."""
    config: Any = jax.config  # its flags are made at run time
    # Without x64 there is no int64, and uint32 has to do with int32.
    if indices.dtype.itemsize == 8 or (indices.dtype == jnp.uint32 and config.jax_enable_x64):
        return indices.astype(jnp.int64)
    return indices.astype(jnp.int32)


def _clamp(indices, limits):
    """Return indices clamped into the tensor, judged before they are cast to a narrower type."""
    top = jnp.minimum(limits, min(jnp.iinfo(indices.dtype).max, jnp.iinfo(jnp.int32).max)).astype(indices.dtype)
    return _to_signed(jnp.clip(indices, jnp.zeros((), indices.dtype), top))


def _local_indices(ctx: Context, indices, dims: _Dims, split: list[int]):
    """Return indices counted from this rank's first rows of the split dims, and whether their rows are on this rank."""
    here = jnp.ones(indices.shape[:-1], jnp.bool_)
    columns = [indices[..., k] for k in range(len(dims.indexed))]
    for d in split:
        k = dims.indexed.index(d)
        offset, count = ctx.in_part(0, d)
        columns[k] = columns[k] - jnp.asarray(offset).astype(indices.dtype)
        here &= (columns[k] >= 0) & (columns[k] < count)
    return (jnp.stack(columns, -1) if columns else indices), here


def _first(ctx: Context, axes: list[int]):
    """Return whether this rank is the first on all of the axes, so that one of the summands holds a value."""
    first = jnp.asarray(True)
    for a in axes:
        first &= ctx.here.index(a) == 0
    return first


@rule("dynamic_slice")
def dynamic_slice(eqn, size: int) -> list[Strategy]:
    """Split whole dims; a cut dim that is split gives P, as for `slice`."""
    operand, starts = eqn.invars[0], (B,) * (len(eqn.invars) - 1)
    taken = eqn.params["slice_sizes"]
    found = [Strategy((d, *starts), (d if n == taken[d] else P,)) for d, n in enumerate(operand.aval.shape) if n > 1]
    if not is_number(operand):
        return [s for s in found if s.outs != (P,)]
    return [*found, Strategy((P, *starts), (P,))]


@local("dynamic_slice")
def dynamic_slice_local(ctx: Context, x, *starts):
    """Slice whole dims by their local size; of a split cut dim take the rows that are here, zeros elsewhere."""
    sizes, starts = list(ctx.params["slice_sizes"]), list(starts)
    for d, n in enumerate(ctx.in_shape(0)):
        if not ctx.in_axes(0, d):
            continue
        if sizes[d] != n:
            offset, count = ctx.in_part(0, d)
            row = _start(starts[d], n - sizes[d]) + jnp.arange(sizes[d], dtype=jnp.int32) - offset
            x = _rows_or_zero(x, row, (row >= 0) & (row < count), d)
        # From here on the block has just the rows that are wanted, at their places.
        sizes[d], starts[d] = x.shape[d], _zero(starts[d])
    return ctx.bind(x, *starts, slice_sizes=tuple(sizes))


@rule("dynamic_update_slice")
def dynamic_update_slice(eqn, size: int) -> list[Strategy]:
    """Split whole dims S,S → S; of a split cut dim every rank takes the rows it has from a broadcast update."""
    operand, update = (v.aval.shape for v in eqn.invars[:2])
    starts = (B,) * (len(eqn.invars) - 2)
    found = [Strategy((d, d if n == update[d] else B, *starts), (d,)) for d, n in enumerate(operand) if n > 1]
    return [*found, Strategy((P, P, *starts), (P,))] if is_number(eqn.invars[0]) else found


@local("dynamic_update_slice")
def dynamic_update_slice_local(ctx: Context, x, update, *starts):
    """Write whole dims by their local size; along a split cut dim, keep the rows outside the update."""
    starts, keep = list(starts), jnp.zeros((1,) * x.ndim, jnp.bool_)
    for d, n in enumerate(ctx.in_shape(0)):
        if not ctx.in_axes(0, d):
            continue
        size = ctx.in_shape(1)[d]
        if size != n:
            offset, _ = ctx.in_part(0, d)
            row = offset + jnp.arange(x.shape[d], dtype=jnp.int32) - _start(starts[d], n - size)
            inside = (row >= 0) & (row < size)
            update = _rows_or_zero(update, row, inside, d)
            # Outside along any one of the split dims is outside.
            keep = keep | ~reshape_mask(inside, d, x.ndim)
        starts[d] = _zero(starts[d])
    # The function `lax.dynamic_slice` counts negative starts from the end, the primitive clamps them.
    kept = jax.lax.dynamic_slice_p.bind(x, *starts, slice_sizes=update.shape)
    return ctx.bind(x, jnp.where(keep, kept, update), *starts)


def _start(start, limit: int):
    """Return a start index clamped as the primitive clamps it, in a signed type."""
    start = jnp.asarray(start)
    top = min(limit, int(jnp.iinfo(start.dtype).max))
    return jnp.clip(start, jnp.zeros((), start.dtype), jnp.asarray(top, start.dtype)).astype(jnp.int32)


def _zero(start):
    return jnp.zeros_like(jnp.asarray(start))


def _rows_or_zero(x, row, inside, dim: int):
    """Return rows of ``x`` along a dim, zeros where ``inside`` is false."""
    if x.shape[dim] == 0:
        return jnp.zeros((*x.shape[:dim], row.shape[0], *x.shape[dim + 1 :]), x.dtype)
    picked = jnp.take(x, jnp.clip(row, 0, x.shape[dim] - 1), axis=dim, mode="clip")
    return jnp.where(reshape_mask(inside, dim, x.ndim), picked, jnp.zeros_like(picked))
