"""Row-sparse gradients of embedding tables: merge, densify, and update of the looked-up rows alone.

A batch of 4096 examples by 26 features names 106,496 rows of a table of 10,000,000. The gradient is these numbers and
106,496 rows; as a tensor of the table's shape it would be written, read and updated whole in every step. `row_update`
is one equation: rows that are named twice are summed, the named rows of the table and of the optimizer's state are
read, the rule is applied to them, and they are written back over the table. Its work grows with the batch only.

A table is ``(V, D)``, named by ids ``(N,)`` with gradients ``(N, D)``; or several tables of one size are in
``(F, V, D)``, named by ids ``(N, F)``, a column for each table, with gradients ``(N, F, D)``. Ids outside a table name
no row.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray

from sbpjax._core.jax_private import Primitive

from ..own_primitives import register
from ..promote import promote

row_update_p = Primitive("row_update")

NOWHERE = -1  # an id that names no row


def row_update(ids, rows, numbers, tables, rule: Callable) -> list:
    """Return tables with the named rows updated.

    Args:
        ids: ``(N,)`` or ``(N, F)`` integers, the same on all ranks that share a part of a table.
        rows: ``(N, D)`` or ``(N, F, D)``, the gradient of each named row.
        numbers: 0-d arrays that the rule reads: the step count, the learning rate, and so on.
        tables: the parameter, then its state, all ``(V, D)`` or all ``(F, V, D)``.
        rule: ``(numbers, gradient, *rows of the tables) -> new rows``, element by element; hashable.

    Returns:
        The new tables, each in its layout.
    """
    return row_update_p.bind(ids, rows, *numbers, *tables, count=len(numbers), rule=rule)


def named_rows(ids, rows, /, shape: tuple[int, ...], dtype, padding_idx: int | None = None):
    """Return the lookup and its gradient as numbers and rows.

    Args:
        ids: integers of any shape; for several tables the last dim has one for each.
        rows: of the ids' shape, and D.
        shape: the table's.
        dtype: the table's.
        padding_idx: a row that gets no gradient.
    """
    if padding_idx is not None:
        ids = jnp.where(ids == padding_idx, NOWHERE, ids)
    lead = shape[:-2]
    return ids.reshape(-1, *lead), rows.reshape(-1, *lead, shape[-1]).astype(dtype)


def join_gradients(ids, rows, more_ids, more_rows, /):
    """Return two gradients of one table as one."""
    ids, more_ids = promote(ids, more_ids)
    return lax.concatenate([ids, more_ids], 0), lax.concatenate([rows, more_rows], 0)


def sum_duplicates(ids, rows, /, size: int, packed: bool = True):
    """Return each named row once: ascending ids, and the sums of their gradients.

    Args:
        ids: ``(N,)`` integers.
        rows: ``(N, D)``.
        size: the number of rows of the table.
        packed: sort ids and places as one integer, four times as fast as two on CPU.

    Returns:
        ``(N,)`` ids, after the last one numbers from `size` on, which name no row; ``(N, D)`` sums, of equal ids in
        the order in which they come.
    """
    n = ids.shape[0]
    whole = np.int32 if size + n <= np.iinfo(np.int32).max else np.int64
    if not n:
        return ids.astype(whole), rows
    ids = jnp.where((ids >= 0) & (ids < size), ids, size).astype(whole)
    bits = (n - 1).bit_length()
    if packed and jax.config.jax_enable_x64 and size.bit_length() + bits < 63:
        both = lax.sort((ids.astype(np.int64) << bits) | jnp.arange(n, dtype=np.int64), is_stable=False)
        order, ids = (both & ((1 << bits) - 1)).astype(np.int32), (both >> bits).astype(whole)
    else:
        ids, order = lax.sort((ids, jnp.arange(n, dtype=np.int32)), num_keys=1, is_stable=True)
    first = jnp.concatenate([jnp.ones(1, bool), ids[1:] != ids[:-1]])
    place = jnp.cumsum(first, dtype=np.int32) - 1
    exact = jnp.promote_types(rows.dtype, np.float32)
    sums = jnp.zeros(rows.shape, exact)
    sums = sums.at[place].add(rows[order].astype(exact), indices_are_sorted=True, mode="promise_in_bounds")
    # Numbers beyond the table are all different, as the writes that drop them promise (unique indices).
    spare = jnp.arange(n, dtype=whole) + whole(size)
    named = spare.at[place].set(ids, indices_are_sorted=True, mode="promise_in_bounds")
    return jnp.where(named >= size, spare, named), sums.astype(rows.dtype)


def merged_rows(ids, rows, /, shape: tuple[int, ...]):
    """Return the gradient of a table with every row named once, see `sum_duplicates`; of several tables likewise.

    Args:
        ids: ``(N,)`` or ``(N, F)``.
        rows: ``(N, D)`` or ``(N, F, D)``.
        shape: the table's.
    """
    if len(shape) == 2:
        return sum_duplicates(ids, rows, shape[0])
    each = jax.vmap(lambda i, r: sum_duplicates(i, r, shape[1]), in_axes=(1, 1), out_axes=(1, 1))
    return each(ids, rows)


def dense_rows(ids, rows, /, shape: tuple[int, ...]):
    """Return the gradient of a table as an array of the table's shape."""
    safe = jnp.where(ids >= 0, ids, shape[-2])
    if len(shape) == 2:
        return jnp.zeros(shape, rows.dtype).at[safe].add(rows, mode="drop")
    table = jnp.broadcast_to(jnp.arange(shape[0]), safe.shape)
    return jnp.zeros(shape, rows.dtype).at[table, safe].add(rows, mode="drop")


def _as_one(ids, rows, tables):
    """Return several tables as one below the other, and numbers and rows to match."""
    f, v, d = tables[0].shape
    inside = (ids >= 0) & (ids < v)
    ids = jnp.where(inside, ids.astype(np.int64) + np.int64(v) * jnp.arange(f, dtype=np.int64), NOWHERE)
    return ids.reshape(-1), rows.reshape(-1, d), [t.reshape(f * v, d) for t in tables]


def _shapes(*operands, count, rule):
    return [ShapedArray(t.shape, t.dtype) for t in operands[2 + count :]]


def _run(ids, rows, *rest, count, rule, platform):
    numbers, tables = rest[:count], rest[count:]
    shapes = [t.shape for t in tables]
    if not math.prod(rows.shape) or not math.prod(shapes[0]):
        return list(tables)
    if len(shapes[0]) == 3:
        ids, rows, tables = _as_one(ids, rows, tables)
    named, sums = sum_duplicates(ids, rows, tables[0].shape[0], packed=platform != "tpu")
    held = [t.at[named].get(mode="clip", indices_are_sorted=True) for t in tables]
    found = [
        t.at[named].set(x.astype(t.dtype), mode="drop", indices_are_sorted=True, unique_indices=True)
        for t, x in zip(tables, rule(numbers, sums, *held), strict=True)
    ]
    return [t.reshape(shape) for t, shape in zip(found, shapes, strict=True)]


register(row_update_p, _shapes, _run)
