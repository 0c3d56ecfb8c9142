"""Out-of-place writes by index, slice or diagonal; block matrices and combinations of vectors.

Worked case: ``slice_scatter(zeros(4), ones(2), start=1, step=2)`` is ``[0, 1, 0, 1]``.
"""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail, one
from ..linalg.matrix import diag_embed
from ..promote import BOOL, cast, result_type
from .gather import scatter_reduce, slices_fit


def put(x, index, source, /, accumulate: bool = False):
    """Return x with elements of source written (or added) where a flat index names, counted from the end if < 0."""
    if index.dtype != np.int64:
        fail("shape", "put(x, index, source)", f"an index of {index.dtype}", "the index is int64", "index.long()")
    if index.size != source.size:
        rule = "Expected source and index to have the same number of elements"
        fail("index", "put(x, index, source)", f"index {index.shape}, source {source.shape}", rule, "source[:n]")
    if accumulate and x.dtype == BOOL:  # of bools the sum is whether any holds
        return cast(put(cast(x, np.int32), index, cast(source, np.int32), accumulate=True), BOOL)
    flat = x.reshape(-1).at[index.reshape(-1)]
    value = cast(source, x.dtype).reshape(-1)
    return (flat.add if accumulate else flat.set)(value).reshape(x.shape)


