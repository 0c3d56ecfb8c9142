"""Unpooling, power-average pooling and fractional max pooling.

Worked case: `max_unpool1d` of values `[[[4, 8]]]` and places `[[[1, 3]]]` writes `[[[0, 4, 0, 8]]]`: one scatter along
the flattened spatial dims, which splits over batch and channels.
"""

from __future__ import annotations

import math

import numpy as np
from jax import lax

from ..dims import fail
from ..promote import INT64, cast, compute_dtype, floats
from ..shapes.gather import check_index, scatter, take_along
from .conv import _add_batch_dim, per_dim
from .pool import _geometry, _windows, pooling_argmax


def max_unpool(x, indices, /, n: int, kernel_size, stride=None, padding=0, output_size=None):
    """Return zeros with the pooled values where `max_pool` found them.

    Args:
        x: ``(N, C, ...)`` or ``(C, ...)``.
        indices: of x's shape: flat places within the last n dims of the result.
        n: the number of spatial dims.
        kernel_size: number(s), those of the pooling.
        stride: number(s), by default the kernel's.
        padding: number(s).
        output_size: the spatial sizes of the result (or its whole shape); by default the smallest that pool to x.
    """
    op = f"max_unpool{n}d"
    if x.shape != indices.shape:
        rule = "input and indices have the same shape"
        fail("shape", op, f"input {x.shape}, indices {indices.shape}", rule, "the indices of return_indices=True")
    check_index(indices, op)
    x, single = _add_batch_dim(x, n, op)
    sizes = unpooled_sizes(x.shape[2:], kernel_size, stride, padding, output_size)
    flat = (*x.shape[:2], math.prod(x.shape[2:]))
    zeros = lax.full((*x.shape[:2], math.prod(sizes)), 0, x.dtype)
    out = scatter(zeros, lax.reshape(indices, flat), lax.reshape(x, flat), dim=2)
    out = lax.reshape(out, (*x.shape[:2], *sizes))
    return lax.squeeze(out, (0,)) if single else out


def unpooled_sizes(shape: tuple[int, ...], kernel_size, stride, padding, output_size) -> tuple[int, ...]:
    """Return the spatial sizes of the result of un-pooling from those of the pooled values; other arguments as there.

    Raises:
        OpValueError: `output_size` does not pool to these sizes, or has another number of them.
    """
    n = len(shape)
    kernel = per_dim(kernel_size, n, "kernel_size")
    stride = kernel if stride is None or stride == () else per_dim(stride, n, "stride")
    padding = per_dim(padding, n, "padding")
    default = tuple((s - 1) * t - 2 * p + k for s, t, p, k in zip(shape, stride, padding, kernel))
    sizes = default if output_size is None else tuple(output_size)
    if len(sizes) not in (n, n + 2):
        rule = f"output_size should be a sequence containing {n} or {n + 2} elements"
        rule += f", but it has a length of {len(sizes)}"
        fail("value", f"max_unpool{n}d", f"output_size {sizes}", rule, f"output_size={default}")
    sizes = sizes[-n:]
    if any(abs(a - b) >= s for a, b, s in zip(sizes, default, stride)):
        low, high = [d - s + 1 for d, s in zip(default, stride)], [d + s - 1 for d, s in zip(default, stride)]
        rule = f"each size is between {low} and {high}"
        fail("value", f"max_unpool{n}d", f"output_size {sizes}", rule, f"output_size={default}")
    return sizes


def max_unpool1d(x, indices, /, kernel_size, stride=None, padding=0, output_size=None):
    """Return zeros with the pooled values where `max_pool1d` found them.

    Args:
        x: `(N, C, L)` or `(C, L)`.
        indices: the indices of `max_pool1d(..., return_indices=True)`.
        kernel_size: the size of the pooling's window.
        stride: its step; None takes `kernel_size`.
        padding: its padding.
        output_size: the length before the pooling, where several pool to the same.
    """
    return max_unpool(x, indices, 1, kernel_size, stride, padding, output_size)


def max_unpool2d(x, indices, /, kernel_size, stride=None, padding=0, output_size=None):
    """Return zeros with the pooled values where `max_pool2d` found them; arguments as in `max_unpool1d`."""
    return max_unpool(x, indices, 2, kernel_size, stride, padding, output_size)


def max_unpool3d(x, indices, /, kernel_size, stride=None, padding=0, output_size=None):
    """Return zeros with the pooled values where `max_pool3d` found them; arguments as in `max_unpool1d`."""
    return max_unpool(x, indices, 3, kernel_size, stride, padding, output_size)


def lp_pool(x, /, n: int, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False):
    """Return the p-norm of every window over the last n dims; a window whose powers sum to 0 gives 0.

    Args:
        x: ``(N, C, ...)`` or ``(C, ...)``; integers become floats.
        n: the number of spatial dims.
        norm_type: p.
        kernel_size: number(s).
        stride: number(s), by default the kernel's.
        ceil_mode: count a last window that reaches past the end; its sum is scaled up to a whole window's.
    """
    x = floats(x)
    dtype = x.dtype
    x, single, dims = _geometry(cast(x, compute_dtype(dtype)), n, kernel_size, stride, 0, 1, ceil_mode, f"lp_pool{n}d")
    p = np.asarray(norm_type, x.dtype)
    total, sizes = lax.pow(x, p) if norm_type != 2 else lax.square(x), x.shape[2:]
    for i, (kernel, step, _, _, count) in enumerate(dims):
        parts = _windows(total, i + 2, kernel, step, 0, 1, count, 0)
        total = parts[0]
        for part in parts[1:]:
            total = lax.add(total, part)
        start = np.arange(count) * step
        inside = np.minimum(start + kernel, sizes[i]) - start
        if (inside != kernel).any():
            shape = tuple(count if d == i + 2 else 1 for d in range(total.ndim))
            total = lax.mul(total, np.asarray(kernel / inside, x.dtype).reshape(shape))
    zero = lax.eq(total, np.zeros((), total.dtype))
    safe = lax.select_n(zero, total, lax.full_like(total, 1))
    out = lax.select_n(zero, lax.pow(safe, np.asarray(1.0 / norm_type, total.dtype)), lax.full_like(total, 0))
    out = cast(out, dtype)
    return lax.squeeze(out, (0,)) if single else out


