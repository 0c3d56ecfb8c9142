"""Unary elementwise ops with torch's dtype rules.

Functions that make sense on integers (`neg`, `abs`, `floor`, …) keep the dtype; the others (`exp`, `sqrt`, …) turn
integers and bools into float32, as torch does. Worked case: `exp(int64 [0, 1])` is float32 `[1, 2.7183]`, where JAX
alone would give float64. Gradients are JAX's own where they agree with torch's at the corners (`sqrt` at 0 gives inf).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from sbpjax.errors import OpNotSupportedError

from .dims import fail, no_complex
from .promote import BOOL, as_arrays, broadcast_to, cast, category, compute_dtype, floats, is_float
from .slopes import slopes, zero_unless, zero_where


def _not_bool(x, name: str):
    (x,) = as_arrays(x)
    if x.dtype == BOOL:
        fail(
            "type", f"{name}(x)", "a bool tensor", f"{name} is not defined for bools", "x.logical_not(), or cast first"
        )
    return x


def exp(x, /):
    """Return e**x.

    Example:
        >>> flow.exp(flow.tensor([0.0, 1.0, 2.0]))
        tensor([1.0000, 2.7183, 7.3891])
    """
    return lax.exp(floats(x))


def exp2(x, /):
    """Return 2**x, exact for whole numbers x."""
    x = floats(x)
    return lax.exp2(x) if x.dtype.kind == "c" else _exp2(x)


# XLA's exp2 is exp(x log 2): 34 times the rounding error of float32 at 120, half of the value in bfloat16.
@slopes(lambda t, out, x: lax.mul(t, lax.mul(out, np.asarray(np.log(2.0), x.dtype))))
def _exp2(x):
    return lax.pow(np.asarray(2, x.dtype), x)


def expm1(x, /):
    """Return e**x - 1, exact near 0."""
    return lax.expm1(floats(x))


def log(x, /):
    """Return the natural logarithm.

    Example:
        >>> flow.log(flow.tensor([1.0, 10.0, 0.0]))
        tensor([0.0000, 2.3026,   -inf])
    """
    return lax.log(floats(x))


def log1p(x, /):
    """Return log(1 + x), exact near 0.

    Example:
        >>> flow.log1p(flow.tensor([0.0, 1e-4]))
        tensor([0.0000e+00, 9.9995e-05])
    """
    return lax.log1p(floats(x))


def _log_to_base(x, base: int):
    x = floats(x)
    if x.dtype.kind == "c":
        return lax.log(x) * np.asarray(1.0 / np.log(base), x.dtype)
    return (_log2 if base == 2 else _log10)(x)


def _exact_at_powers(x, base: int):
    # A product with 1 / log(base) is rounded twice: floor(log2(8192)) would be 12.
    wide = cast(x, compute_dtype(x.dtype))
    value = lax.mul(lax.log(wide), np.asarray(1.0 / np.log(base), wide.dtype))
    power = lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN)
    # 10 ** power is rounded, by one unit more or less in each library; the logarithm of both neighbours rounds to
    # `power`, except at 1. Powers of 2 are exact.
    rounding = np.asarray(0 if base == 2 else np.finfo(wide.dtype).eps, wide.dtype)
    error = lax.abs(lax.sub(lax.pow(np.asarray(base, wide.dtype), power), wide))
    is_power = lax.le(error, lax.mul(wide, lax.mul(rounding, lax.min(lax.abs(power), np.asarray(1, wide.dtype)))))
    return cast(lax.select(is_power, power, value), x.dtype)


@slopes(lambda t, out, x: lax.div(t, lax.mul(x, np.asarray(np.log(2.0), x.dtype))))
def _log2(x):
    return _exact_at_powers(x, 2)


@slopes(lambda t, out, x: lax.div(t, lax.mul(x, np.asarray(np.log(10.0), x.dtype))))
def _log10(x):
    return _exact_at_powers(x, 10)


def log2(x, /):
    """Return the logarithm to base 2.

    Example:
        >>> flow.log2(flow.tensor([1, 8, 1024]))
        tensor([ 0.,  3., 10.])
    """
    return _log_to_base(x, 2)


def log10(x, /):
    """Return the logarithm to base 10, exact at powers of 10."""
    return _log_to_base(x, 10)


def sqrt(x, /):
    """Return the square root.

    Example:
        >>> flow.sqrt(flow.tensor([4.0, 2.0, -1.0]))
        tensor([2.0000, 1.4142,    nan])
    """
    return lax.sqrt(floats(x))


def rsqrt(x, /):
    """Return 1 / sqrt(x).

    Example:
        >>> flow.rsqrt(flow.tensor([4.0, 0.25]))
        tensor([0.5000, 2.0000])
    """
    return _rsqrt(floats(x))


@slopes(lambda t, out, x: lax.mul(t, lax.mul(np.asarray(-0.5, x.dtype), lax.integer_pow(out, 3))))
def _rsqrt(x):
    return lax.rsqrt(x)


def sin(x, /):
    """Return the sine.

    Example:
        >>> flow.sin(flow.tensor([0.0, 1.5708]))
        tensor([0., 1.])
    """
    return lax.sin(floats(x))


def cos(x, /):
    """Return the cosine.

    Example:
        >>> flow.cos(flow.tensor([0.0, 3.1416]))
        tensor([ 1., -1.])
    """
    return lax.cos(floats(x))


def tan(x, /):
    """Return the tangent."""
    return lax.tan(floats(x))


def asin(x, /):
    """Return the inverse sine."""
    return lax.asin(floats(x))


def acos(x, /):
    """Return the inverse cosine."""
    return lax.acos(floats(x))


def atan(x, /):
    """Return the inverse tangent."""
    return lax.atan(floats(x))


def sinh(x, /):
    """Return the hyperbolic sine."""
    x = floats(x)
    if x.dtype.kind != "c":
        return lax.sinh(x)
    turned = lax.sin(lax.complex(lax.neg(lax.imag(x)), lax.real(x)))  # i sinh(x) = sin(ix); XLA's cancels near 0
    return lax.complex(lax.imag(turned), lax.neg(lax.real(turned)))


def cosh(x, /):
    """Return the hyperbolic cosine."""
    return lax.cosh(floats(x))


def tanh(x, /):
    """Return the hyperbolic tangent.

    Example:
        >>> x = flow.tensor([-1.0, 0.0, 1.0])
        >>> flow.tanh(x)
        tensor([-0.7616,  0.0000,  0.7616])
    """
    return lax.tanh(floats(x))


def asinh(x, /):
    """Return the inverse hyperbolic sine; a real part of -0.0 is on the left side of the branch cuts."""
    x = floats(x)
    if x.dtype.kind != "c":
        return lax.asinh(x)
    left = jnp.signbit(lax.real(x))  # asinh(-x) = -asinh(x); XLA takes -0.0 for 0.0
    result = lax.asinh(lax.select(left, lax.neg(x), x))
    return lax.select(left, lax.neg(result), result)


def acosh(x, /):
    """Return the inverse hyperbolic cosine."""
    return lax.acosh(floats(x))


def atanh(x, /):
    """Return the inverse hyperbolic tangent."""
    return lax.atanh(floats(x))


def sigmoid(x, /):
    """Return 1 / (1 + e**-x).

    Example:
        >>> flow.sigmoid(flow.tensor([-1.0, 0.0, 1.0]))
        tensor([0.2689, 0.5000, 0.7311])
    """
    return lax.logistic(floats(x))


def erf(x, /):
    """Return the error function.

    Example:
        >>> flow.erf(flow.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.5205, 0.8427])
    """
    return lax.erf(floats(x))


def erfc(x, /):
    """Return 1 - erf(x)."""
    return lax.erfc(floats(x))


def erfinv(x, /):
    """Return the inverse of erf."""
    return lax.erf_inv(floats(x))


def reciprocal(x, /):
    """Return 1 / x.

    Example:
        >>> flow.reciprocal(flow.tensor([2, 4]))
        tensor([0.5000, 0.2500])
    """
    x = floats(x)
    return lax.div(np.ones((), x.dtype), x)


def neg(x, /):
    """Return -x; not for bool.

    Example:
        >>> flow.neg(flow.tensor([1, -2]))
        tensor([-1,  2])
    """
    return lax.neg(_not_bool(x, "neg"))


def positive(x, /):
    """Return x; not for bool."""
    return _not_bool(x, "positive")


def identity(x, /):
    """Return x."""
    return as_arrays(x)[0]


def abs(x, /):
    """Return the absolute value; its gradient at 0 and NaN is 0 (that of ``lax.abs`` is 1 and NaN).

    Example:
        >>> flow.abs(flow.tensor([-1.5, 2.0]))
        tensor([1.5000, 2.0000])
    """
    x = _not_bool(x, "abs")
    if is_float(x.dtype) and category(x.dtype) == 2:
        return magnitude(x)
    return x if jnp.issubdtype(x.dtype, jnp.unsignedinteger) else lax.abs(x)


@slopes(lambda t, out, x: lax.mul(t, zero_unless(lax.sign(x), lax.eq(x, x))))
def magnitude(x):
    """Return the absolute value of real floats, with gradient 0 at 0 and NaN."""
    return lax.abs(x)


def square(x, /):
    """Return x * x.

    Example:
        >>> flow.square(flow.tensor([3, -4]))
        tensor([ 9, 16])
    """
    (x,) = as_arrays(x)
    return lax.square(x) if x.dtype != BOOL else cast(x, np.int64)


def sign(x, /):
    """Return -1, 0 or 1 by the sign of x; NaN gives 0.

    Example:
        >>> flow.sign(flow.tensor([-3, 0, 5]))
        tensor([-1,  0,  1])
    """
    (x,) = as_arrays(x)
    if x.dtype == BOOL:
        return x
    if jnp.issubdtype(x.dtype, np.complexfloating):
        rule = "torch.sign is not intended to support complex numbers"
        raise OpNotSupportedError("sign(x)", f"x of {x.dtype}", rule, "sgn(x)")
    return (
        lax.sign(x)
        if not is_float(x.dtype)
        else cast(lax.gt(x, _zero(x)), x.dtype) - cast(lax.lt(x, _zero(x)), x.dtype)
    )


def _zero(x):
    return np.zeros((), x.dtype)


def floor(x, /):
    """Return the largest integer value not above x; integers stay.

    Example:
        >>> flow.floor(flow.tensor([-1.5, 1.5]))
        tensor([-2.,  1.])
    """
    return _apply_rounding(x, lax.floor)


def ceil(x, /):
    """Return the smallest integer value not below x; integers stay.

    Example:
        >>> flow.ceil(flow.tensor([-1.5, 1.5]))
        tensor([-1.,  2.])
    """
    return _apply_rounding(x, lax.ceil)


def trunc(x, /):
    """Return x rounded towards zero; integers stay."""
    return _apply_rounding(x, lambda v: lax.select_n(lax.lt(v, _zero(v)), lax.floor(v), lax.ceil(v)))


def _apply_rounding(x, function):
    x = _not_bool(x, "rounding")
    no_complex(x, "rounding")
    return function(x) if is_float(x.dtype) else x


def round(x, /, decimals: int = 0):
    """Return x rounded half to even at ``decimals`` digits; integers stay.

    Args:
        decimals: how many decimals are kept; negative ones round to tens, hundreds, …

    Raises:
        OpTypeError: integers with ``decimals`` other than 0.

    Example:
        >>> flow.round(flow.tensor([0.5, 1.5, 2.5])), flow.round(flow.tensor([3.14159]), decimals=2)
        (tensor([0., 2., 2.]), tensor([3.1400]))
    """
    if decimals == 0:
        return _apply_rounding(x, lambda v: lax.round(v, lax.RoundingMethod.TO_NEAREST_EVEN))
    if category(x.dtype) == 1:
        seen = f"{x.dtype}{list(x.shape)}"
        fail("type", f"round(x, decimals={decimals})", seen, "integers have no decimals", "x.float()")
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)

    def round_scaled(v):
        wide = cast(v, compute_dtype(v.dtype))
        factor = np.asarray(scale, wide.dtype)
        up, down = (lax.mul, lax.div) if decimals > 0 else (lax.div, lax.mul)
        return cast(down(lax.round(up(wide, factor), lax.RoundingMethod.TO_NEAREST_EVEN), factor), v.dtype)

    return _apply_rounding(x, round_scaled)


def frac(x, /):
    """Return the fractional part, x - trunc(x)."""
    (x,) = as_arrays(x)
    return lax.sub(x, trunc(x))


def isnan(x, /):
    """Return where x is NaN.

    Example:
        >>> flow.isnan(flow.tensor([1.0, float('nan')]))
        tensor([False,  True])
    """
    (x,) = as_arrays(x)
    return lax.ne(x, x)


def isfinite(x, /):
    """Return where x is neither infinite nor NaN.

    Example:
        >>> flow.isfinite(flow.tensor([1.0, float('inf'), float('nan')]))
        tensor([ True, False, False])
    """
    (x,) = as_arrays(x)
    return lax.is_finite(x) if category(x.dtype) == 2 else lax.eq(x, x)


def isinf(x, /):
    """Return where x is infinite; of a complex number, where either part is.

    Example:
        >>> flow.isinf(flow.tensor([1.0, float('inf')]))
        tensor([False,  True])
    """
    (x,) = as_arrays(x)
    if np.dtype(x.dtype).kind == "c":
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    return lax.eq(lax.abs(x), np.asarray(np.inf, x.dtype)) if is_float(x.dtype) else lax.ne(x, x)


def isposinf(x, /):
    """Return where x is +inf."""
    (x,) = as_arrays(x)
    return lax.eq(x, np.asarray(np.inf, x.dtype)) if is_float(x.dtype) else lax.ne(x, x)


def isneginf(x, /):
    """Return where x is -inf."""
    (x,) = as_arrays(x)
    return lax.eq(x, np.asarray(-np.inf, x.dtype)) if is_float(x.dtype) else lax.ne(x, x)


def nan_to_num(x, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None):
    """Return x with NaN and infinities replaced; the infinities by default by the dtype's extreme values."""
    (x,) = as_arrays(x)
    if not is_float(x.dtype):
        return x
    extreme = jnp.finfo(x.dtype)
    high = extreme.max if posinf is None else posinf
    low = extreme.min if neginf is None else neginf
    for mask, value in ((isnan(x), nan), (isposinf(x), high), (isneginf(x), low)):
        x = lax.select_n(mask, x, broadcast_to(cast(value, x.dtype), x.shape))
    return x


