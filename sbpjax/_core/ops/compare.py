"""Comparison, logical and bitwise ops, all without a gradient.

Both sides are promoted first, as torch does: `eq(int64 tensor, 0.5)` compares as float32. Worked case: in
`eq([1.0, nan], [1.0, nan])` the second element is False, in `isclose(..., equal_nan=True)` it is True.
"""

from __future__ import annotations

import numpy as np
from jax import lax

from .dims import fail
from .promote import BOOL, align, broadcast_to, cast, category, is_float, promote


def _pair(x, y):
    return align(*promote(x, y))


def eq(x, y, /):
    """Return where x == y.

    Example:
        >>> flow.eq(flow.tensor([1, 2, 3]), 2)
        tensor([False,  True, False])
    """
    return lax.eq(*_pair(x, y))


def ne(x, y, /):
    """Return where x != y.

    Example:
        >>> flow.ne(flow.tensor([1, 2, 3]), 2)
        tensor([ True, False,  True])
    """
    return lax.ne(*_pair(x, y))


def lt(x, y, /):
    """Return where x < y.

    Example:
        >>> flow.lt(flow.tensor([1, 2, 3]), 2)
        tensor([ True, False, False])
    """
    return lax.lt(*_pair(x, y))


def le(x, y, /):
    """Return where x <= y.

    Example:
        >>> flow.le(flow.tensor([1, 2, 3]), 2)
        tensor([ True,  True, False])
    """
    return lax.le(*_pair(x, y))


def gt(x, y, /):
    """Return where x > y.

    Example:
        >>> flow.gt(flow.tensor([1, 2, 3]), 2)
        tensor([False, False,  True])
    """
    return lax.gt(*_pair(x, y))


def ge(x, y, /):
    """Return where x >= y.

    Example:
        >>> flow.ge(flow.tensor([1, 2, 3]), 2)
        tensor([False,  True,  True])
    """
    return lax.ge(*_pair(x, y))


def isclose(x, y, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False):
    """Return where |x - y| <= atol + rtol * |y|; equal infinities are close."""
    x, y = _pair(x, y)
    close = lax.eq(x, y)
    if not is_float(x.dtype):
        x, y = (cast(v, np.float64) for v in (x, y))
    size = lax.abs(lax.mul(np.asarray(rtol, x.dtype), y))
    bound = lax.add(np.asarray(atol, size.dtype), size)
    distance = lax.abs(lax.sub(x, y))
    close = lax.bitwise_or(close, lax.bitwise_and(_finite(distance), lax.le(distance, bound)))
    if equal_nan:
        both = lax.bitwise_and(*(broadcast_to(lax.ne(v, v), close.shape) for v in (x, y)))
        close = lax.bitwise_or(close, both)
    return close


def _finite(x):
    return lax.is_finite(x) if category(x.dtype) == 2 else lax.eq(x, x)


def _bools(x, y):
    return align(cast(x, BOOL), cast(y, BOOL))


def logical_and(x, y, /):
    """Return where both are nonzero.

    Example:
        >>> flow.logical_and(flow.tensor([0, 1, 2]), flow.tensor([1, 0, 3]))
        tensor([False, False,  True])
    """
    return lax.bitwise_and(*_bools(x, y))


def logical_or(x, y, /):
    """Return where at least one is nonzero.

    Example:
        >>> flow.logical_or(flow.tensor([0, 1, 2]), flow.tensor([1, 0, 3]))
        tensor([True, True, True])
    """
    return lax.bitwise_or(*_bools(x, y))


def logical_xor(x, y, /):
    """Return where exactly one is nonzero."""
    return lax.bitwise_xor(*_bools(x, y))


def _bits(x, y, name: str):
    x, y = _pair(x, y)
    if is_float(x.dtype):
        fail("type", f"{name}(x, y)", f"a tensor of dtype {x.dtype}", "bits are of integers or bools", "x.long()")
    return x, y


def bitwise_and(x, y, /):
    """Return the bitwise conjunction of integers or bools."""
    return lax.bitwise_and(*_bits(x, y, "bitwise_and"))


def bitwise_or(x, y, /):
    """Return the bitwise disjunction of integers or bools."""
    return lax.bitwise_or(*_bits(x, y, "bitwise_or"))


def bitwise_xor(x, y, /):
    """Return the bitwise exclusive disjunction of integers or bools."""
    return lax.bitwise_xor(*_bits(x, y, "bitwise_xor"))


def bitwise_left_shift(x, y, /):
    """Return x << y."""
    return lax.shift_left(*_bits(x, y, "bitwise_left_shift"))


def bitwise_right_shift(x, y, /):
    """Return x >> y, keeping the sign."""
    return lax.shift_right_arithmetic(*_bits(x, y, "bitwise_right_shift"))
