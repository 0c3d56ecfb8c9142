"""Powers of tensors and numbers with torch's promotion; `pow` has torch's own derivatives at 0 (`slopes`)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from .arithmetic import _broadcast_pair, _pair
from .dims import fail
from .promote import BOOL, align, broadcast_to, cast, is_float, is_number, promote
from .slopes import slopes, zero_where


def pow(x, y, /):
    """Return x ** y; for a number as exponent, `pow_scalar` has the shorter gradient.

    Integers stay integers; a negative integer exponent then gives 0 (1 or -1 for a base of that size).
    """
    if is_number(y) and isinstance(y, (bool, int, float, np.generic)):
        return pow_scalar(x, exponent=y)
    x, y = _pair(x, y)
    return _float_pow(x, y) if is_float(x.dtype) else _int_pow(x, y)


def _slope_of_base(t, out, x, y):
    slope = lax.mul(y, lax.pow(*_broadcast_pair(x, lax.sub(y, np.ones((), y.dtype)))))
    return lax.mul(t, zero_where(slope, lax.eq(y, np.zeros((), y.dtype))))


def _slope_of_exponent(t, out, x, y):
    zero = np.zeros((), y.dtype)
    flat = lax.bitwise_and(
        lax.eq(x, zero), lax.ge(lax.real(y) if np.issubdtype(y.dtype, np.complexfloating) else y, zero.real)
    )
    return lax.mul(t, zero_where(lax.mul(out, lax.log(x)), flat))


@slopes(_slope_of_base, _slope_of_exponent)
def _float_pow(x, y):
    return lax.pow(*_broadcast_pair(x, y))


def _int_pow(x, y):
    power = jnp.power(x, lax.max(y, np.zeros((), y.dtype)))
    if jnp.issubdtype(x.dtype, jnp.unsignedinteger):
        return power
    one, zero, two = (np.asarray(v, x.dtype) for v in (1, 0, 2))
    odd = lax.ne(lax.rem(y, two), zero)
    unit = lax.select_n(
        broadcast_to(odd, power.shape),
        lax.abs(broadcast_to(x, power.shape)),
        broadcast_to(x, power.shape),
    )
    inverse = lax.select_n(broadcast_to(lax.eq(lax.abs(x), one), power.shape), broadcast_to(zero, power.shape), unit)
    return lax.select_n(broadcast_to(lax.lt(y, zero), power.shape), power, inverse)


def pow_scalar(x, /, exponent):
    """Return x ** exponent for a number ``exponent``, whose gradient needs no logarithm.

    Raises:
        RuntimeError: an integer ``x`` with a negative integer exponent.
    """
    (x,) = promote(x, exponent)[:1]
    if not is_float(x.dtype):
        if exponent < 0:
            fail(
                "shape",
                f"x ** {exponent}",
                f"x of dtype {x.dtype}",
                "integers to negative integer powers are not allowed",
                f"x.float() ** {exponent}",
            )
        return lax.integer_pow(x, int(exponent)) if x.dtype != BOOL else lax.bitwise_or(x, np.asarray(not exponent))
    if exponent == 0.5:
        return lax.sqrt(x)
    if exponent == -0.5:
        return _inverse_sqrt(x)
    if exponent == -1:
        return lax.div(np.ones((), x.dtype), x)
    if float(exponent).is_integer() and -4 <= exponent <= 4:
        return lax.integer_pow(x, int(exponent))
    return lax.pow(x, cast(exponent, x.dtype))


@slopes(lambda t, out, x: lax.mul(t, lax.mul(np.asarray(-0.5, x.dtype), lax.pow(x, np.asarray(-1.5, x.dtype)))))
def _inverse_sqrt(x):
    return lax.rsqrt(x)


def rpow_scalar(x, /, base):
    """Return base ** x for a number ``base``."""
    base, x = promote(base, x)
    return _int_pow(base, x) if not is_float(x.dtype) else _float_pow(base, x)


def float_power(x, y, /):
    """Return x ** y computed in float64, or complex128 where one is complex."""
    complex_ = any(jnp.issubdtype(jnp.result_type(v), np.complexfloating) for v in (x, y))
    wide = np.complex128 if complex_ else np.float64
    return _float_pow(*align(cast(x, wide), cast(y, wide)))