def logit(x, /, eps: float | None = None):
    """Return log(x / (1 - x)), with x clamped to [eps, 1 - eps] if ``eps`` is given."""
    x = floats(x)
    return _logit(x) if eps is None else _logit_within(x, eps)


def _slope_of_logit(x):
    """Return 1 / (x (1 - x)), infinite at 0 and 1 whatever the zero's sign."""
    product = lax.abs(lax.mul(x, lax.sub(np.ones((), x.dtype), x)))
    return lax.div(np.ones((), x.dtype), product)


def _slope_of_plain_logit(t, out, x):
    inside = lax.bitwise_and(lax.ge(x, _zero(x)), lax.le(x, np.ones((), x.dtype)))
    return lax.mul(t, lax.select_n(inside, lax.full_like(x, np.nan), _slope_of_logit(x)))


@slopes(_slope_of_plain_logit)
def _logit(x):
    return lax.sub(lax.log(x), lax.log1p(lax.neg(x)))


def _logit_within(x, eps: float):
    low, high = cast(eps, x.dtype), cast(1.0 - eps, x.dtype)

    def slope(t, out, x):
        return lax.mul(t, zero_where(_slope_of_logit(x), lax.bitwise_or(lax.lt(x, low), lax.gt(x, high))))

    @slopes(slope)
    def logit_of_limited(x):
        return _logit(lax.min(lax.max(x, low), high))

    return logit_of_limited(x)


