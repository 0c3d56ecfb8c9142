"""Ops that select, gather, scatter and sort; and those whose result's shape depends on the data.

`nonzero`, `masked_select`, `unique`, … read what they need on the host to learn the size; the elements themselves are
then gathered by an op that is on the tape and keeps a global tensor global.
"""

from __future__ import annotations

import math
from operator import index as as_int

import numpy as np

from sbpjax import naming
from sbpjax.errors import OpError, OpTypeError, OpValueError, message
from sbpjax.ops import embedding
from sbpjax.ops import gather as _gather
from sbpjax.ops.dims import one

from . import bounds, dispatch
from . import dtype as dtypes
from .argument_names import NUMPY, take_names
from .binding import hashable, into_out, publish
from .bounds import check_dim, check_natural, check_size, check_tuples
from .convert import host
from .indexing import getitem, with_layout_of
from .inplace import inplace
from .oneflow_arguments import take_oneflow
from .op import op_of
from .tensor import Tensor, attach


def _finish(result, out):
    return result if out is None else into_out(out, result)


# --------------------------------------------------------------------------------------------------- gather and scatter


def gather(input: Tensor, dim: int, index: Tensor, sparse_grad: bool = False, *, out=None) -> Tensor:
    """Return ``input[..., index[...], ...]``: for every place of ``index`` the element it names along ``dim``."""
    check_dim(f"gather(x, {dim}, index)", index, input, int(dim))
    return _finish(dispatch.run(op_of(_gather.gather, (("dim", as_int(dim)),)), (input, index)), out)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return `gather` with broadcasting, also from the end of ``dim``; without ``dim`` from the flattened tensor."""
    if dim is None:
        check_size("take_along_dim(x, indices)", indices, input.shape.numel(), 0)
    else:
        check_dim(f"take_along_dim(x, indices, {dim})", indices, input, int(dim), negative=True)
    return dispatch.run(op_of(_gather.take_along_dim, (("dim", dim),)), (input, indices))


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return elements of the flattened tensor."""
    check_size("take(x, index)", index, input.shape.numel(), 0, negative=True)
    return dispatch.run(op_of(_gather.take), (input, index))


def index_select(input: Tensor, dim: int, index: Tensor, *, out=None) -> Tensor:
    """Return the slices of a dim that a vector of indices names."""
    check_dim(f"index_select(x, {dim}, index)", index, input, int(dim))
    return _finish(dispatch.run(op_of(_gather.index_select, (("dim", as_int(dim)),)), (input, index)), out)


def _scatter_op(dim, reduce):
    return op_of(_gather.scatter, (("dim", as_int(dim)), ("reduce", reduce)))


def scatter(input: Tensor, dim: int, index: Tensor, src=None, *, value=None, reduce: str | None = None) -> Tensor:
    """Return ``input`` with ``src`` (a tensor or number) written or reduced in where ``index`` names along ``dim``."""
    check_dim(f"scatter(x, {dim}, index)", index, input, int(dim))
    return dispatch.run(_scatter_op(dim, reduce), (input, index, value if src is None else src))


def scatter_(self: Tensor, dim: int, index: Tensor, src=None, *, value=None, reduce: str | None = None) -> Tensor:
    """Write `scatter` into this tensor and return it."""
    check_dim(f"x.scatter_({dim}, index)", index, self, int(dim))
    return inplace(self, _scatter_op(dim, reduce), (index, value if src is None else src))


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return ``input`` with ``src`` added where ``index`` names along ``dim``."""
    check_dim(f"scatter_add(x, {dim}, index)", index, input, int(dim))
    return dispatch.run(op_of(_gather.scatter_add, (("dim", as_int(dim)),)), (input, index, src))


def scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Write `scatter_add` into this tensor and return it."""
    check_dim(f"x.scatter_add_({dim}, index)", index, self, int(dim))
    return inplace(self, op_of(_gather.scatter_add, (("dim", as_int(dim)),)), (index, src))


