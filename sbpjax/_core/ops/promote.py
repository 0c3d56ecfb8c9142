"""Type promotion by torch's rules, for functions over jax arrays.

JAX and torch disagree on mixed dtypes: ``int64 + float16`` is float16 in torch, and a Python number or a 0-d tensor
never widens a tensor with dims unless it is of a higher *category* (bool < integer < float < complex). Worked case::

    int32 of shape (3,)  +  float64 of shape ()  +  2.5
      dims: int32          0-d: float64            numbers: float
      the 0-d category (float) is above the dims' (integer)  ->  float64; the number adds nothing  ->  float64

A Python number reaches an op either as itself or, inside ``jax.jit``, as a 0-d array of *weak* type; both are numbers
here. Every op passes its inputs through `promote` (or `floats`), so its result has a strong dtype and float64 never
appears by itself.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .dims import fail

DEFAULT_FLOAT = np.dtype(np.float32)
DEFAULT_COMPLEX = np.dtype(np.complex64)
INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
BFLOAT16 = np.dtype(jnp.bfloat16)
_REDUCED = (BFLOAT16, np.dtype(np.float16))


def category(dtype) -> int:
    """Return 0 for bool, 1 for an integer, 2 for a float, 3 for a complex dtype."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return 0
    if jnp.issubdtype(dtype, jnp.integer):
        return 1
    if jnp.issubdtype(dtype, jnp.floating):
        return 2
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return 3
    fail(
        "type", "promoting dtypes", f"dtype {dtype}", "bools, integers, floats and complex numbers promote", "x.to(...)"
    )


def is_float(dtype) -> bool:
    """Return whether ``dtype`` is a real or complex floating dtype."""
    return category(dtype) >= 2


@functools.cache
def promote_types(a, b) -> np.dtype:
    """Return the smallest dtype that holds both, by torch's table: any float wins over any integer."""
    a, b = np.dtype(a), np.dtype(b)
    if a == b:
        return a
    low, high = sorted((a, b), key=category)
    if category(low) < category(high):
        if category(low) == 2:  # float with complex: float64 requires complex128
            return np.dtype(np.complex128) if np.dtype(np.float64) in (a, b) else high
        return high
    if category(a) == 2:
        wide = max(a.itemsize, b.itemsize)
        return {2: DEFAULT_FLOAT, 4: DEFAULT_FLOAT, 8: np.dtype(np.float64)}[wide]
    return np.promote_types(a, b)


def is_number(x) -> bool:
    """Return whether ``x`` counts as a Python number: one itself, a NumPy scalar, or a weakly typed 0-d array."""
    if isinstance(x, jax.Array):
        return x.ndim == 0 and jax.typeof(x).weak_type
    return isinstance(x, (bool, int, float, complex, np.generic))


def dtype_of(x) -> np.dtype:
    """Return the dtype of an array, or the default dtype of a number's category."""
    if isinstance(x, np.ndarray) or (isinstance(x, jax.Array) and not is_number(x)):
        return np.dtype(x.dtype)
    raw = x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype
    return (BOOL, INT64, DEFAULT_FLOAT, DEFAULT_COMPLEX)[category(raw)]


