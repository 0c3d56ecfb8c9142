"""Reductions, cumulative sums, sorting and windows in NumPy."""

from __future__ import annotations

import functools

import numpy as np

from .pointwise import is_half, rule

# NumPy adds up the rows of a matrix one after the other, with an error of 1e-5 for 200,000 of them; XLA's is 1e-7.
_WIDE = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


@rule("reduce_sum")
def reduce_sum(x, axes, **_):
    wide = np.float32 if is_half(x.dtype) else _WIDE.get(x.dtype, x.dtype)
    return np.asarray(np.add.reduce(x, tuple(axes), dtype=wide)).astype(x.dtype)


@rule("reduce_prod")
def reduce_prod(x, axes, **_):
    wide = np.float32 if is_half(x.dtype) else x.dtype
    return np.asarray(np.multiply.reduce(x, tuple(axes), dtype=wide)).astype(x.dtype)


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


def _first_best(find, x, axes, index_dtype, **_):
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    return np.asarray(find(wide, axes[0])).astype(index_dtype)


def _cumulate(operation, x, axis, reverse, **_):
    wide = x.astype(np.float32 if is_half(x.dtype) else _WIDE.get(x.dtype, x.dtype) if operation is np.add else x.dtype)
    if reverse:
        wide = np.flip(wide, axis)
    total = operation.accumulate(wide, axis, dtype=wide.dtype)
    return (np.flip(total, axis) if reverse else total).astype(x.dtype)


def _combine_bits(operation, x, axes, **_):
    return operation.reduce(x, tuple(axes))


# Per primitive a function here and NumPy's.
_BY_OPERATION = {
    "reduce_and": (_combine_bits, np.bitwise_and), "reduce_or": (_combine_bits, np.bitwise_or),
    "reduce_xor": (_combine_bits, np.bitwise_xor),
    "argmax": (_first_best, np.argmax), "argmin": (_first_best, np.argmin),
    "cumsum": (_cumulate, np.add), "cumprod": (_cumulate, np.multiply),
    "cummax": (_cumulate, np.maximum), "cummin": (_cumulate, np.minimum),
}  # fmt: skip
for name, (function, operation) in _BY_OPERATION.items():
    rule(name)(functools.partial(function, operation))


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
    return reduce_sum(_windows(x, 0, **params), range(x.ndim, 2 * x.ndim))


@rule("reduce_window_max")
def reduce_window_max(x, **params):
    return np.maximum.reduce(_windows(x, _least(x.dtype), **params), tuple(range(x.ndim, 2 * x.ndim)))


@rule("reduce_window_min")
def reduce_window_min(x, **params):
    return np.minimum.reduce(_windows(x, _greatest(x.dtype), **params), tuple(range(x.ndim, 2 * x.ndim)))
