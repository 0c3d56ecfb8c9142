"""Ops with data-dependent result shapes (`nonzero`, `unique`), and searches in sorted sequences.

`nonzero`, `masked_select`, `unique`, … read the data on the host for the size; the elements themselves are
then gathered by an op that is on the tape and keeps a global tensor global.
"""

from __future__ import annotations

import numpy as np

from sbpjax._core import naming
from sbpjax._core.ops.dims import one
from sbpjax._core.ops.layers import embedding
from sbpjax._core.tensor.calls.bounds import check_non_negative
from sbpjax._core.tensor.creation.convert import fetch_to_host
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.indexing import getitem, with_layout_of
from sbpjax.errors import OpError, OpTypeError, OpValueError


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
        values: the values to insert.
        out_int32: give int32 indices.
        right: insert after equal elements.
        side: ``"right"`` is ``right=True``.
        sorter: ``(..., N)`` indices that sort the sequence.

    Raises:
        OpError: ``sorter`` has another shape than the sequence.
        OpValueError: another ``side``, or one that contradicts ``right``.
    """
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            seen = f"sorter {list(sorter.shape)}, sequence {list(sorted_sequence.shape)}"
            rule = "boundary and sorter must have the same size"
            raise OpError("searchsorted(x, values, sorter=...)", seen, rule, "sorter=x.argsort()")
        sorted_sequence = sorted_sequence.take_along_dim(sorter, -1)
    if side not in (None, "left", "right") or (side == "left" and right):
        rule = "side is 'left' or 'right', and does not contradict right=True"
        raise OpValueError("searchsorted(x, values)", f"side={side!r}, right={right}", rule, "side='right'")
    right = right or side == "right"
    dtype = (dtypes.int32 if out_int32 else dtypes.int64).np
    return dispatch.apply(embedding.searchsorted, sorted_sequence, values, right=right, dtype=dtype)


def bucketize(input, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Return the index of the bucket that each value falls in."""
    if boundaries.ndim != 1:
        rule = f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})"
        raise OpError("bucketize(x, boundaries)", f"boundaries {list(boundaries.shape)}", rule, "flatten them")
    dtype = (dtypes.int32 if out_int32 else dtypes.int64).np
    return dispatch.apply(embedding.bucketize, input, boundaries, right=right, dtype=dtype)


# --------------------------------------------------------------------------------------- shapes that depend on the data


def nonzero(input: Tensor, as_tuple: bool = False):
    """Return the indices of the elements that are not zero: one row each, or as one vector per dim.

    Args:
        as_tuple: one vector per dim instead.

    Returns:
        int64 ``(count, dims)``. Any sbp; the result is broadcast, since its size depends on values.

    Example:
        >>> flow.nonzero(flow.tensor([[0, 1], [2, 0]]))
        tensor([[0, 1],
                [1, 0]])
    """
    found = np.nonzero(np.atleast_1d(fetch_to_host(input)))
    if as_tuple:
        return tuple(with_layout_of(part.astype(np.int64), input) for part in found)
    rows = np.stack(found, axis=1).astype(np.int64)
    return with_layout_of(rows[:, : input.ndim], input)


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where the mask holds (both broadcast) as a vector; a number holds that is not 0.

    Args:
        mask: bools or numbers, broadcast with ``input``.

    Returns:
        A vector; of a split tensor a partial sum, each rank holding its own elements among zeros.

    Example:
        >>> flow.masked_select(flow.tensor([1, 2, 3]), flow.tensor([True, False, True]))
        tensor([1, 3])
    """
    if mask.dtype != dtypes.bool_:
        mask = mask != 0
    shape = np.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    x = input if tuple(input.shape) == shape else input.expand(shape)
    mask = mask if tuple(mask.shape) == shape else mask.expand(shape)
    if not shape:
        x, mask = x.reshape(1), mask.reshape(1)
    return getitem(x, mask)


def _check_ordered(name: str, input: Tensor) -> None:
    if input.is_complex():
        rule = f"{name} is not defined for complex numbers"
        raise OpTypeError(f"{name}(x)", f"a {input.dtype.name} tensor", rule, "x.abs()")


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    dtype=None,
):
    """Return the distinct elements (or slices of a dim), sorted; optionally each element's index in them, and counts.

    Indices and counts are of int64 (int32 under OneFlow's name, as there), or of the given dtype.

    Args:
        sorted: accepted; elements are sorted always.
        return_inverse: return also where each element is among them.
        return_counts: return also how often each occurs.
        dim: the dim whose slices are compared; None for single elements.
        dtype: the dtype of indices and counts.

    Returns:
        The elements, alone or in a tuple. Any sbp; the result is broadcast, since its size depends on values.

    Example:
        >>> flow.unique(flow.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    _check_ordered("unique", input)
    counted = dtypes.as_np_dtype(dtype or _index_dtype())
    values, inverse, counts = np.unique(  # as in PyTorch every NaN is a distinct element
        fetch_to_host(input), return_inverse=True, return_counts=True, axis=dim, equal_nan=False
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
    _check_ordered("unique_consecutive", input)
    if dim is None:
        rows, along = fetch_to_host(input).reshape(-1), 0
        shape = tuple(input.shape)
    else:
        along = one(dim, input.ndim, "unique_consecutive")
        rows = np.moveaxis(fetch_to_host(input), along, 0)
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
    """Return how often each non-negative integer occurs, or the sum of its weights.

    Args:
        input: a vector of integers, none negative.
        weights: a weight per element.
        minlength: the least size of the result.

    Returns:
        A vector, int64 or of the weights' dtype; of a split tensor a partial sum.

    Raises:
        OpTypeError: ``input`` is no vector of integers.
        OpBoundsError: one is negative.

    Example:
        >>> flow.bincount(flow.tensor([0, 2, 2]))
        tensor([1, 0, 2])
    """
    if len(input.shape) != 1 or input.dtype.is_floating_point:
        raise OpTypeError(
            "bincount(x)",
            f"{input.dtype.name}{list(input.shape)}",
            "bincount only supports 1-d non-negative integral inputs",
            "x.reshape(-1).long()",
        )
    if int(minlength) < 0:
        raise OpError("bincount(x)", f"minlength={minlength}", "minlength should be >= 0", "minlength=0")
    check_non_negative("bincount(x)", input, "the numbers that bincount counts")
    weights = weights if input.shape.numel() else None  # without elements PyTorch gives int64, whatever the weights
    largest = int(input.max().item()) + 1 if input.shape.numel() else 0
    length = max(largest, int(minlength))
    return dispatch.apply(embedding.bincount, input, weights, length=length)


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return the counts of elements in equal bins from ``min`` to ``max`` (the data's range if both are 0)."""
    if not input.is_floating_point():
        rule = "histc is defined for floating point"
        raise OpTypeError("histc(x)", f"a {input.dtype.name} tensor", rule, "x.float()")
    values = fetch_to_host(input).astype(np.float64).reshape(-1)
    low, high = (values.min(), values.max()) if min == max == 0 and values.size else (min, max)
    if low == high:
        low, high = low - 1, high + 1
    counts = np.histogram(values, bins=bins, range=(low, high))[0]
    return with_layout_of(counts.astype(input.dtype.np), input)


def argwhere(input: Tensor, dtype=None) -> Tensor:
    """Return the indices of the elements that are not zero, one row each; dtypes as in `unique`."""
    return nonzero(input).to(dtype or _index_dtype())


def _index_dtype() -> dtypes.dtype:
    return dtypes.int32 if naming.is_oneflow() else dtypes.int64
