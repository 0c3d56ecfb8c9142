"""Sorting and order statistics (top-k, median, mode, quantiles) along one dim.

NaN is the largest value everywhere, as in torch. All values are read through the sorted indices, so their gradient is
one scatter. Worked case: `topk([3, nan, 1], 2)` gives `[nan, 3]` and indices `[1, 0]`.
"""

from __future__ import annotations

import math

import numpy as np
from jax import lax

from ..dims import fail, no_complex, one, restore_dims
from ..promote import BOOL, INT64, broadcast_to, cast, is_float
from ..shapes.gather import pick, take_along


def _order(x, dim: int, descending: bool):
    """Return the int64 indices that sort x along ``dim``; equal elements keep their order."""
    x = lax.stop_gradient(x)
    x = cast(x, np.uint8) if x.dtype == BOOL else x
    place = lax.broadcasted_iota(INT64, x.shape, dim)
    if descending:  # sorted backwards and turned round: stable, and NaN comes first
        x, place = lax.rev(x, (dim,)), lax.rev(place, (dim,))
    _, index = lax.sort((x, place), dimension=dim, is_stable=True, num_keys=1)
    return lax.rev(index, (dim,)) if descending else index


def sort(x, /, dim: int = -1, descending: bool = False, stable: bool = False):
    """Return x sorted along ``dim`` and the int64 indices of its elements; always stable.

    Args:
        descending: from the largest on.
        stable: accepted; sorting is stable always.

    Example:
        >>> values, indices = flow.sort(flow.tensor([[3, 1, 2], [0, 5, 4]]))
        >>> values, indices
        (tensor([[1, 2, 3],
                [0, 4, 5]]), tensor([[1, 2, 0],
                [0, 2, 1]]))
    """
    no_complex(x, "sort", "shape")
    dim = one(dim, x.ndim, "sort")
    if x.ndim == 0:
        return x, lax.full((), 0, INT64)
    index = _order(x, dim, descending)
    return take_along(x, index, dim), index


def argsort(x, /, dim: int = -1, descending: bool = False, stable: bool = False):
    """Return the int64 indices that sort x along ``dim``; always stable.

    Args:
        descending: from the largest on.
        stable: accepted; sorting is stable always.

    Example:
        >>> flow.argsort(flow.tensor([3, 1, 2]), descending=True)
        tensor([0, 2, 1])
    """
    return sort(x, dim=dim, descending=descending)[1]


def msort(x, /):
    """Return x sorted along dim 0."""
    return sort(x, dim=0)[0]


def topk(x, /, k: int, dim: int = -1, largest: bool = True, sorted: bool = True):
    """Return the k largest (or smallest) elements along ``dim``, in order, and their int64 indices.

    Args:
        k: how many.
        largest: whether the largest, not the smallest.
        sorted: accepted; they are in order always.

    Raises:
        OpError: ``k`` is larger than the dim.

    Example:
        >>> values, indices = flow.topk(flow.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]]), 2)
        >>> values, indices
        (tensor([[3., 2.],
                [5., 4.]]), tensor([[0, 2],
                [1, 2]]))
    """
    dim = one(dim, x.ndim, "topk")
    size = x.shape[dim] if x.ndim else 1
    if not 0 <= k <= size:
        fail("shape", f"topk(k={k}, dim={dim})", f"x {x.shape}", f"k is in [0, {size}]", f"topk(k={size})")
    if x.ndim == 0:
        return (x, lax.full((), 0, INT64)) if k else (lax.full((0,), 0, x.dtype), lax.full((0,), 0, INT64))
    if largest and x.dtype != BOOL:
        index = cast(lax.top_k(lax.stop_gradient(x), k, axis=dim)[1], INT64)
    else:
        index = lax.slice_in_dim(_order(x, dim, largest), 0, k, axis=dim)
    return take_along(x, index, dim), index


def kthvalue(x, /, k: int, dim: int = -1, keepdim: bool = False):
    """Return the k-th smallest element along ``dim`` (k from 1) and its int64 index."""
    dim = one(dim, x.ndim, "kthvalue")
    size = x.shape[dim] if x.ndim else 1
    if not size:
        rule = f"Expected reduction dim {dim} to have non-zero size"
        fail("index", f"kthvalue(k={k})", f"x {x.shape}", rule, "check x.shape first")
    if not 1 <= k <= size:
        fail("shape", f"kthvalue(k={k})", f"x {x.shape}", f"k is in [1, {size}]", f"kthvalue(k={size})")
    if x.ndim == 0:
        return x, lax.full((), 0, INT64)
    index = lax.slice_in_dim(_order(x, dim, False), k - 1, k, axis=dim)
    return _gather_index(x, index, dim, keepdim)


