"""Reductions, cumulative sums, sorting and windows in NumPy."""

from __future__ import annotations

import numpy as np

from .pointwise import is_half, rule


@rule("reduce_sum")
def reduce_sum(x, axes, **_):
    return _total(np.add, x, axes)


@rule("reduce_prod")
def reduce_prod(x, axes, **_):
    return _total(np.multiply, x, axes)


def _total(operation, x, axes):
    wide = np.float32 if is_half(x.dtype) else x.dtype
    return np.asarray(operation.reduce(x, tuple(axes), dtype=wide)).astype(x.dtype)


@rule("reduce_max")
def reduce_max(x, axes, **_):
    return np.maximum.reduce(x, tuple(axes), initial=_least(x.dtype))


@rule("reduce_min")
def reduce_min(x, axes, **_):
    return np.minimum.reduce(x, tuple(axes), initial=_greatest(x.dtype))


def _least(dtype):
    if dtype.kind == "b":
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else np.array(-np.inf).astype(dtype)[()]


def _greatest(dtype):
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).max if dtype.kind in "iu" else np.array(np.inf).astype(dtype)[()]


@rule("reduce_and")
def reduce_and(x, axes, **_):
    return np.bitwise_and.reduce(x, tuple(axes))


@rule("reduce_or")
def reduce_or(x, axes, **_):
    return np.bitwise_or.reduce(x, tuple(axes))


@rule("reduce_xor")
def reduce_xor(x, axes, **_):
    return np.bitwise_xor.reduce(x, tuple(axes))


@rule("argmax")
def argmax(x, axes, index_dtype, **_):
    return _first_best(np.argmax, x, axes, index_dtype)


@rule("argmin")
def argmin(x, axes, index_dtype, **_):
    return _first_best(np.argmin, x, axes, index_dtype)


def _first_best(find, x, axes, index_dtype):
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    return np.asarray(find(wide, axes[0])).astype(index_dtype)


def _cumulate(operation, x, axis, reverse):
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    if reverse:
        wide = np.flip(wide, axis)
    total = operation.accumulate(wide, axis, dtype=wide.dtype)
    return (np.flip(total, axis) if reverse else total).astype(x.dtype)


@rule("cumsum")
def cumsum(x, axis, reverse, **_):
    return _cumulate(np.add, x, axis, reverse)


@rule("cumprod")
def cumprod(x, axis, reverse, **_):
    return _cumulate(np.multiply, x, axis, reverse)


@rule("cummax")
def cummax(x, axis, reverse, **_):
    return _cumulate(np.maximum, x, axis, reverse)


@rule("cummin")
def cummin(x, axis, reverse, **_):
    return _cumulate(np.minimum, x, axis, reverse)


@rule("sort")
def sort(*arrays, dimension, num_keys, **_):
    keys = [x.astype(np.float32) if is_half(x.dtype) else x for x in arrays[:num_keys]]
    if num_keys == 1:  # stable, NaN last, as XLA's comparison of jax.lax.sort
        order = np.argsort(keys[0], dimension, kind="stable")
    else:
        order = np.lexsort(keys[::-1], dimension)
    return tuple([np.take_along_axis(x, order, dimension) for x in arrays])


@rule("top_k")
def top_k(x, k, axis=-1, **_):
    axis %= x.ndim
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    # A stable sort of the reversed order: equal elements keep their order, NaN is largest.
    order = np.flip(x.shape[axis] - 1 - np.argsort(np.flip(wide, axis), axis, kind="stable"), axis)
    order = order[(slice(None),) * axis + (slice(0, k),)]
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


def _windows(x, start, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """Return the windows of an array that is padded with a reduction's start, as dims at the end."""
    shape = [
        low + high + max((n - 1) * step + 1, 0)
        for n, (low, high), step in zip(x.shape, padding, base_dilation, strict=True)
    ]
    padded = np.full(shape, start, x.dtype)
    places = [
        slice(low, low + max((n - 1) * step + 1, 0), step)
        for n, (low, _), step in zip(x.shape, padding, base_dilation, strict=True)
    ]
    padded[tuple(places)] = x
    extents = [(n - 1) * step + 1 for n, step in zip(window_dimensions, window_dilation, strict=True)]
    views = np.lib.stride_tricks.sliding_window_view(padded, extents)
    steps = tuple([slice(None, None, step) for step in window_strides])
    return views[steps + tuple([slice(None, None, step) for step in window_dilation])]


@rule("reduce_window_sum")
def reduce_window_sum(x, **params):
    return _total(np.add, _windows(x, 0, **params), range(x.ndim, 2 * x.ndim))


@rule("reduce_window_max")
def reduce_window_max(x, **params):
    return np.maximum.reduce(_windows(x, _least(x.dtype), **params), tuple(range(x.ndim, 2 * x.ndim)))


@rule("reduce_window_min")
def reduce_window_min(x, **params):
    return np.minimum.reduce(_windows(x, _greatest(x.dtype), **params), tuple(range(x.ndim, 2 * x.ndim)))
