"""Contractions in NumPy."""

from __future__ import annotations

import math

import numpy as np

from .pointwise import is_half, rule


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
    product = np.matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
    return product.reshape([*batch, *shape_x, *shape_y]).astype(out, copy=False)