def _reduce_op(dim, reduce, include_self):
    return op_of(_gather.scatter_reduce, (("dim", as_int(dim)), ("reduce", reduce), ("include_self", include_self)))


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return ``input`` with ``src`` reduced in (``"sum" "prod" "mean" "amax" "amin"``) where ``index`` names."""
    check_dim(f"scatter_reduce(x, {dim}, index)", index, input, int(dim))
    return dispatch.run(_reduce_op(dim, reduce, include_self), (input, index, src))


def scatter_reduce_(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Write `scatter_reduce` into this tensor and return it."""
    check_dim(f"x.scatter_reduce_({dim}, index)", index, self, int(dim))
    return inplace(self, _reduce_op(dim, reduce, include_self), (index, src))


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, alpha=1) -> Tensor:
    """Return ``input`` with slices of ``source`` added to the slices of a dim that ``index`` names."""
    check_dim(f"index_add(x, {dim}, index)", index, input, int(dim))
    static = (("dim", as_int(dim)), ("alpha", hashable(alpha)))
    return dispatch.run(op_of(_gather.index_add, static), (input, index, source))


def index_add_(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha=1) -> Tensor:
    """Write `index_add` into this tensor and return it."""
    check_dim(f"x.index_add_({dim}, index)", index, self, int(dim))
    return inplace(self, op_of(_gather.index_add, (("dim", as_int(dim)), ("alpha", hashable(alpha)))), (index, source))


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return ``input`` with slices of ``source`` written to the slices of a dim that ``index`` names."""
    check_dim(f"index_copy(x, {dim}, index)", index, input, int(dim))
    return dispatch.run(op_of(_gather.index_copy, (("dim", as_int(dim)),)), (input, index, source))


def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Write `index_copy` into this tensor and return it."""
    check_dim(f"x.index_copy_({dim}, index)", index, self, int(dim))
    return inplace(self, op_of(_gather.index_copy, (("dim", as_int(dim)),)), (index, source))


def index_fill(input: Tensor, dim: int, index: Tensor, value) -> Tensor:
    """Return ``input`` with a number written to the slices of a dim that ``index`` names."""
    check_dim(f"index_fill(x, {dim}, index)", index, input, int(dim), negative=True)
    return dispatch.run(op_of(_gather.index_fill, (("dim", as_int(dim)),)), (input, index, value))


def index_fill_(self: Tensor, dim: int, index: Tensor, value) -> Tensor:
    """Write `index_fill` into this tensor and return it."""
    check_dim(f"x.index_fill_({dim}, index)", index, self, int(dim), negative=True)
    return inplace(self, op_of(_gather.index_fill, (("dim", as_int(dim)),)), (index, value))


def masked_fill(input: Tensor, mask: Tensor, value) -> Tensor:
    """Return ``input`` with a number (or 0-d tensor) where the mask holds."""
    return dispatch.run(op_of(_gather.masked_fill), (input, mask, value))


def masked_fill_(self: Tensor, mask: Tensor, value) -> Tensor:
    """Write `masked_fill` into this tensor and return it."""
    return inplace(self, op_of(_gather.masked_fill), (mask, value))


def _check_enough(asked: str, shape: tuple[int, ...], mask: Tensor, source: Tensor) -> None:
    """Raise unless a mask that is at hand, broadcast to a shape, takes no more elements than there are."""
    repeats = math.prod(shape) // max(mask.shape.numel(), 1)
    taken = repeats * sum(int(np.count_nonzero(part)) for part in bounds.parts_on_cpu(mask))
    if taken > source.shape.numel():
        raise OpError(
            message(
                asked,
                f"a source of {source.shape.numel()} elements, a mask that holds at {taken} places",
                "the source has at least one element for every place",
                "make the source larger, or masked_fill to write one number",
            )
        )


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return ``input`` with consecutive elements of ``source`` where the mask holds."""
    _check_enough("masked_scatter(x, mask, source)", np.broadcast_shapes(input.shape, mask.shape), mask, source)
    return dispatch.run(op_of(_gather.masked_scatter), (input, mask, source))


def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Write `masked_scatter` into this tensor and return it."""
    _check_enough("x.masked_scatter_(mask, source)", tuple(self.shape), mask, source)
    return inplace(self, op_of(_gather.masked_scatter), (mask, source))


