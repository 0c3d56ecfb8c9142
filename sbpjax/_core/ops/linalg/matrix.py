"""Triangles and diagonals of matrices, and the cross product.

All are masks over the matrix, compared from two counters: `tril` keeps where ``column - row <= diagonal``. So a split
of a row or column dim needs no exchange of data; `diagonal` sums the masked matrix, which leaves partial_sum at most.
"""

from __future__ import annotations

import numpy as np
from jax import lax

from ..dims import fail, one
from ..promote import BOOL, INT64, broadcast_to, cast, is_float, joint_shape


def _offsets(shape, row_dim: int, column_dim: int):
    """Return column - row as an int32 array of ``shape``."""
    return lax.sub(lax.broadcasted_iota(np.int32, shape, column_dim), lax.broadcasted_iota(np.int32, shape, row_dim))


def _mask_entries(x, keep):
    return lax.select_n(keep, broadcast_to(np.zeros((), x.dtype), x.shape), x)


def _matrix(x, op: str) -> None:
    if x.ndim < 2:
        fail("shape", f"{op}(x)", f"x {x.shape}", "x has at least 2 dims", "unsqueeze it first")


def tril(x, /, diagonal: int = 0):
    """Return the lower triangle of the last two dims, up to ``diagonal``; the rest is 0.

    Args:
        diagonal: the last one that is kept; 0 is the main one, positive ones are above it.

    Returns:
        The shape of ``x``; any split stays, a partial sum stays one.

    Raises:
        OpError: fewer than 2 dims.

    Example:
        >>> flow.tril(flow.tensor([[1, 2], [3, 4]]))
        tensor([[1, 0],
                [3, 4]])
    """
    _matrix(x, "tril")
    return _mask_entries(x, lax.le(_offsets(x.shape, x.ndim - 2, x.ndim - 1), np.int32(diagonal)))


def triu(x, /, diagonal: int = 0):
    """Return the upper triangle of the last two dims, from ``diagonal`` on; the rest is 0.

    Args:
        diagonal: the first one that is kept; 0 is the main one, positive ones are above it.

    Returns:
        The shape of ``x``; any split stays, a partial sum stays one.

    Raises:
        OpError: fewer than 2 dims.

    Example:
        >>> flow.triu(flow.tensor([[1, 2], [3, 4]]), diagonal=1)
        tensor([[0, 2],
                [0, 0]])
    """
    _matrix(x, "triu")
    return _mask_entries(x, lax.ge(_offsets(x.shape, x.ndim - 2, x.ndim - 1), np.int32(diagonal)))


def diagonal(x, /, offset: int = 0, dim1: int = 0, dim2: int = 1):
    """Return the diagonal over two dims as a new last dim; ``offset`` > 0 is above the main one."""
    rows, columns = one(dim1, x.ndim, "diagonal"), one(dim2, x.ndim, "diagonal")
    if rows == columns:
        fail("value", f"diagonal(dim1={dim1}, dim2={dim2})", f"x {x.shape}", "the two dims differ", "dim1=0, dim2=1")
    length = max(min(x.shape[rows] + min(offset, 0), x.shape[columns] - max(offset, 0)), 0)
    start = {rows: -min(offset, 0), columns: max(offset, 0)}
    if length == 0:
        start = {rows: 0, columns: 0}
    for d, first in start.items():
        x = lax.slice_in_dim(x, first, first + length, axis=d)
    picked = _mask_entries(x, lax.eq(_offsets(x.shape, rows, columns), np.int32(0)))
    out = lax.reduce_or(picked, (columns,)) if x.dtype == BOOL else lax.reduce_sum(picked, (columns,))
    place = rows - (columns < rows)
    order = [d for d in range(out.ndim) if d != place] + [place]
    return out if order == list(range(out.ndim)) else lax.transpose(out, order)


def trace(x, /):
    """Return the sum of the main diagonal of a matrix; integers add up in int64."""
    if x.ndim != 2:
        fail("shape", "trace(x)", f"x {x.shape}", "x is a matrix", "use diagonal(...).sum(-1)")
    x = x if is_float(x.dtype) else cast(x, INT64)
    return lax.reduce_sum(_mask_entries(x, lax.eq(_offsets(x.shape, 0, 1), np.int32(0))), (0, 1))


def diag_embed(x, /, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """Return matrices over two new dims, with the last dim of x on their diagonal."""
    size = x.shape[-1] + abs(offset)
    low = max(-offset, 0)
    padded = lax.pad(x, np.zeros((), x.dtype), [(0, 0, 0)] * (x.ndim - 1) + [(low, size - x.shape[-1] - low, 0)])
    # padded[j] is the value of column j - max(offset, 0) ... so place it along the rows and keep column - row ==
    # offset
    rows = padded
    shape = (*x.shape[:-1], size, size)
    full = lax.broadcast_in_dim(rows, shape, (*range(x.ndim - 1), x.ndim - 1))
    out = _mask_entries(full, lax.eq(_offsets(shape, x.ndim - 1, x.ndim), np.int32(offset)))
    first, second = one(dim1, out.ndim, "diag_embed"), one(dim2, out.ndim, "diag_embed")
    if first == second:
        fail(
            "value", f"diag_embed(dim1={dim1}, dim2={dim2})", f"x {x.shape}", "the two dims differ", "dim1=-2, dim2=-1"
        )
    order = list(range(out.ndim - 2))
    for place, source in sorted(((first, out.ndim - 2), (second, out.ndim - 1))):
        order.insert(place, source)
    return out if order == list(range(out.ndim)) else lax.transpose(out, order)


def diag(x, /, diagonal: int = 0):
    """Return the diagonal of a matrix, or the matrix with a vector as its diagonal.

    Args:
        diagonal: the number of the diagonal; positive ones are above the main one.

    Returns:
        A vector or a matrix. A partial sum stays one.

    Raises:
        OpError: not 1 or 2 dims.

    Example:
        >>> flow.diag(flow.tensor([1, 2])), flow.diag(flow.tensor([[1, 2], [3, 4]]))
        (tensor([[1, 0],
                [0, 2]]), tensor([1, 4]))
    """
    if x.ndim == 1:
        return diag_embed(x, offset=diagonal)
    if x.ndim != 2:
        fail("shape", "diag(x)", f"x {x.shape}", "x has 1 or 2 dims", "use diagonal or diag_embed")
    return _diagonal(x, offset=diagonal)


_diagonal = diagonal


def cross(x, y, /, dim: int = -1):
    """Return the cross product along a dim of size 3."""
    n = max(x.ndim, y.ndim)
    if x.ndim != y.ndim:
        rule = "inputs must have the same number of dimensions"
        fail("shape", "cross(x, y)", f"x {x.shape}, y {y.shape}", rule, "unsqueeze one of them")
    shape = joint_shape(x.shape, y.shape)
    dim = one(dim, n, "cross")
    if x.shape[dim] != 3 or y.shape[dim] != 3:
        fail(
            "shape",
            f"cross(dim={dim})",
            f"x {x.shape}, y {y.shape}",
            f"inputs dimension {dim} must have length 3. Got {x.shape[dim]} and {y.shape[dim]}: the size of the "
            f"specified dimension(which is {dim}) is not 3.",
            "choose dim",
        )
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)

    def rotate(z, by: int):
        return lax.concatenate([lax.slice_in_dim(z, by, 3, axis=dim), lax.slice_in_dim(z, 0, by, axis=dim)], dim)

    return lax.sub(lax.mul(rotate(x, 1), rotate(y, 2)), lax.mul(rotate(x, 2), rotate(y, 1)))
