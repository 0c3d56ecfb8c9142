"""Pooling, separable per spatial dim, from strided slices and elementwise functions.

XLA's windowed reductions are slow on CPU, give no indices, and split along few dims; a window of k elements along one
dim is k strided slices instead. Worked case: `max_pool2d` of (N, C, 4, 4) with kernel 2: along W, slices 0::2 and
1::2 of (N, C, 4, 2), the larger of the two by ``select``; then the same along H. The last dim goes first, so that of
equal elements the first in row-major order is chosen, as in torch.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail
from ..promote import INT64, broadcast_to, cast, compute_dtype, is_float
from ..shapes.gather import pick
from .conv import _add_batch_dim, per_dim


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Return the number of windows along a dim; with ceil_mode the last may reach past the end, not start there."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-span // stride) if ceil_mode else span // stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def _windows(x, dim: int, kernel: int, stride: int, padding: int, dilation: int, count: int, fill):
    """Return the window's elements as strided slices of x padded with ``fill``, each ``count`` long in ``dim``."""
    kernel = min(kernel, max(x.shape[dim] + padding - 1, 0) // dilation + 1)  # the others are beyond the end
    last = (count - 1) * stride + dilation * (kernel - 1) + 1
    behind = last - x.shape[dim] - padding
    behind = behind if behind > 0 else 0  # not `max`, for which symbolic sizes have to differ
    if padding or behind:
        x = lax.pad(
            x, np.asarray(fill, x.dtype), [(padding, behind, 0) if d == dim else (0, 0, 0) for d in range(x.ndim)]
        )
    return [
        lax.slice_in_dim(x, j * dilation, j * dilation + (count - 1) * stride + 1, stride, dim) for j in range(kernel)
    ]


def _trim_padding(kernel: int, stride: int, padding: int, dilation: int, count: int) -> tuple[int, int]:
    """Return kernel and padding without the window's first elements that are padding in every window."""
    if not padding:
        return kernel, 0
    before = min(max(-((count - 1) * stride - padding) // dilation, 0), kernel - 1)
    return kernel - before, padding - before * dilation


def _geometry(x, n: int, kernel, stride, padding, dilation, ceil_mode: bool, op: str):
    """Return (x with a batch, whether it had none, per spatial dim: kernel, stride, padding, dilation, count)."""
    x, single = _add_batch_dim(x, n, op)
    if 0 in x.shape[1:]:
        rule = f"Expected {n + 1}D or {n + 2}D tensor of which only the batch may be empty, but got {list(x.shape)}"
        fail("shape", f"{op}(x)", f"x {x.shape}", rule, "leave empty inputs out")
    kernel = per_dim(kernel, n, "kernel_size")
    stride = kernel if stride is None or stride == () else per_dim(stride, n, "stride")
    padding, dilation = per_dim(padding, n, "padding"), per_dim(dilation, n, "dilation")
    if min(padding) < 0:
        rule = f"pad must be non-negative, but got pad: {min(padding)}"
        fail("value", f"{op}(padding={padding})", f"padding={padding}", rule, "padding=0, and x[..., 1:-1] to crop")
    if max(padding) >= 1 << 31:
        fail("shape", f"{op}(padding={padding})", f"padding={padding}", "integer out of range: 2^31", "pad x first")
    if any(2 * p > k for p, k in zip(padding, kernel)):
        fail(
            "value",
            f"{op}(padding={padding})",
            f"kernel {kernel}",
            "the padding is at most half of the kernel",
            "pad x first",
        )
    if min(*kernel, *stride, *dilation) < 1:
        seen = f"kernel_size={kernel}, stride={stride}, dilation={dilation}"
        fail("value", f"{op}(...)", seen, "kernel, stride and dilation are at least 1", "stride=1, or leave it out")
    dims = []
    for size, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation):
        count = output_size(size, k, s, p, d, ceil_mode)
        if count < 1:
            fail(
                "shape",
                f"{op}(kernel_size={kernel})",
                f"x {x.shape}",
                "the output has at least one element per dim",
                "a smaller kernel",
            )
        dims.append((k, s, p, d, count))
    return x, single, dims


def _first_max(values, places):
    """Return the first of the largest values (NaN is largest, a later one wins) and its place."""
    best, best_place = values[0], places[0] if places else None
    for i, value in enumerate(values[1:], 1):
        better = lax.gt(value, best)
        if is_float(value.dtype):
            better = lax.bitwise_or(better, lax.ne(value, value))
        best = lax.select_n(better, best, value)
        if best_place is not None:
            best_place = lax.select_n(better, best_place, places[i])
    return best, best_place


def pooling_argmax(x, dim: int):
    """Return the int64 place of the first largest element along a dim, or of the last NaN, as torch's pooling does."""
    x = lax.stop_gradient(x)
    first = lax.argmax(x, dim, INT64)
    if not is_float(x.dtype):
        return first
    nowhere = lax.full(x.shape, -1, INT64)
    nan = lax.reduce_max(lax.select_n(lax.ne(x, x), nowhere, lax.broadcasted_iota(INT64, x.shape, dim)), (dim,))
    return lax.select_n(lax.lt(nan, np.int64(0)), nan, first)


def max_pool(
    x, /, n: int, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False
):
    """Return the maximum of every window over the last n dims; with ``return_indices`` also its flat place there.

    Args:
        x: ``(N, C, ...)`` or ``(C, ...)``.
        n: the number of spatial dims.
        kernel_size: number(s).
        stride: number(s), by default the kernel's.
        padding: number(s) of -inf at both ends, at most half of the kernel.
        dilation: number(s).
        ceil_mode: count a last window that reaches past the end.
        return_indices: return (values, int64 indices).
    """
    x, single, dims = _geometry(x, n, kernel_size, stride, padding, dilation, ceil_mode, f"max_pool{n}d")
    lowest = -np.inf if is_float(x.dtype) else np.iinfo(x.dtype).min
    sizes = x.shape[2:]
    place = None
    for i in reversed(range(n)):
        kernel, step, ends, spread_, count = dims[i]
        dim = i + 2
        kernel, ends = _trim_padding(kernel, step, ends, spread_, count)
        values = _windows(x, dim, kernel, step, ends, spread_, count, lowest)
        places = []
        if return_indices:
            start = lax.mul(lax.broadcasted_iota(INT64, values[0].shape, dim), np.int64(step))
            rows = [lax.add(start, np.int64(j * spread_ - ends)) for j in range(len(values))]
            weight = np.int64(math.prod(sizes[i + 1 :]))
            rows = [lax.mul(lax.max(r, np.int64(0)), weight) for r in rows]
            inner = (
                [None] * len(values) if place is None else _windows(place, dim, kernel, step, ends, spread_, count, 0)
            )
            places = [r if p is None else lax.add(r, p) for r, p in zip(rows, inner)]
        x, place = _first_max(values, places)
    if single:
        x, place = lax.squeeze(x, (0,)), None if place is None else lax.squeeze(place, (0,))
    return (x, place) if return_indices else x


def max_pool1d(
    x, /, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False
):
    """Return the largest element of every window of `(N, C, L)`.

    Args:
        x: `(N, C, ...)` or `(C, ...)`; splits of the batch and the channels need no communication.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: cells of minus infinity added on both sides.
        dilation: distance of the window's cells.
        ceil_mode: also take windows that begin inside but reach past the end.
        return_indices: return also the flat place of each maximum, int64.

    Returns:
        ``(N, C, ...)``. Splits of the batch and the channels stay; a partial sum is reduced first.

    Example:
        >>> flow.nn.functional.max_pool1d(flow.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2)
        tensor([[[3., 2.]]])
    """
    return max_pool(x, 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    x, /, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False
):
    """Return the largest element of every window of `(N, C, H, W)`; arguments as in `max_pool1d`.

    Example:
        >>> flow.nn.functional.max_pool2d(flow.arange(16.0).reshape(1, 1, 4, 4), 2)
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]])
    """
    return max_pool(x, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    x, /, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False
):
    """Return the largest element of every window of `(N, C, D, H, W)`; arguments as in `max_pool1d`."""
    return max_pool(x, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _counts(size: int, kernel: int, stride: int, padding: int, count: int, include_pad: bool) -> np.ndarray:
    """Return the number of elements in each window's mean: padding may count, elements beyond it never do."""
    start = np.arange(count) * stride - padding
    stop = np.minimum(start + kernel, size + padding)
    return stop - start if include_pad else np.minimum(stop, size) - np.maximum(start, 0)


def avg_pool(
    x,
    /,
    n: int,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
):
    """Return the mean of every window over the last n dims.

    Args:
        x: ``(N, C, ...)`` or ``(C, ...)``, floats.
        n: the number of spatial dims.
        kernel_size: number(s).
        stride: number(s), by default the kernel's.
        padding: number(s) of zeros at both ends, at most half of the kernel.
        ceil_mode: count a last window that reaches past the end.
        count_include_pad: whether padding counts in the divisor.
        divisor_override: divide by this instead.
    """
    x, single, dims = _geometry(x, n, kernel_size, stride, padding, 1, ceil_mode, f"avg_pool{n}d")
    if divisor_override == 0:
        fail(
            "value",
            f"avg_pool{n}d(divisor_override=0)",
            f"x {x.shape}",
            "the divisor is not zero",
            "divisor_override=None",
        )
    sizes, dtype = x.shape[2:], x.dtype
    x = cast(x, compute_dtype(dtype))
    divisor: int | np.ndarray = 1 if divisor_override is None else divisor_override
    for i, (kernel, step, ends, _, count) in enumerate(dims):
        dim = i + 2
        if step == kernel and not ends and count * kernel == sizes[i]:
            x = lax.reshape(x, (*x.shape[:dim], count, kernel, *x.shape[dim + 1 :]))
            x = lax.reduce_sum(x, (dim + 1,))
        else:
            reaching = _trim_padding(kernel, step, ends, 1, count)
            x = functools.reduce(lax.add, _windows(x, dim, reaching[0], step, reaching[1], 1, count, 0))
        if divisor_override is None and not ends and not ceil_mode:
            divisor = divisor * kernel
        elif divisor_override is None:
            found = _counts(sizes[i], kernel, step, ends, count, count_include_pad)
            found = int(found[0]) if (found == found[0]).all() else found.reshape((-1,) + (1,) * (n - 1 - i))
            divisor = divisor * found
    if isinstance(divisor, np.ndarray):
        divisor = divisor.reshape((1,) * (x.ndim - divisor.ndim) + divisor.shape)
        x = lax.div(x, broadcast_to(divisor.astype(x.dtype), (1, 1, *divisor.shape[2:])))
    else:
        x = lax.div(x, np.asarray(divisor, x.dtype))
    x = cast(x, dtype)
    return lax.squeeze(x, (0,)) if single else x


def avg_pool1d(
    x,
    /,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
):
    """Return the mean of every window of `(N, C, L)`.

    Args:
        x: `(N, C, ...)` or `(C, ...)`.
        kernel_size: size of the window, a number or one per dim.
        stride: step of the window; None takes `kernel_size`.
        padding: zeros added on both sides.
        ceil_mode: also take windows that begin inside but reach past the end.
        count_include_pad: whether those zeros count in the mean.
        divisor_override: divide by it instead of by the number of cells.

    Returns:
        ``(N, C, ...)``. Splits of the batch and the channels stay; a partial sum stays one.
    """
    return avg_pool(x, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool2d(
    x,
    /,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
):
    """Return the mean of every window of `(N, C, H, W)`; arguments as in `avg_pool1d`.

    Example:
        >>> flow.nn.functional.avg_pool2d(flow.arange(16.0).reshape(1, 1, 4, 4), 2)
        tensor([[[[ 2.5000,  4.5000],
                  [10.5000, 12.5000]]]])
    """
    return avg_pool(x, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    x,
    /,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
):
    """Return the mean of every window of `(N, C, D, H, W)`; arguments as in `avg_pool1d`."""
    return avg_pool(x, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _targets(x, n: int, output_size, op: str):
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    x, single = _add_batch_dim(x, n, op)
    if len(given) != n:
        fail(
            "value",
            f"{op}(output_size={output_size})",
            f"x {x.shape}",
            f"output_size is a number or {n} of them",
            "output_size=1",
        )
    counts = [x.shape[i + 2] if g is None else int(g) for i, g in enumerate(given)]
    if min(counts) < 0:
        rule = f"elements of output_size must be greater than or equal to 0, but got {min(counts)}"
        fail("value", f"{op}(output_size={output_size})", f"x {x.shape}", rule, "output_size=1")
    return x, single, counts


def _more_windows(x, dim: int, count: int):
    """Return the first and the last element of each window, and their places, where there are more than elements.

    A window has one or two elements then, so a program need not name each.
    """
    i, size = lax.iota(INT64, count), x.shape[dim]
    first = lax.div(i * size, np.int64(count))
    last = lax.div((i + 1) * size - 1, np.int64(count))
    return jnp.take(x, first, dim), jnp.take(x, last, dim), first, last


def _spans(size: int, count: int) -> list[tuple[int, int]]:
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _adaptive_avg(x, n: int, output_size):
    x, single, targets = _targets(x, n, output_size, f"adaptive_avg_pool{n}d")
    dtype = x.dtype
    x = cast(x, compute_dtype(dtype))
    for i, count in enumerate(targets):
        dim, size = i + 2, x.shape[i + 2]
        if count == size:
            continue
        if count > size:
            first, last, *_ = _more_windows(x, dim, count)
            x = lax.div(first + last, np.asarray(2, x.dtype))
            continue
        if count and size % count == 0:
            x = lax.reshape(x, (*x.shape[:dim], count, size // count, *x.shape[dim + 1 :]))
            x = lax.div(lax.reduce_sum(x, (dim + 1,)), np.asarray(size // count, x.dtype))
            continue
        parts = []
        for a, b in _spans(size, count):
            mean = lax.div(lax.reduce_sum(lax.slice_in_dim(x, a, b, axis=dim), (dim,)), np.asarray(b - a, x.dtype))
            parts.append(lax.expand_dims(mean, (dim,)))
        x = lax.concatenate(parts, dim) if parts else lax.slice_in_dim(x, 0, 0, axis=dim)
    x = cast(x, dtype)
    return lax.squeeze(x, (0,)) if single else x


def adaptive_avg_pool1d(x, /, output_size: int | tuple | list | None):
    """Return means of ``output_size`` windows that cover the last dim, of nearly equal size."""
    return _adaptive_avg(x, 1, output_size)


def adaptive_avg_pool2d(x, /, output_size: int | tuple | list | None):
    """Return means of windows that cover the last 2 dims; None in ``output_size`` keeps a dim.

    Args:
        output_size: the sizes of the last 2 dims, or one number for both; None keeps a size.

    Returns:
        ``(N, C, ...)``. Splits of the batch and the channels stay; a partial sum stays one.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.arange(32.0).reshape(2, 1, 4, 4).to_global(p, flow.sbp.split(0))
        >>> y = flow.nn.functional.adaptive_avg_pool2d(x, 1)
        >>> y.flatten().tolist(), y.sbp
        ([7.5, 23.5], (sbpjax.sbp.split(dim=0),))
    """
    return _adaptive_avg(x, 2, output_size)


def adaptive_avg_pool3d(x, /, output_size: int | tuple | list | None):
    """Return means of windows that cover the last 3 dims; None in ``output_size`` keeps a dim."""
    return _adaptive_avg(x, 3, output_size)


def _adaptive_max(x, n: int, output_size, return_indices: bool):
    x, single, targets = _targets(x, n, output_size, f"adaptive_max_pool{n}d")
    sizes = x.shape[2:]
    place = lax.full(x.shape, 0, INT64) if return_indices else None
    for i in reversed(range(n)):
        dim, values, places = i + 2, [], []
        if targets[i] > sizes[i]:
            one, other, at, behind = _more_windows(x, dim, targets[i])
            later = (
                lax.bitwise_or(lax.gt(other, one), lax.ne(other, other)) if is_float(x.dtype) else lax.gt(other, one)
            )
            x = lax.select_n(later, one, other)
            if place is not None:
                shape = [1] * x.ndim
                shape[dim] = targets[i]
                index = lax.select_n(later, *[jnp.broadcast_to(lax.reshape(v, shape), x.shape) for v in (at, behind)])
                inner = jnp.take_along_axis(place, index, dim)
                place = lax.add(inner, lax.mul(index, np.int64(math.prod(sizes[i + 1 :]))))
            continue
        for a, b in _spans(sizes[i], targets[i]):
            part = lax.slice_in_dim(x, a, b, axis=dim)
            best = pooling_argmax(part, dim)
            values.append(lax.expand_dims(pick(part, best, dim), (dim,)))
            if place is not None:
                inner = pick(lax.slice_in_dim(place, a, b, axis=dim), best, dim)
                row = lax.mul(lax.add(best, np.int64(a)), np.int64(math.prod(sizes[i + 1 :])))
                places.append(lax.expand_dims(lax.add(inner, row), (dim,)))
        if not values:
            x = lax.slice_in_dim(x, 0, 0, axis=dim)
            place = None if place is None else lax.slice_in_dim(place, 0, 0, axis=dim)
            continue
        x = lax.concatenate(values, dim) if len(values) > 1 else values[0]
        if places:
            place = lax.concatenate(places, dim) if len(places) > 1 else places[0]
    if single:
        x, place = lax.squeeze(x, (0,)), None if place is None else lax.squeeze(place, (0,))
    return (x, place) if return_indices else x


def adaptive_max_pool1d(x, /, output_size: int | tuple | list | None, return_indices: bool = False):
    """Return maxima of ``output_size`` windows that cover the last dim, and optionally their places."""
    return _adaptive_max(x, 1, output_size, return_indices)


def adaptive_max_pool2d(x, /, output_size: int | tuple | list | None, return_indices: bool = False):
    """Return maxima of windows that cover the last 2 dims, and optionally their flat places."""
    return _adaptive_max(x, 2, output_size, return_indices)


def adaptive_max_pool3d(x, /, output_size: int | tuple | list | None, return_indices: bool = False):
    """Return maxima of windows that cover the last 3 dims, and optionally their flat places."""
    return _adaptive_max(x, 3, output_size, return_indices)