def index_reduce(x, index, source, /, dim: int, reduce: str, include_self: bool = True):
    """Return x with slices of source reduced into the slices of a dim that index names."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        rule = "index_reduce(): Expected reduce to be one of prod, mean, amax or amin"
        fail("shape", f"index_reduce(reduce={reduce!r})", f"x {x.shape}", rule, 'reduce="amax"')
    if index.ndim > 1:
        rule = "index_reduce_(): Index is supposed to be a vector"
        fail("index", "index_reduce(index)", f"an index of {index.ndim} dims", rule, "index.flatten()")
    dim = one(dim, x.ndim, "index_reduce")
    slices_fit("index_reduce", x, source, dim)
    if x.ndim == 0:
        return index_reduce(x.reshape(1), index.reshape(-1), source.reshape(-1), dim=0, reduce=reduce,
                            include_self=include_self).reshape(())  # fmt: skip
    shape = tuple(index.size if d == dim else n for d, n in enumerate(source.shape))
    spread = lax.broadcast_in_dim(index.reshape(-1), shape, (dim,))
    return scatter_reduce(x, spread, source, dim=dim, reduce=reduce, include_self=include_self)


def _same(op: str, wanted, src) -> None:
    if tuple(wanted) != tuple(src.shape):
        rule = f"expected src to have a size equal to the slice of self: {tuple(wanted)}, got {tuple(src.shape)}"
        fail("shape", f"{op}(x, src)", f"src {src.shape}", rule, "src.expand(...)")


def slice_scatter(x, src, /, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1):
    """Return x with src in a slice of a dim."""
    dim = one(dim, x.ndim, "slice_scatter")
    begin, stop, step = slice(start, end, step).indices(x.shape[dim])
    count = len(range(begin, stop, step))
    _same("slice_scatter", (count if d == dim else n for d, n in enumerate(x.shape)), src)
    where = (slice(None),) * dim + (slice(begin, stop, step),)
    return x.at[where].set(cast(src, x.dtype)) if count else x


def select_scatter(x, src, /, dim: int, index: int):
    """Return x with src at one index of a dim."""
    dim = one(dim, x.ndim, "select_scatter")
    n = x.shape[dim]
    if not -n <= index < n:
        rule = f"index {index} out of range for dimension {dim} with size {n}"
        fail("index", f"select_scatter(dim={dim}, index={index})", f"x {x.shape}", rule, f"use {-n} to {n - 1}")
    _same("select_scatter", (m for d, m in enumerate(x.shape) if d != dim), src)
    whole = lax.expand_dims(cast(src, x.dtype), (dim,))
    return lax.dynamic_update_slice_in_dim(x, whole, index % n, dim)


def diagonal_scatter(x, src, /, offset: int = 0, dim1: int = 0, dim2: int = 1):
    """Return x with src on a diagonal of two dims."""
    a, b = one(dim1, x.ndim, "diagonal_scatter"), one(dim2, x.ndim, "diagonal_scatter")
    moved = jnp.moveaxis(x, (a, b), (-2, -1))
    count = max(min(moved.shape[-2] + min(offset, 0), moved.shape[-1] - max(offset, 0)), 0)
    _same("diagonal_scatter", (*moved.shape[:-2], count), src)
    rows, columns = np.arange(count) + max(-offset, 0), np.arange(count) + max(offset, 0)
    return jnp.moveaxis(moved.at[..., rows, columns].set(cast(src, x.dtype)), (-2, -1), (a, b))


def fill_diagonal(x, value, /, wrap: bool = False):
    """Return x with a number on its main diagonal; with ``wrap`` again below, in tall matrices."""
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        rule = "dimensions must larger than 1, and all of equal length if there are more than 2"
        fail("shape", "fill_diagonal_(value)", f"x {x.shape}", rule, "x.view(n, n)")
    step = sum(int(np.prod(x.shape[d + 1 :])) for d in range(x.ndim))
    stop = x.size if wrap or x.ndim > 2 or x.shape[0] <= x.shape[1] else x.shape[1] ** 2
    where = np.arange(0, stop, step)
    return x.reshape(-1).at[where].set(cast(value, x.dtype)).reshape(x.shape)


def block_diag(*arrays):
    """Return the matrices along the diagonal of a larger one; vectors are rows."""
    dtype = result_type(*arrays)
    if any(x.ndim > 2 for x in arrays):
        rule = "Input tensors must have 2 or fewer dimensions"
        fail("shape", "block_diag(...)", ", ".join(str(x.shape) for x in arrays), rule, "flatten them")
    blocks = [cast(x, dtype).reshape((1, x.size) if x.ndim < 2 else x.shape) for x in arrays]
    width = sum(b.shape[1] for b in blocks)
    rows, left = [], 0
    for b in blocks:
        rows.append(lax.pad(b, np.zeros((), dtype), [(0, 0, 0), (left, width - left - b.shape[1], 0)]))
        left += b.shape[1]
    return lax.concatenate(rows, 0)


def cartesian_prod(*arrays):
    """Return all tuples of elements of vectors, as rows; of one vector itself."""
    for x in arrays:
        if x.ndim != 1:
            fail("shape", "cartesian_prod(...)", f"{x.shape}", "Expect a 1D vector", "x.flatten()")
    if len(arrays) == 1:
        return arrays[0]
    shape = tuple(x.shape[0] for x in arrays)
    columns = [lax.broadcast_in_dim(x, shape, (d,)).reshape(-1, 1) for d, x in enumerate(arrays)]
    return lax.concatenate(columns, 1)


def combinations(x, /, r: int = 2, with_replacement: bool = False):
    """Return all ``r``-element subsets of a vector, as rows."""
    if x.ndim != 1:
        fail("shape", "combinations(x)", f"x {x.shape}", "Expect a 1D vector", "x.flatten()")
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(pick(range(x.shape[0]), r)), np.int64).reshape(-1, r)
    return x[rows] if r else jnp.zeros((0,), x.dtype)


def diagflat(x, /, offset: int = 0):
    """Return the matrix with the elements of x on a diagonal."""
    return diag_embed(x.reshape(-1), offset=offset)


def vdot(x, y, /):
    """Return the dot product of two vectors, the first conjugated."""
    if x.ndim != 1 or y.ndim != 1 or x.shape != y.shape or x.dtype != y.dtype:
        rule = "1D tensors expected, of one dtype and the same number of elements"
        fail("shape", "vdot(x, y)", f"x {x.dtype}{list(x.shape)}, y {y.dtype}{list(y.shape)}", rule, "x.flatten()")
    return lax.dot(jnp.conj(x), y)


def batch_gather(x, index, /):
    """Return ``x[b, index[b, m]]``: rows by an index per leading dims."""
    if not jnp.issubdtype(index.dtype, jnp.integer):
        rule = "The dtype of the indices tensor must be int32 or int64"
        fail("type", "batch_gather(x, index)", f"index {index.dtype}", rule, "index.long()")
    at = index.ndim - 1
    if x.ndim < index.ndim or x.shape[:at] != index.shape[:at]:
        rule = "the dims of the index but its last are the first ones of x"
        fail("shape", "batch_gather(x, index)", f"x {x.shape}, index {index.shape}", rule, "index.expand(...)")
    shape = (*index.shape, *(1,) * (x.ndim - index.ndim))
    return jnp.take_along_axis(x, index.reshape(shape), at)