def _gather_index(x, index, dim: int, keepdim: bool):
    """Return (values, index) for an index whose ``dim`` has size 1."""
    values = take_along(x, index, dim)
    return (values, index) if keepdim else (lax.squeeze(values, (dim,)), lax.squeeze(index, (dim,)))


def _median(x, dim: int, keepdim: bool, skip_nan: bool):
    dim = one(dim, x.ndim, "median")
    if x.ndim == 0:
        return x, lax.full((), 0, INT64)
    size = x.shape[dim]
    if size == 0:
        fail("index", f"median(dim={dim})", f"x {x.shape}", "the dim has at least one element", "check x.shape first")
    order = _order(x, dim, False)
    if not is_float(x.dtype):
        return _gather_index(x, lax.slice_in_dim(order, (size - 1) // 2, (size + 1) // 2, axis=dim), dim, keepdim)
    nans = lax.reduce_sum(cast(lax.ne(x, x), INT64), (dim,))
    valid = lax.sub(np.int64(size), nans)
    lower = lax.div(lax.max(lax.sub(valid, np.int64(1)), np.int64(0)), np.int64(2))
    if not skip_nan:  # the first NaN is right after the valid ones
        lower = lax.select_n(lax.gt(nans, np.int64(0)), lower, valid)
    return _gather_index(x, restore_dims(pick(order, lower, dim), (dim,), True), dim, keepdim)


def median(x, /, dim: int | None = None, keepdim: bool = False):
    """Return the median (the lower of two) of all elements, or with ``dim`` the pair (values, int64 indices).

    NaN if there is any NaN. The gradient of the median of all elements is shared by the elements equal to it.
    """
    return _median_all(x, False) if dim is None else _median(x, dim, keepdim, False)


def nanmedian(x, /, dim: int | None = None, keepdim: bool = False):
    """Return the `median` of the elements that are not NaN."""
    return _median_all(x, True) if dim is None else _median(x, dim, keepdim, True)


def _median_all(x, skip_nan: bool):
    if x.size == 0:
        return lax.full((), np.nan if is_float(x.dtype) else np.iinfo(x.dtype).min, x.dtype)
    flat = lax.reshape(x, (x.size,))
    value = lax.stop_gradient(_median(flat, 0, False, skip_nan)[0])
    if not is_float(x.dtype):
        return value
    still = lax.stop_gradient(flat)
    same = lax.bitwise_or(
        lax.eq(still, value),
        lax.bitwise_and(lax.ne(still, still), broadcast_to(lax.ne(value, value), still.shape)),
    )
    nothing = lax.full_like(flat, 0)
    moved = lax.select_n(lax.bitwise_and(same, lax.is_finite(still)), nothing, lax.sub(flat, still))
    count = lax.reduce_sum(cast(same, x.dtype), (0,))
    return lax.add(value, lax.div(lax.reduce_sum(moved, (0,)), count))


def mode(x, /, dim: int = -1, keepdim: bool = False):
    """Return the most frequent element along ``dim`` (the smallest of equally frequent ones) and its last index."""
    dim = one(dim, x.ndim, "mode")
    if x.ndim == 0:
        return x, lax.full((), 0, INT64)
    size = x.shape[dim]
    if not size:
        rule = f"mode(): Expected reduction dim {dim} to have non-zero size"
        fail("index", f"mode(x, {dim})", f"x {x.shape}", rule, "check x.numel() first")
    order = _order(x, dim, False)
    ranked = take_along(lax.stop_gradient(x), order, dim)
    before = lax.slice_in_dim(ranked, 0, size - 1, axis=dim)
    changed = lax.ne(lax.slice_in_dim(ranked, 1, size, axis=dim), before)
    pads = [(1, 0, 0) if d == dim else (0, 0, 0) for d in range(x.ndim)]
    first = lax.pad(changed, np.asarray(True), pads)
    place = lax.broadcasted_iota(INT64, x.shape, dim)
    start = lax.cummax(lax.select_n(first, lax.full(x.shape, 0, INT64), place), dim)
    best = lax.argmax(lax.sub(place, start), dim, INT64)  # the end of the first of the longest runs
    return _gather_index(x, restore_dims(pick(order, best, dim), (dim,), True), dim, keepdim)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(x) -> None:
    if x.dtype not in (np.float32, np.float64):
        rule = "quantile() input tensor must be either float or double dtype"
        fail("shape", "quantile(x, q)", f"x of dtype {x.dtype}", rule, "x.float()")


def _interpolate_nearest(low, high, share: float):
    """Return the point between two values, computed from the nearer one; of infinite ones NaN, as in torch."""
    span = lax.sub(high, low)
    if share < 0.5:
        return lax.add(low, lax.mul(span, np.asarray(share, low.dtype)))
    return lax.sub(high, lax.mul(span, np.asarray(1 - share, low.dtype)))


def _place(q: float, last: int, dtype) -> float:
    """Return the place of a quantile among sorted values, in the precision of these, as torch computes it."""
    return float(np.asarray(q, dtype) * np.asarray(last, dtype))


def add_quantile_slope(out, at, i: int, low, high, last):
    """Return a blended quantile with its slope in the i-th element of the tensor of places ``at``, if there is one."""
    if at is None:
        return out
    at = cast(at if at.ndim == 0 else lax.index_in_dim(at, i, 0, keepdims=False), out.dtype)
    return lax.add(out, lax.mul(lax.sub(at, lax.stop_gradient(at)), lax.mul(cast(last, out.dtype), lax.sub(high, low))))


def quantile(
    x,
    at=None,
    /,
    q: float | tuple[float, ...] = 0.5,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
):
    """Return the q-quantiles along ``dim`` (or of all elements); NaN where there is any NaN.

    Args:
        x: float32 or float64.
        at: the tensor that ``q`` was read from, if its gradient is wanted.
        q: a number in [0, 1], or a tuple of them, which makes a new first dim.
        dim: the dim, or None.
        keepdim: keep the dim with size 1.
        interpolation: between neighbours: ``"linear"``, ``"lower"``, ``"higher"``, ``"midpoint"`` or ``"nearest"``.

    Returns:
        The other dims, after one of ``q`` if that has several. Splits of other dims stay.

    Raises:
        OpError: ``x`` is neither float32 nor float64.
        OpValueError: ``q`` is outside [0, 1], or another ``interpolation``.

    Example:
        >>> flow.quantile(flow.tensor([1.0, 2.0, 3.0, 4.0]), 0.5)
        tensor(2.5000)
    """
    qs = q if isinstance(q, (tuple, list)) else (q,)
    if interpolation not in _INTERPOLATIONS or not all(0.0 <= v <= 1.0 for v in qs):
        fail(
            "value",
            f"quantile(q={q}, interpolation={interpolation!r})",
            f"x {x.shape}",
            f"q is in [0, 1], interpolation is one of {_INTERPOLATIONS}",
            "quantile(x, 0.5)",
        )
    _check_quantile(x)
    shape = x.shape
    if dim is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    else:
        axis = one(dim, x.ndim, "quantile")
        x = x if x.ndim else lax.reshape(x, (1,))
    values = sort(x, dim=axis)[0]
    last = x.shape[axis] - 1
    top = lax.slice_in_dim(values, last, last + 1, axis=axis)
    outs = []
    for i, v in enumerate(qs):
        place = _place(v, last, x.dtype)
        below, above = math.floor(place), math.ceil(place)
        if interpolation == "higher":
            below = above
        if interpolation == "nearest":
            below = above = int(np.round(place))
        share = 0.5 if interpolation == "midpoint" else place - below
        low = lax.slice_in_dim(values, below, below + 1, axis=axis)
        high = lax.slice_in_dim(values, above, above + 1, axis=axis)
        out = _interpolate_nearest(low, high, share) if interpolation in ("linear", "midpoint") else low
        out = add_quantile_slope(out, at, i, low, high, last) if interpolation == "linear" else out
        out = lax.select_n(lax.ne(top, top), out, top)  # NaN is sorted last
        out = lax.squeeze(out, (axis,))
        if keepdim:
            out = lax.reshape(out, tuple(1 if dim is None or d == axis else n for d, n in enumerate(shape)))
        outs.append(out)
    if not isinstance(q, (tuple, list)):
        return outs[0]
    return lax.concatenate([lax.expand_dims(o, (0,)) for o in outs], 0)
