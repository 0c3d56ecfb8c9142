"""Creation ops without array inputs: every shard can be made on its own device.

All values come from ``iota`` and constants; the dtypes are static. Worked case: `arange(0, 1, 0.25)` has
``ceil((1 - 0) / 0.25) = 4`` elements, float32 since one argument is a float; `arange(5)` is int64.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from .dims import fail
from .promote import BOOL, DEFAULT_COMPLEX, DEFAULT_FLOAT, INT64, cast, is_float


def number_dtype(*values) -> np.dtype:
    """Return the dtype that torch infers from Python numbers: bool, int64, float32 or complex64."""
    if any(isinstance(v, (complex, np.complexfloating)) for v in values):
        return DEFAULT_COMPLEX
    if any(isinstance(v, (float, np.floating)) for v in values):
        return DEFAULT_FLOAT
    return BOOL if all(isinstance(v, (bool, np.bool_)) for v in values) else INT64


def full(*, shape, fill_value, dtype=None):
    """Return a tensor of one number; the dtype is inferred from it unless given."""
    if any(s < 0 for s in shape):
        fail("shape", f"full({tuple(shape)})", "a negative size", "sizes are at least 0", "shape=(0,)")
    dtype = number_dtype(fill_value) if dtype is None else np.dtype(dtype)
    return lax.full(tuple(shape), cast(fill_value, dtype), dtype)


def zeros(*, shape, dtype=DEFAULT_FLOAT):
    """Return a tensor of zeros."""
    return full(shape=shape, fill_value=0, dtype=dtype)


def ones(*, shape, dtype=DEFAULT_FLOAT):
    """Return a tensor of ones."""
    return full(shape=shape, fill_value=1, dtype=dtype)


def empty(*, shape, dtype=DEFAULT_FLOAT):
    """Return a tensor of unspecified values: zeros, since XLA has no uninitialised memory."""
    return zeros(shape=shape, dtype=dtype)


def arange(*, start=0, end, step=1, dtype=None):
    """Return start, start + step, … below ``end`` (above it for a negative step)."""
    if step == 0 or (end - start) * step < 0 or not all(map(math.isfinite, (start, end, step))):
        fail(
            "value",
            f"arange({start}, {end}, {step})",
            "the bounds and step",
            "the step is nonzero and leads from start to end",
            f"arange({end}, {start}, {step})",
        )
    dtype = number_dtype(start, end, step) if dtype is None else np.dtype(dtype)
    dtype = INT64 if dtype == BOOL else dtype
    exact = all(isinstance(v, (int, np.integer)) for v in (start, end, step))
    count = -((start - end) // step) if exact else math.ceil((end - start) / step)
    wide = np.dtype(np.float64) if is_float(dtype) else INT64  # torch multiplies in double too
    if not is_float(dtype):
        start, step = int(start), int(step)
    values = lax.iota(wide, count)
    values = values if step == 1 else lax.mul(values, np.asarray(step, wide))
    return cast(values if start == 0 else lax.add(values, np.asarray(start, wide)), dtype)


def linspace(*, start, end, steps: int, dtype=None):
    """Return ``steps`` evenly spaced numbers from start to end, both included; computed from both ends."""
    if steps < 0:
        fail("value", f"linspace(steps={steps})", "a negative count", "steps is at least 0", "steps=0")
    dtype = number_dtype(1.0, start, end) if dtype is None else np.dtype(dtype)
    if steps == 1:
        return full(shape=(1,), fill_value=start, dtype=dtype)
    wide = dtype if dtype in (np.float32, np.float64) else DEFAULT_FLOAT
    first, last = np.asarray(start, wide), np.asarray(end, wide)
    step = (last - first) / np.asarray(max(steps - 1, 1), wide)
    index = lax.iota(INT64, steps)
    rising = lax.add(lax.mul(cast(index, wide), step), first)
    falling = lax.sub(last, lax.mul(cast(lax.sub(np.int64(steps - 1), index), wide), step))
    return cast(lax.select_n(lax.lt(index, np.int64(steps // 2)), falling, rising), dtype)


def logspace(*, start, end, steps: int, base: float = 10.0, dtype=None):
    """Return ``base`` to the power of evenly spaced numbers."""
    dtype = DEFAULT_FLOAT if dtype is None else np.dtype(dtype)
    powers = linspace(start=start, end=end, steps=steps, dtype=np.float64)
    return cast(lax.pow(lax.full_like(powers, base), powers), dtype)


def eye(*, n: int, m: int | None = None, dtype=DEFAULT_FLOAT):
    """Return an n × m matrix with ones on the main diagonal."""
    shape = (n, n if m is None else m)
    same = lax.eq(lax.broadcasted_iota(np.int32, shape, 0), lax.broadcasted_iota(np.int32, shape, 1))
    return cast(same, dtype)


def _triangle(mask) -> np.ndarray:
    return np.stack(np.nonzero(mask)).astype(INT64)


def tril_indices(*, row: int, col: int, offset: int = 0):
    """Return the (2, count) indices of a matrix's lower triangle, row by row."""
    return jnp.asarray(_triangle(np.tri(row, col, offset, bool)))


def triu_indices(*, row: int, col: int, offset: int = 0):
    """Return the (2, count) indices of a matrix's upper triangle, row by row."""
    return jnp.asarray(_triangle(~np.tri(row, col, offset - 1, bool)))