def sinc(x, /):
    """Return sin(πx) / (πx), and 1 at 0."""
    x = floats(x)
    dtype = x.dtype
    x = cast(x, compute_dtype(dtype))
    scaled = lax.mul(x, np.asarray(np.pi, x.dtype))
    zero = lax.eq(x, _zero(x))
    one = broadcast_to(np.ones((), x.dtype), x.shape)
    safe = lax.select_n(zero, scaled, one)
    return cast(lax.select_n(zero, lax.div(lax.sin(safe), safe), one), dtype)


def deg2rad(x, /):
    """Return degrees as radians."""
    x = floats(x)
    no_complex(x, "deg2rad", "shape")
    return lax.mul(x, np.asarray(np.pi / 180.0, x.dtype))


def rad2deg(x, /):
    """Return radians as degrees."""
    x = floats(x)
    no_complex(x, "rad2deg", "shape")
    return lax.mul(x, np.asarray(180.0 / np.pi, x.dtype))


def logical_not(x, /):
    """Return where x is zero.

    Example:
        >>> flow.logical_not(flow.tensor([0, 3]))
        tensor([ True, False])
    """
    return lax.bitwise_not(cast(x, BOOL))


def bitwise_not(x, /):
    """Return the bits of an integer or bool flipped."""
    (x,) = as_arrays(x)
    return lax.bitwise_not(x)


def to_dtype(x, /, dtype):
    """Return x cast to ``dtype``; the gradient is cast back."""
    return cast(x, dtype)
