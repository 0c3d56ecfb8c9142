"""Range checks of Python numbers: an error, as in PyTorch, for a number that a dtype cannot hold.

    full((2,), 300, dtype=int8)        44 without the check
    x.masked_fill(mask, 1j)            0 in a tensor of floats
    x.fill_(1e40)                      inf in float32

An unsigned dtype takes the negative numbers of its own size, which wrap round: -1 is 255 in uint8. Infinity and NaN are
floats as any other, and no integers. A number in an op with a tensor, as in ``x + 300``, is not checked: it wraps.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from sbpjax.errors import OpError, OpOverflowError

_NUMBERS = (bool, int, float, complex, np.generic)


@functools.cache
def _range(dtype: np.dtype) -> tuple[str, Any, Any]:
    """Return ``"b"``, ``"i"``, ``"f"`` or ``"c"`` for the kind of a dtype, and its least and greatest number."""
    if dtype.kind == "b":
        return "b", 0, 1
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return "i", int(info.min) if dtype.kind == "i" else -int(info.max), int(info.max)
    # 4-bit integers are no integers to NumPy.
    if jnp.issubdtype(dtype, jnp.integer):
        info = jnp.iinfo(dtype)
        return "i", int(info.min), int(info.max)
    greatest = float(jnp.finfo(dtype).max)
    return "c" if dtype.kind == "c" else "f", -greatest, greatest


def fits(value: Any, dtype: np.dtype) -> bool:
    """Return whether a number can become one of a dtype: a fraction may be cut off, and a float rounded."""
    kind, low, high = _range(dtype)
    if kind == "b":
        return True
    if isinstance(value, (complex, np.complexfloating)):
        if kind == "c":
            return fits(value.real, dtype) and fits(value.imag, dtype)
        if value.imag:
            return False
        value = value.real
    if low <= value <= high:
        return kind != "i" or low >= 0 or not isinstance(value, (float, np.floating)) or value >= 0 or -low != high
    return kind != "i" and not math.isfinite(value)


def check_fits(operation: str, value: Any, dtype: np.dtype) -> None:
    """Raise unless a number can become one of a dtype; tensors are not checked."""
    if not isinstance(value, _NUMBERS) or fits(value, dtype):
        return
    too_long = isinstance(value, int) and not -(1 << 63) <= value < 1 << 64
    raise (OpOverflowError if too_long else OpError)(
        operation,
        f"{value} for {dtype.name}",
        f"value cannot be converted to type {dtype.name} without overflow",
        "use a dtype that holds the value, or a value within its range",
    )