def lp_pool1d(x, /, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False):
    """Return the p-norm of every window of `(N, C, L)`.

    Args:
        x: `(N, C, L)` or `(C, L)`.
        norm_type: p.
        kernel_size: size of the window.
        stride: step of the window; None takes `kernel_size`.
        ceil_mode: also take windows that reach past the end.
    """
    return lp_pool(x, 1, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(x, /, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False):
    """Return the p-norm of every window of `(N, C, H, W)`; arguments as in `lp_pool1d`."""
    return lp_pool(x, 2, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(x, /, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False):
    """Return the p-norm of every window of `(N, C, D, H, W)`; arguments as in `lp_pool1d`."""
    return lp_pool(x, 3, norm_type, kernel_size, stride, ceil_mode)


def _starts(sample, size: int, count: int, kernel: int):
    """Return the first places ``(N, C, count)`` of windows whose distances are random, from one number per channel."""
    if count == 1:
        return lax.full((*sample.shape, 1), size - kernel, INT64)
    shape = (*sample.shape, count)
    alpha = np.asarray((size - kernel) / (count - 1), sample.dtype)
    shift = lax.broadcast_in_dim(sample, shape, (0, 1))
    step = lax.add(lax.broadcasted_iota(sample.dtype, shape, 2), shift)
    start = lax.sub(cast(lax.mul(step, alpha), INT64), cast(lax.mul(shift, alpha), INT64))
    last = lax.eq(lax.broadcasted_iota(np.int32, shape, 2), np.int32(count - 1))
    return lax.select_n(last, start, lax.full(shape, size - kernel, INT64))


def fractional_max_pool(x, samples, /, n: int, kernel_size, output_size, return_indices: bool = False):
    """Return maxima of overlapping windows that begin at random, increasing places.

    Args:
        x: ``(N, C, ...)`` or ``(C, ...)``.
        samples: ``(N, C, n)`` numbers in [0, 1), one per dim.
        n: the number of spatial dims, 2 or 3.
        kernel_size: number(s).
        output_size: number(s).
        return_indices: return (values, int64 flat places).

    Source:
        Graham, Fractional Max-Pooling, https://arxiv.org/abs/1412.6071
    """
    op = f"fractional_max_pool{n}d"
    x, single = _add_batch_dim(x, n, op)
    kernel, counts = per_dim(kernel_size, n, "kernel_size"), per_dim(output_size, n, "output_size")
    sizes = x.shape[2:]
    room = n - 2  # torch wants one more element in three dims
    if any(c + k - 1 > s - room or c < 1 for c, k, s in zip(counts, kernel, sizes)):
        rule = f"output_size + kernel_size - 1 is at most the input's size{' - 1' * room}, in every dim"
        fail("shape", op, f"x {x.shape}, kernel {kernel}, output {counts}", rule, "a smaller output_size")
    if samples.shape != (*x.shape[:2], n):
        fail("shape", op, f"samples {samples.shape}", f"they are {(*x.shape[:2], n)}", "_random_samples=None")
    grid = (*x.shape[:2], *counts, *kernel)
    place = lax.full(grid, 0, INT64)
    for i in range(n):
        # torch draws width first in two dims, and depth, height, width in three
        drawn = n - 1 - i if n == 2 else i
        sample = lax.squeeze(lax.slice_in_dim(samples, drawn, drawn + 1, axis=2), (2,))
        start = _starts(cast(sample, compute_dtype(sample.dtype)), sizes[i], counts[i], kernel[i])
        row = lax.add(lax.broadcast_in_dim(start, grid, (0, 1, 2 + i)), lax.broadcasted_iota(INT64, grid, 2 + n + i))
        place = lax.add(place, lax.mul(row, np.int64(math.prod(sizes[i + 1 :]))))
    cells = math.prod(kernel)
    place = lax.reshape(place, (*x.shape[:2], math.prod(counts) * cells))
    values = take_along(lax.reshape(x, (*x.shape[:2], math.prod(sizes))), place, 2)
    windows = (*x.shape[:2], math.prod(counts), cells)
    values, place = lax.reshape(values, windows), lax.reshape(place, windows)
    best = lax.expand_dims(pooling_argmax(values, 3), (3,))
    shape = (*x.shape[1 if single else 0 : 2], *counts)
    out = lax.reshape(take_along(values, best, 3), shape)
    return (out, lax.reshape(take_along(place, best, 3), shape)) if return_indices else out


def fractional_max_pool2d(x, samples, /, kernel_size, output_size, return_indices: bool = False):
    """Return the 2-D fractional pooling; see `fractional_max_pool`."""
    return fractional_max_pool(x, samples, 2, kernel_size, output_size, return_indices)


def fractional_max_pool3d(x, samples, /, kernel_size, output_size, return_indices: bool = False):
    """Return the 3-D fractional pooling; see `fractional_max_pool`."""
    return fractional_max_pool(x, samples, 3, kernel_size, output_size, return_indices)
