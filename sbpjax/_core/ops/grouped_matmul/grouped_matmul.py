"""Grouped matrix products in plain JAX, one tile of rows after the other.

Rows are in *spans*: rows ``starts[l, e]`` to ``starts[l, e] + sizes[l, e]`` of sequence l belong to group e. With 48
rows in groups of 20, 0 and 28 and tiles of 16 rows there are two tiles of the first group and two of the third:

    rows   0 … 15, 16 … 19    group 0        the second tile reads rows 16 … 31, and writes 16 … 19
    rows  20 … 35, 36 … 47    group 2        the last one reads rows 32 … 47, and writes 36 … 47

So the work grows with the rows and not with the groups, for any sizes, which are known only as the program runs.
`jax.lax.ragged_dot` multiplies every row with every matrix on a CPU, and on a GPU (jax 0.10).

Everywhere x is ``(L, M, ·)``, starts and sizes int32 ``(L, E)``; no row is in two spans.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..promote import compute_dtype

_ROWS = 256  # of a tile at most: enough that reading a matrix costs little beside multiplying with it


class _Tiles:
    """The tiles of all spans, group by group.

    Args:
        rows: M, of one sequence.
        starts: first rows.
        sizes: numbers of rows.
        is_counted: whether a loop may read the number of tiles on the device; else it has the largest possible number.
    """

    def __init__(self, rows: int, starts, sizes, is_counted: bool) -> None:
        self.lead, groups = sizes.shape
        self.total = self.lead * rows
        spans = max(self.lead * groups, 1)
        per_span = max(-(-self.total // spans), 1)
        self.rows = min(_ROWS, 1 << max((per_span - 1).bit_length(), 3), max(self.total, 1))
        first = starts + rows * jnp.arange(self.lead, dtype=np.int32)[:, None]
        self.first, self.size = first.T.reshape(-1), sizes.T.reshape(-1)
        tiles = -(-self.size // np.int32(self.rows))
        self.ends = jnp.cumsum(tiles, dtype=np.int32)
        self.begin = self.ends - tiles
        at_most = np.int32(self.total // self.rows + spans)
        self.count = self.ends[-1] if is_counted else at_most

    def __getitem__(self, i):
        """Return of tile i its group, the first row that it reads, and which of its rows are its own."""
        span = jnp.minimum(jnp.sum(self.ends <= i, dtype=np.int32), np.int32(self.ends.shape[0] - 1))
        row = self.first[span] + (i - self.begin[span]) * np.int32(self.rows)
        at = jnp.clip(row, 0, self.total - self.rows).astype(np.int32)
        number = at + jnp.arange(self.rows, dtype=np.int32)
        own = (number >= row) & (number < self.first[span] + self.size[span]) & (i < self.ends[-1])
        return span // np.int32(self.lead), at, own[:, None]


def _dot(x, y, x_dim: int, y_dim: int):
    return lax.dot_general(x, y, (((x_dim,), (y_dim,)), ((), ())), preferred_element_type=compute_dtype(x.dtype))


def matmul(x, w, starts, sizes, *, transposed: bool, on_cpu: bool = True):
    """Return ``(L, M, out)``: each row times the matrix of its group; zeros of rows in no span.

    Args:
        x: ``(L, M, in)``.
        w: ``(E, in, out)``, or ``(E, out, in)`` if `transposed`.
        starts: see the head of this file.
        sizes: likewise.
        transposed: whether the matrices are.
        on_cpu: whether the number of turns of a loop may depend on the sizes, which a GPU would wait for.
    """
    lead, rows, width = x.shape
    out = w.shape[1 if transposed else 2]
    start = jnp.zeros((lead * rows, out), x.dtype)
    if not min(lead * rows, w.shape[0]):
        return start.reshape(lead, rows, out)
    flat, tiles = x.reshape(lead * rows, width), _Tiles(rows, starts, sizes, on_cpu)

    def tile(i, found):
        group, at, own = tiles[i]
        some = lax.dynamic_slice_in_dim(flat, at, tiles.rows, 0)
        matrix = lax.dynamic_index_in_dim(w, group, 0, keepdims=False)
        made = _dot(some, matrix, 1, 1 if transposed else 0).astype(x.dtype)
        made = jnp.where(own, made, lax.dynamic_slice_in_dim(found, at, tiles.rows, 0))
        return lax.dynamic_update_slice_in_dim(found, made, at, 0)

    return lax.fori_loop(np.int32(0), tiles.count, tile, start).reshape(lead, rows, out)


def outer(x, y, starts, sizes, *, on_cpu: bool = True):
    """Return ``(E, in, out)``: of each group the sum over its rows of ``x[row]ᵀ y[row]``.

    Args:
        x: ``(L, M, in)``.
        y: ``(L, M, out)``.
        starts: see the head of this file.
        sizes: likewise.
        on_cpu: as of `matmul`.
    """
    lead, rows, width = x.shape
    wide = compute_dtype(x.dtype)
    start = jnp.zeros((sizes.shape[-1], width, y.shape[-1]), wide)
    if not min(lead * rows, start.shape[0]):
        return start.astype(x.dtype)
    both, tiles = [v.reshape(lead * rows, v.shape[-1]) for v in (x, y)], _Tiles(rows, starts, sizes, on_cpu)

    def tile(i, found):
        group, at, own = tiles[i]
        a, b = (jnp.where(own, lax.dynamic_slice_in_dim(v, at, tiles.rows, 0), 0) for v in both)
        made = lax.dynamic_index_in_dim(found, group, 0, keepdims=False) + _dot(a, b, 0, 0)
        return lax.dynamic_update_index_in_dim(found, made, group, 0)

    return lax.fori_loop(np.int32(0), tiles.count, tile, start).astype(x.dtype)


def pack_rows(x, starts, sizes):
    """Return rows of all sequences as ``(L · M, ·)``, group by group from the first row, for kernels of one sequence.

    Args:
        x: ``(L, M, ·)`` arrays.
        starts: see the head of this file.
        sizes: likewise.

    Returns:
        The arrays, zeros after the last span; sizes ``(E,)``; and a function that brings rows back to their places,
        zeros for rows in no span.
    """
    lead, rows = x[0].shape[:2]
    flat = [v.reshape(lead * rows, v.shape[-1]) for v in x]
    index = jnp.arange(rows, dtype=np.int32)
    # The target place of each row: after all groups before its own, and its group's spans before its own.
    of_group = sizes.sum(0, dtype=np.int32)
    before = (jnp.cumsum(of_group, dtype=np.int32) - of_group) + (jnp.cumsum(sizes, 0, dtype=np.int32) - sizes)
    behind = index[None, :, None] - starts[:, None, :]  # (L, M, E)
    inside = (behind >= 0) & (behind < sizes[:, None, :])
    own = inside.any(-1).reshape(-1)
    place = jnp.where(inside, behind + before[:, None, :], 0).sum(-1, dtype=np.int32).reshape(-1)
    source = jnp.zeros(lead * rows, np.int32)
    source = source.at[jnp.where(own, place, lead * rows)].set(
        jnp.arange(lead * rows, dtype=np.int32), mode="drop", unique_indices=True
    )
    filled = (jnp.arange(lead * rows, dtype=np.int32) < of_group.sum())[:, None]

    def back(found):
        return jnp.where(own[:, None], found[place], 0).reshape(lead, rows, found.shape[-1])

    return [jnp.where(filled, v[source], 0) for v in flat], of_group, back