def gather_nd(input: Tensor, index: Tensor) -> Tensor:
    """Return the slices that rows of multi-dim indices name."""
    check_tuples("gather_nd(x, index)", index, tuple(input.shape))
    return dispatch.run(op_of(embedding.gather_nd), (input, index))


def scatter_nd(index: Tensor, update: Tensor, shape) -> Tensor:
    """Return zeros with ``update`` added where rows of multi-dim indices name."""
    check_tuples("scatter_nd(index, update, shape)", index, tuple(shape))
    return dispatch.run(op_of(embedding.scatter_nd, (("shape", hashable(tuple(shape))),)), (index, update))


def tensor_scatter_nd_update(tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Return ``tensor`` with ``updates`` written where rows of multi-dim indices name."""
    check_tuples("tensor_scatter_nd_update(x, indices, updates)", indices, tuple(tensor.shape))
    return dispatch.run(op_of(embedding.tensor_scatter_nd_update), (tensor, indices, updates))


def searchsorted(
    sorted_sequence: Tensor,
    values,
    out_int32: bool = False,
    right: bool = False,
    *,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return where each value would be inserted to keep a sequence sorted.

    Args:
        sorted_sequence: ``(..., N)``, sorted along its last dim; in any order with ``sorter``.
        values: what is looked for.
        out_int32: give int32 indices.
        right: insert behind equal elements.
        side: ``"right"`` is ``right=True``.
        sorter: ``(..., N)`` indices that sort the sequence.
    """
    if sorter is not None:
        sorted_sequence = take_along_dim(sorted_sequence, sorter, -1)
    if side not in (None, "left", "right") or (side == "left" and right):
        rule = "side is 'left' or 'right', and does not contradict right=True"
        raise OpValueError(message("searchsorted(x, values)", f"side={side!r}, right={right}", rule, "side='right'"))
    right = right or side == "right"
    dtype = (dtypes.int32 if out_int32 else dtypes.int64).np
    return dispatch.run(op_of(embedding.searchsorted, (("right", right), ("dtype", dtype))), (sorted_sequence, values))


def bucketize(input, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Return the index of the bucket that each value falls in."""
    if boundaries.ndim != 1:
        rule = f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})"
        raise OpError(message("bucketize(x, boundaries)", f"boundaries {list(boundaries.shape)}", rule, "flatten them"))
    dtype = (dtypes.int32 if out_int32 else dtypes.int64).np
    return dispatch.run(op_of(embedding.bucketize, (("right", right), ("dtype", dtype))), (input, boundaries))


# ----------------------------------------------------------------------------------------- shapes that depend on the
# data


def nonzero(input: Tensor, as_tuple: bool = False):
    """Return the indices of the elements that are not zero: one row each, or as one vector per dim."""
    found = np.nonzero(np.atleast_1d(host(input)))
    if as_tuple:
        return tuple(with_layout_of(part.astype(np.int64), input) for part in found)
    rows = np.stack(found, axis=1).astype(np.int64)
    return with_layout_of(rows[:, : input.ndim], input)


def masked_select(input: Tensor, mask: Tensor, *, out=None) -> Tensor:
    """Return the elements where the mask holds (both broadcast) as a vector; a number holds that is not 0."""
    if mask.dtype != dtypes.bool_:
        mask = mask != 0
    shape = np.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    x = input if tuple(input.shape) == shape else input.expand(shape)
    mask = mask if tuple(mask.shape) == shape else mask.expand(shape)
    if not shape:
        x, mask = x.reshape(1), mask.reshape(1)
    return _finish(getitem(x, mask), out)


def _has_order(name: str, input: Tensor) -> None:
    if input.is_complex():
        rule = f"{name} is not defined for complex numbers"
        raise OpTypeError(message(f"{name}(x)", f"a {input.dtype.name} tensor", rule, "x.abs()"))


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    dtype=None,
):
    """Return the distinct elements (or slices of a dim), sorted; if asked, each element's index in them, and counts.

    Indices and counts are of int64 (int32 under OneFlow's name, as there), or of the dtype that is asked for.
    """
    _has_order("unique", input)
    counted = dtypes.np_of(dtype or _positions())
    values, inverse, counts = np.unique(  # as in PyTorch every NaN is another element
        host(input), return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    shape = tuple(input.shape) if dim is None else (input.shape[dim],)
    out = [with_layout_of(values, input)]
    if return_inverse:
        out.append(with_layout_of(inverse.reshape(shape).astype(counted), input))
    if return_counts:
        out.append(with_layout_of(counts.astype(counted), input))
    return out[0] if len(out) == 1 else tuple(out)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
):
    """Return the elements (along a dim, the slices) that differ from their predecessor."""
    _has_order("unique_consecutive", input)
    if dim is None:
        rows, along = host(input).reshape(-1), 0
        shape = tuple(input.shape)
    else:
        along = one(dim, input.ndim, "unique_consecutive")
        rows = np.moveaxis(host(input), along, 0)
        shape = rows.shape[:1]
    starts = np.ones(rows.shape[0], bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(tuple(range(1, rows.ndim)))
    out = [with_layout_of(np.moveaxis(rows[starts], 0, along), input)]
    if return_inverse:
        out.append(with_layout_of((np.cumsum(starts) - 1).reshape(shape).astype(np.int64), input))
    if return_counts:
        edges = np.append(np.flatnonzero(starts), rows.shape[0])
        out.append(with_layout_of(np.diff(edges).astype(np.int64), input))
    return out[0] if len(out) == 1 else tuple(out)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each non-negative integer occurs, or the sum of its weights."""
    if len(input.shape) != 1 or input.dtype.is_floating_point:
        raise OpTypeError(
            message(
                "bincount(x)",
                f"{input.dtype.name}{list(input.shape)}",
                "bincount only supports 1-d non-negative integral inputs",
                "x.reshape(-1).long()",
            )
        )
    check_natural("bincount(x)", input, "the numbers that bincount counts")
    weights = weights if input.shape.numel() else None  # without elements PyTorch gives int64, whatever the weights
    largest = int(input.max().item()) + 1 if input.shape.numel() else 0
    length = max(largest, int(minlength))
    return dispatch.run(op_of(embedding.bincount, (("length", length),)), (input, weights))


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return the counts of elements in equal bins from ``min`` to ``max`` (the data's range if both are 0)."""
    if not input.is_floating_point():
        rule = "histc is defined for floating point"
        raise OpTypeError(message("histc(x)", f"a {input.dtype.name} tensor", rule, "x.float()"))
    values = host(input).astype(np.float64).reshape(-1)
    low, high = (values.min(), values.max()) if min == max == 0 and values.size else (min, max)
    if low == high:
        low, high = low - 1, high + 1
    counts = np.histogram(values, bins=bins, range=(low, high))[0]
    return with_layout_of(counts.astype(input.dtype.np), input)


def argwhere(input: Tensor, dtype=None) -> Tensor:
    """Return the indices of the elements that are not zero, one row each; dtypes as in `unique`."""
    return nonzero(input).to(dtype or _positions())


def _positions() -> dtypes.dtype:
    return dtypes.int32 if naming.is_oneflow() else dtypes.int64


METHODS = (
    gather, take_along_dim, take, index_select, scatter, scatter_, scatter_add, scatter_add_, scatter_reduce,
    scatter_reduce_, index_add, index_add_, index_copy, index_copy_, index_fill, index_fill_, masked_fill,
    masked_fill_, masked_scatter, masked_scatter_, nonzero, masked_select, unique, unique_consecutive, bincount,
    histc,
)  # fmt: skip


def _attach() -> None:
    for function in METHODS:
        setattr(Tensor, function.__name__, function)
    attach(argwhere=argwhere)


_attach()
publish(
    globals(),
    """take_along_dim take scatter scatter_add scatter_reduce index_add index_copy searchsorted bucketize nonzero histc
 gather index_select masked_select""",
)
publish(globals(), "unique unique_consecutive bincount index_fill masked_fill masked_scatter argwhere", out=False)
take_names(
    globals(),
    """gather index_select scatter scatter_add take_along_dim index_add index_copy index_fill""",
    **NUMPY,
)
take_oneflow(globals())
