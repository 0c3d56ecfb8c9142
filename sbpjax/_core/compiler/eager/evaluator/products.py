"""Contractions and convolutions in NumPy."""

from __future__ import annotations

import ctypes
import math
import threading

import numpy as np

from .moves import pad
from .pointwise import is_half, rule

# OpenBLAS computes products of so many multiplications on one thread.
_OF_ONE_THREAD = 1 << 18


class _OneThread:
    """Limits NumPy's OpenBLAS to one thread while a product is computed; another BLAS keeps its threads.

    Threads of OpenBLAS spin while they wait for each other, on a busy machine for several times as long as they
    compute; and the bits would depend on their number.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)
        names = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
        found = [n for n in names if hasattr(library, n.format("set"))]
        self._get, self._set = (
            [getattr(library, found[0].format(do)) for do in ("get", "set")] if found else (None,) * 2
        )
        self._lock, self._inside, self._threads = threading.Lock(), 0, 1

    def __enter__(self) -> None:
        if self._get is not None:
            with self._lock:
                if not self._inside:
                    self._threads = self._get()
                    self._set(1)
                self._inside += 1

    def __exit__(self, *_: object) -> None:
        if self._get is not None:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._set(self._threads)


_one_thread = _OneThread()


def _matmul(left, right):
    """Return the product of (stacks of) matrices, computed by one thread."""
    if math.prod(left.shape[-2:]) * right.shape[-1] <= _OF_ONE_THREAD:
        return np.matmul(left, right)
    with _one_thread:
        return np.matmul(left, right)


@rule("dot_general")
def dot_general(x, y, dimension_numbers, preferred_element_type=None, **_):
    (sums_x, sums_y), (batch_x, batch_y) = dimension_numbers
    rows = [d for d in range(x.ndim) if d not in sums_x and d not in batch_x]
    columns = [d for d in range(y.ndim) if d not in sums_y and d not in batch_y]
    batch = [x.shape[d] for d in batch_x]
    inner = math.prod([x.shape[d] for d in sums_x])
    shape_x, shape_y = [x.shape[d] for d in rows], [y.shape[d] for d in columns]
    out = np.dtype(preferred_element_type or np.result_type(x, y))
    wide = np.float32 if is_half(out) or (is_half(x.dtype) and out.itemsize <= 4) else out
    left = x.transpose([*batch_x, *rows, *sums_x]).reshape([*batch, math.prod(shape_x), inner])
    right = y.transpose([*batch_y, *sums_y, *columns]).reshape([*batch, inner, math.prod(shape_y)])
    product = _matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
    return product.reshape([*batch, *shape_x, *shape_y]).astype(out, copy=False)


@rule("conv_general_dilated")
def conv_general_dilated(
    x, w, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
    batch_group_count, preferred_element_type=None, **_,
):  # fmt: skip
    """A product of the filters with the windows, which become columns of a matrix (im2col).

    With groups, of features or of the batch, each has a product of its own. Sizes: G groups, N batch, I input and O
    output features of a group, K elements of a window, S positions.
    """
    specs, groups = dimension_numbers, feature_group_count * batch_group_count
    out = np.dtype(preferred_element_type or x.dtype)
    wide = np.dtype(np.float32) if is_half(x.dtype) else out
    x, w = (a.astype(wide, copy=False) for a in (x, w))
    x, w = x.transpose(specs.lhs_spec), w.transpose(specs.rhs_spec)
    edges = [(low, high, step - 1) for (low, high), step in zip(padding, lhs_dilation, strict=True)]
    x = pad(x, wide.type(0), [(0, 0, 0)] * 2 + edges)
    kernel = w.shape[2:]
    extents = [(n - 1) * step + 1 for n, step in zip(kernel, rhs_dilation, strict=True)]
    if any(n < extent for n, extent in zip(x.shape[2:], extents, strict=True)):
        raise NotImplementedError("a window larger than its array")
    views = np.lib.stride_tricks.sliding_window_view(x, extents, range(2, x.ndim))
    steps = [slice(None, None, n) for n in (*window_strides, *rhs_dilation)]
    views = views[(slice(None), slice(None), *steps)]  # (B, C, *S, *K)
    places = views.shape[2 : x.ndim]
    batch, features = x.shape[0] // batch_group_count, x.shape[1] // feature_group_count
    views = views.reshape(batch_group_count, batch, feature_group_count, features, *places, *kernel)
    spatial = range(4, 4 + len(places))
    columns = views.transpose(0, 2, 3, *[d + len(places) for d in spatial], 1, *spatial)  # (G, G, I, *K, N, *S)
    columns = columns.reshape(groups, math.prod([features, *kernel]), math.prod([batch, *places]))
    product = _matmul(w.reshape(groups, w.shape[0] // groups, -1), columns)  # (G, O, N S)
    product = np.moveaxis(product.reshape(w.shape[0], batch, *places), 0, 1)
    return product.transpose(np.argsort(specs.out_spec)).astype(out, copy=False)