def _combine(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    if higher is None or lower is None:
        return higher or lower
    if category(higher) == 2 and category(lower) == 3:
        return np.dtype(np.complex128 if higher.itemsize == 8 else np.complex64)
    return lower if category(lower) > category(higher) else higher


def result_type(*args) -> np.dtype:
    """Return the dtype that torch gives to an op on these inputs (arrays, numbers; None is skipped)."""
    dims = zeros = numbers = None
    for x in args:
        if x is None:
            continue
        dtype = dtype_of(x)
        if is_number(x):
            numbers = dtype if numbers is None else promote_types(numbers, dtype)
        elif np.ndim(x) == 0:
            zeros = dtype if zeros is None else promote_types(zeros, dtype)
        else:
            dims = dtype if dims is None else promote_types(dims, dtype)
    result = _combine(dims, _combine(zeros, numbers))
    if result is None:
        fail("type", "result_type()", "no inputs", "at least one tensor or number is given", "result_type(x, 1.0)")
    return result


def cast(x, dtype) -> Any:
    """Return ``x`` as a strongly typed array of ``dtype``; a number becomes a constant."""
    dtype = np.dtype(dtype)
    if isinstance(x, jax.Array):
        aval = jax.typeof(x)
        if aval.dtype == dtype and not aval.weak_type:
            return x
        if category(aval.dtype) == 3 and category(dtype) < 3:
            if dtype != BOOL:
                x = lax.real(x)
        if dtype.itemsize < 4 and dtype.kind in "iu" and is_float(aval.dtype):  # torch wraps: 300.5 as uint8 is 44
            x = lax.convert_element_type(x, np.int32)
        return lax.convert_element_type(x, dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # 1e40 as float32 is inf, as in torch
        value = np.asarray(x)
        if value.dtype.kind == "c" and category(dtype) < 3 and dtype != BOOL:
            value = np.real(value)
        return value.astype(dtype)


def size_as(n, dtype) -> Any:
    """Return a size or a number of elements as an array; of a program with a free batch it may be a symbol."""
    return np.asarray(n, dtype) if isinstance(n, (int, float)) else jnp.asarray(n).astype(dtype)


def promote(*args, float_result: bool = False) -> tuple:
    """Return all inputs in their common dtype (None stays None).

    Args:
        args: arrays or numbers.
        float_result: integers and bools go to the default float (division, exp, …).
    """
    dtype = result_type(*args)
    if float_result and not is_float(dtype):
        dtype = DEFAULT_FLOAT
    return tuple(None if x is None else cast(x, dtype) for x in args)


def floats(x) -> jax.Array:
    """Return ``x`` unless it is an integer or bool, which becomes the default float."""
    dtype = dtype_of(x)
    return cast(x, dtype if is_float(dtype) else DEFAULT_FLOAT)


def as_arrays(*args) -> tuple:
    """Return each input as a strongly typed array of its own dtype (no common dtype)."""
    return tuple(None if x is None else cast(x, dtype_of(x)) for x in args)


def compute_dtype(dtype) -> np.dtype:
    """Return the dtype in which torch accumulates: float32 for bfloat16 and float16, else the dtype itself."""
    dtype = np.dtype(dtype)
    return DEFAULT_FLOAT if dtype in _REDUCED else dtype


def align(*args) -> tuple:
    """Give all arrays of one op the same number of dims by leading dims of size 1; 0-d arrays stay.

    lax's binary ops broadcast size-1 dims and scalars themselves, which keeps the jaxpr at one equation.
    """
    ndim = max(np.ndim(x) for x in args)
    return tuple(
        lax.broadcast_in_dim(x, (1,) * (ndim - np.ndim(x)) + x.shape, tuple(range(ndim - np.ndim(x), ndim)))
        if 0 < np.ndim(x) < ndim
        else x
        for x in args
    )


def joint_shape(*shapes) -> tuple:
    """Return the shape that shapes broadcast to; sizes may be symbols, as in an export with a free batch."""
    try:
        return np.broadcast_shapes(*shapes)
    except TypeError:  # a symbol is no int; NumPy's words are those that users see for all else
        return lax.broadcast_shapes(*map(tuple, shapes))


def broadcast_to(x, shape) -> jax.Array:
    """Broadcast ``x`` to ``shape``, aligned at the last dim, in at most one equation."""
    shape = tuple(shape)
    if np.shape(x) == shape and isinstance(x, jax.Array):
        return x
    if not _fits(x, shape):
        return jnp.broadcast_to(x, shape)  # raises, in NumPy's words
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - np.ndim(x), len(shape))))


def _fits(x, shape) -> bool:
    own = np.shape(x)
    return len(own) <= len(shape) and all(a in (1, b) for a, b in zip(own, shape[len(shape) - len(own) :], strict=True))
