"""Binary and ternary arithmetic with torch's promotion, rounding and gradients.

Every input may be an array or a number. Worked case: integers divide truly unless a rounding is given::

    div([-7, 7], 2)                         -> float32 [-3.5, 3.5]
    div([-7, 7], 2, rounding_mode="floor")  -> int64 [-4, 3]
    div([-7, 7], 2, rounding_mode="trunc")  -> int64 [-3, 3]

Where torch and JAX differ in a gradient (`maximum` at ties and NaN, `clamp` at its bounds), the function
names torch's own derivatives (`slopes`).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from .dims import fail, no_complex
from .promote import BOOL, align, as_arrays, broadcast_to, cast, compute_dtype, floats, is_float, joint_shape, promote
from .slopes import slopes, zero_unless, zero_where


def _scale_operand(y, alpha):
    if isinstance(alpha, float) and not is_float(y.dtype):
        rule = "For integral input tensors, argument alpha must not be a floating point number"
        fail("shape", f"add(x, y, alpha={alpha})", f"tensors of {y.dtype}", rule, "y.float()")
    if alpha is True and y.dtype != BOOL:
        rule = "Boolean alpha only supported for Boolean results"
        fail("shape", f"add(x, y, alpha={alpha})", f"tensors of {y.dtype}", rule, "alpha=1")
    if isinstance(alpha, complex) and y.dtype.kind != "c":
        rule = "For non-complex input tensors, argument alpha must not be a complex number"
        fail("shape", f"add(x, y, alpha={alpha})", f"tensors of {y.dtype}", rule, "y.to(sbpjax.complex64)")
    return y if alpha == 1 else lax.mul(y, cast(alpha, y.dtype))


def _pair(x, y, float_result: bool = False):
    return align(*promote(x, y, float_result=float_result))


def _broadcast_pair(x, y):
    """Return two arrays in their common shape."""
    shape = joint_shape(np.shape(x), np.shape(y))
    return broadcast_to(x, shape), broadcast_to(y, shape)


def add(x, y, /, alpha=1):
    """Return x + alpha * y; of bools, their disjunction.

    Args:
        alpha: factor of ``y``.
    """
    x, y = _pair(x, y)
    y = _scale_operand(y, alpha) if x.dtype != BOOL or isinstance(alpha, float) else y
    return lax.bitwise_or(x, y) if x.dtype == BOOL else lax.add(x, y)


def sub(x, y, /, alpha=1):
    """Return x - alpha * y; not for bools.

    Args:
        alpha: factor of ``y``; a float only if the result is one.

    Raises:
        OpTypeError: one is bool.
        OpError: ``alpha`` is a float, and the result an integer.

    Example:
        >>> flow.sub(flow.tensor([3.0, 4.0]), flow.tensor([1.0, 2.0]), alpha=2)
        tensor([1., 0.])
    """
    if BOOL in (jnp.result_type(x), jnp.result_type(y)):
        rule = "Subtraction, the `-` operator, with a bool tensor is not supported"
        fail("type", "x - y", "a bool tensor", rule, "~mask or x ^ y, or cast it: x.int() - y")
    return difference(x, y, alpha)


def difference(x, y, /, alpha=1):
    """Return x - alpha * y, where a bool beside another dtype counts as 0 or 1."""
    x, y = _pair(x, y)
    return lax.sub(x, _scale_operand(y, alpha))


def rsub(x, y, /, alpha=1):
    """Return y - alpha * x."""
    return sub(y, x, alpha=alpha)


def mul(x, y, /):
    """Return x * y; of bools, their conjunction.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.ones(4, 3, placement=p, sbp=flow.sbp.split(0))
        >>> w = flow.tensor([1.0, 2.0, 3.0], placement=p, sbp=flow.sbp.broadcast)
        >>> y = flow.mul(x, w)
        >>> y.sbp, y[0].tolist()
        ((sbpjax.sbp.split(dim=0),), [1.0, 2.0, 3.0])
    """
    x, y = _pair(x, y)
    return lax.bitwise_and(x, y) if x.dtype == BOOL else lax.mul(x, y)


def div(x, y, /, rounding_mode: str | None = None):
    """Return x / y.

    Args:
        x: any array or number.
        y: any array or number, broadcast with ``x``.
        rounding_mode: None divides truly (integers become float32); ``"trunc"`` rounds towards zero and ``"floor"``
            down, both keep an integer dtype and have gradient zero.

    Raises:
        OpValueError: another ``rounding_mode``.

    Example:
        >>> flow.div(flow.tensor([-7, 7]), 2), flow.div(flow.tensor([-7, 7]), 2, rounding_mode="floor")
        (tensor([-3.5000,  3.5000]), tensor([-4,  3]))
    """
    if rounding_mode is None:
        return lax.div(*_pair(x, y, float_result=True))
    x, y = _pair(x, y)
    if rounding_mode == "trunc":
        if not is_float(x.dtype):
            return _divmod_integers(x, y)[0]
        quotient = lax.stop_gradient(lax.div(x, y))
        return lax.select_n(lax.lt(quotient, np.zeros((), x.dtype)), lax.floor(quotient), lax.ceil(quotient))
    if rounding_mode == "floor":
        return _floor_divide(x, y)
    fail(
        "value",
        f"div(x, y, rounding_mode={rounding_mode!r})",
        f"rounding_mode={rounding_mode!r}",
        "rounding_mode is None, 'trunc' or 'floor'",
        "rounding_mode='floor'",
    )


def _divmod_integers(x, y):
    """Return quotient and remainder of integers; by zero -1 and x, as XLA's own.

    XLA's compiler divides constants itself, and 0 // 0 among them ends the process (jax 0.10 to 0.12, CPU).
    """
    shape = joint_shape(x.shape, y.shape)
    by_zero = broadcast_to(lax.eq(y, np.zeros((), y.dtype)), shape)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    divisor = lax.select_n(by_zero, y, lax.full_like(y, 1))
    return (
        lax.select_n(by_zero, lax.div(x, divisor), lax.full_like(x, -1)),
        lax.select_n(by_zero, lax.rem(x, divisor), x),
    )


def _truncated_remainder(x, y):
    return lax.rem(x, y) if is_float(x.dtype) else _divmod_integers(x, y)[1]


def _has_wrong_sign(rest, y):
    """Return where a remainder is nonzero and has not the divisor's sign."""
    zero = np.zeros((), rest.dtype)
    return lax.bitwise_and(lax.ne(rest, zero), lax.ne(lax.lt(rest, zero), lax.lt(y, zero)))


def _floor_divide(x, y):
    one = np.ones((), x.dtype)
    if not is_float(x.dtype):
        quotient, rest = _divmod_integers(x, y)
        return lax.select_n(_has_wrong_sign(rest, y), quotient, lax.sub(quotient, one))
    x, y = lax.stop_gradient(x), lax.stop_gradient(y)
    rest = lax.rem(x, y)
    exact = lax.div(lax.sub(x, rest), y)  # an integer but for rounding: round, then step down where the signs differ
    quotient = lax.round(exact, lax.RoundingMethod.TO_NEAREST_EVEN)
    quotient = lax.select_n(_has_wrong_sign(rest, y), quotient, lax.sub(quotient, one))
    true = lax.div(x, y)
    by_zero = broadcast_to(lax.eq(y, np.zeros((), y.dtype)), true.shape)
    return lax.select_n(by_zero, quotient, true)


def floor_divide(x, y, /):
    """Return x / y rounded down, in the promoted dtype.

    Example:
        >>> flow.floor_divide(flow.tensor([-7, 7]), 2)
        tensor([-4,  3])
    """
    return _floor_divide(*_pair(x, y))


def remainder(x, y, /):
    """Return the remainder of x / y with the sign of y (Python's ``%``).

    Example:
        >>> flow.remainder(flow.tensor([-7, 7]), 3), flow.tensor([-7, 7]) % -3
        (tensor([2, 1]), tensor([-1, -2]))
    """
    return _remainder(*_pair(x, y))


@slopes(lambda t, out, x, y: t, lambda t, out, x, y: lax.neg(lax.mul(t, _floor_divide(x, y))))
def _remainder(x, y):
    rest = _truncated_remainder(x, y)
    return lax.select_n(_has_wrong_sign(rest, y), rest, lax.add(rest, y))


def fmod(x, y, /):
    """Return the remainder of x / y with the sign of x (C's ``fmod``).

    Example:
        >>> flow.fmod(flow.tensor([-7, 7]), 3)
        tensor([-1,  1])
    """
    return _truncated_remainder(*_pair(x, y))


def maximum(x, y, /):
    """Return the larger element; NaN if either is NaN; a tie gives half of the gradient to each, NaN all of it.

    Example:
        >>> flow.maximum(flow.tensor([1.0, 5.0]), flow.tensor([3.0, 2.0]))
        tensor([3., 5.])
    """
    return _maximum(*_pair(x, y))


def _share_tangent(t, x, y):
    """Return a tangent, halved where two arrays are equal."""
    equal = lax.eq(x, y)
    half = lax.mul(t, np.asarray(0.5, t.dtype))
    return lax.select_n(equal, broadcast_to(t, equal.shape), broadcast_to(half, equal.shape))


@slopes(
    lambda t, out, x, y: zero_where(_share_tangent(t, x, y), lax.lt(x, y)),
    lambda t, out, x, y: zero_where(_share_tangent(t, x, y), lax.gt(x, y)),
)
def _maximum(x, y):
    return lax.max(x, y)


@slopes(
    lambda t, out, x, y: zero_where(_share_tangent(t, x, y), lax.gt(x, y)),
    lambda t, out, x, y: zero_where(_share_tangent(t, x, y), lax.lt(x, y)),
)
def _minimum(x, y):
    return lax.min(x, y)


def minimum(x, y, /):
    """Return the smaller element; NaN if either is NaN; a tie gives half of the gradient to each, NaN all of it.

    Example:
        >>> flow.minimum(flow.tensor([1.0, 5.0]), flow.tensor([3.0, 2.0]))
        tensor([1., 2.])
    """
    return _minimum(*_pair(x, y))


def fmax(x, y, /):
    """Return the larger element; a NaN counts as missing."""
    x, y = _pair(x, y)
    return where(lax.bitwise_or(lax.ge(x, y), _isnan(y, x)), x, y)


def fmin(x, y, /):
    """Return the smaller element; a NaN counts as missing."""
    x, y = _pair(x, y)
    return where(lax.bitwise_or(lax.le(x, y), _isnan(y, x)), x, y)


def _isnan(y, like):
    return broadcast_to(lax.ne(y, y), joint_shape(np.shape(y), np.shape(like)))


def where(condition, x, y, /):
    """Return x where ``condition`` holds, else y; all three broadcast. An integer holds if it is not 0, as in OneFlow.

    The gradient of the element that was not chosen is 0, but a NaN in its own derivative still passes (0 · NaN): as
    in torch.
    """
    (condition,) = as_arrays(condition)
    if condition.dtype.kind not in "biu":
        fail(
            "type",
            "where(condition, x, y)",
            f"a condition of dtype {condition.dtype}",
            "where expected condition to be a boolean tensor",
            "condition != 0, or condition.bool()",
        )
    condition = cast(condition, BOOL)
    x, y = promote(x, y)
    shape = joint_shape(np.shape(condition), np.shape(x), np.shape(y))
    condition = condition if np.ndim(condition) == 0 else broadcast_to(condition, shape)
    return lax.select_n(condition, broadcast_to(y, shape), broadcast_to(x, shape))


def clamp(x, min=None, max=None, /):
    """Return x limited to [min, max]; at a bound the whole gradient goes to x, and a NaN has none.

    Args:
        x: array of any dtype but bool.
        min: number, array or None.
        max: number, array or None; wins where it is below ``min``.

    Raises:
        OpNotSupportedError: ``x`` is complex.

    Example:
        >>> flow.clamp(flow.tensor([-2.0, 0.5, 9.0]), min=0.0, max=1.0)
        tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        fail("value", "clamp(x)", "neither min nor max", "at least one of min and max is given", "clamp(x, min=0)")
    x, low, high = promote(x, min, max)
    no_complex(x, "clamp")
    if high is None:
        return _clamp_low(*align(x, low))
    if low is None:
        return _clamp_high(*align(x, high))
    return between(*align(x, low, high))


@slopes(lambda t, out, x, low: zero_unless(t, lax.ge(x, low)), lambda t, out, x, low: zero_unless(t, lax.lt(x, low)))
def _clamp_low(x, low):
    return lax.max(x, low)


@slopes(
    lambda t, out, x, high: zero_unless(t, lax.le(x, high)), lambda t, out, x, high: zero_unless(t, lax.gt(x, high))
)
def _clamp_high(x, high):
    return lax.min(x, high)


@slopes(
    lambda t, out, x, low, high: zero_unless(zero_unless(t, lax.ge(x, low)), lax.le(x, high)),
    lambda t, out, x, low, high: zero_unless(zero_unless(t, lax.lt(x, low)), lax.lt(low, high)),
    lambda t, out, x, low, high: zero_unless(t, lax.bitwise_or(*_broadcast_pair(lax.gt(x, high), lax.lt(high, low)))),
)
def between(x, low, high):
    """Return x limited to bounds, all arrays that are aligned; where these cross, the upper one."""
    return lax.min(lax.max(x, low), high)


def clamp_min(x, min, /):
    """Return x limited from below."""
    return clamp(x, min, None)


def clamp_max(x, max, /):
    """Return x limited from above."""
    return clamp(x, None, max)


def lerp(x, end, weight, /):
    """Return x + weight * (end - x), computed from the nearer end as torch does.

    Args:
        weight: a number or a tensor; 0 gives ``x``, 1 gives ``end``.

    Example:
        >>> flow.lerp(flow.tensor([0.0, 10.0]), flow.tensor([10.0, 20.0]), 0.25)
        tensor([ 2.5000, 12.5000])
    """
    x, end = promote(x, end)
    if x.dtype.kind in "iub":
        fail("type", "lerp(x, end, weight)", f"tensors of {x.dtype}", "lerp is defined for floats", "x.float()")
    if np.iscomplexobj(weight) and x.dtype.kind != "c":
        rule = f"value cannot be converted to type {x.dtype} without overflow"
        fail("shape", "lerp(x, end, weight)", f"weight={weight}", rule, "weight=0.5")
    weight = cast(weight, x.dtype)
    return _lerp(*align(x, end, weight))


@slopes(
    lambda t, out, x, end, weight: lax.mul(t, lax.sub(np.ones((), x.dtype), weight)),
    lambda t, out, x, end, weight: lax.mul(t, weight),
    lambda t, out, x, end, weight: lax.mul(t, lax.sub(end, x)),
)
def _lerp(x, end, weight):
    span = lax.sub(end, x)
    near = lax.lt(lax.abs(weight), np.asarray(0.5, x.dtype).real)
    return where(
        near, lax.add(x, lax.mul(weight, span)), lax.sub(end, lax.mul(span, lax.sub(np.ones((), x.dtype), weight)))
    )


def _with_whole_factors(x, a, b):
    """Return three aligned arrays, the second in the result's shape: gradients are scaled before they are summed."""
    shape = joint_shape(np.shape(x), np.shape(a), np.shape(b))
    return align(x, broadcast_to(a, shape), b)


def addcmul(x, a, b, /, value=1):
    """Return x + value * a * b.

    Args:
        value: factor of the product.

    Example:
        >>> flow.addcmul(flow.tensor([1.0]), flow.tensor([2.0]), flow.tensor([3.0]), value=0.5)
        tensor([4.])
    """
    x, a, b = _with_whole_factors(*promote(x, a, b))
    return lax.add(x, _scale_operand(lax.mul(a, b), value))


def addcdiv(x, a, b, /, value=1):
    """Return x + value * a / b.

    Args:
        value: factor of the quotient.

    Example:
        >>> flow.addcdiv(flow.tensor([1.0]), flow.tensor([2.0]), flow.tensor([4.0]), value=0.5)
        tensor([1.2500])
    """
    if all(getattr(v, "dtype", BOOL).kind in "iub" for v in (x, a, b)):
        rule = "Integer division with addcdiv is not supported"
        fail("shape", "addcdiv(x, a, b)", f"tensors of {x.dtype}", rule, "addcdiv(x.float(), a, b)")
    x, a, b = _with_whole_factors(*promote(x, a, b, float_result=True))
    return lax.add(x, lax.div(_scale_operand(a, value), b))


def atan2(y, x, /):
    """Return the angle of the point (x, y)."""
    return _atan2(*_pair(y, x, float_result=True))


def _over_square(t, y, x):
    """Return t / (x² + y²), and 0 at the origin."""
    square = lax.add(lax.square(x), lax.square(y))
    origin = lax.eq(square, np.zeros((), square.dtype))
    return lax.mul(t, lax.select_n(origin, lax.div(lax.full_like(square, 1), square), lax.full_like(square, 0)))


@slopes(
    lambda t, out, y, x: _over_square(lax.mul(t, x), y, x),
    lambda t, out, y, x: _over_square(lax.mul(t, lax.neg(y)), y, x),
)
def _atan2(y, x):
    return lax.atan2(*_broadcast_pair(y, x))


def hypot(x, y, /):
    """Return sqrt(x² + y²), without overflow; infinite where one of them is."""
    return _hypot(*_pair(x, y))


@slopes(lambda t, out, x, y: lax.mul(t, lax.div(x, out)), lambda t, out, x, y: lax.mul(t, lax.div(y, out)))
def _hypot(x, y):
    x, y = _broadcast_pair(lax.abs(x), lax.abs(y))
    long, short = lax.max(x, y), lax.min(x, y)
    ratio = lax.div(short, lax.select_n(lax.eq(long, np.zeros((), x.dtype)), long, lax.full_like(long, 1)))
    length = lax.mul(long, lax.sqrt(lax.add(lax.square(ratio), np.ones((), x.dtype))))
    endless = np.asarray(np.inf, x.dtype)
    infinite = lax.bitwise_or(lax.eq(x, endless), lax.eq(y, endless))
    return lax.select_n(infinite, length, lax.full_like(length, np.inf))


def logaddexp(x, y, /):
    """Return log(e**x + e**y) without overflow."""
    x, y = align(*(floats(v) for v in promote(x, y)))
    if np.issubdtype(x.dtype, np.complexfloating):
        return _complex_logaddexp(x, y)
    return _logaddexp(x, y)


def _share(t, x, y):
    """Return t * e**x / (e**x + e**y)."""
    return lax.div(t, lax.add(np.ones((), x.dtype), lax.exp(lax.sub(y, x))))


@slopes(lambda t, out, x, y: _share(t, x, y), lambda t, out, x, y: _share(t, y, x))
def _logaddexp(x, y):
    dtype = x.dtype  # in bfloat16 the sum of two near terms of opposite signs would be noise
    x, y = (cast(v, compute_dtype(dtype)) for v in (x, y))
    top = lax.max(x, y)
    same = lax.eq(x, y)  # equal infinities would give inf - inf
    distance = lax.sub(x, y)
    distance = lax.select_n(
        broadcast_to(same, distance.shape), distance, broadcast_to(np.zeros((), x.dtype), distance.shape)
    )
    return cast(lax.add(top, lax.log1p(lax.exp(lax.neg(lax.abs(distance))))), dtype)


def _complex_logaddexp(x, y):
    """Return log(e**x + e**y) of complex numbers; the one with the larger real part stays outside."""
    shape = joint_shape(x.shape, y.shape)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    x_leads = lax.ge(lax.real(x), lax.real(y))
    top, low = lax.select_n(x_leads, y, x), lax.select_n(x_leads, x, y)
    level = lax.real(top)
    endless = lax.bitwise_and(lax.eq(level, lax.real(low)), lax.bitwise_not(lax.is_finite(level)))
    safe = lax.select_n(endless, lax.sub(low, top), lax.full_like(low, 0))
    plain = lax.add(top, lax.log1p(lax.exp(safe)))
    both = lax.select_n(lax.lt(level, np.zeros((), level.dtype)), lax.log(lax.add(lax.exp(x), lax.exp(y))), low)
    return lax.select_n(endless, plain, lax.stop_gradient(both))


def xlogy(x, y, /):
    """Return x * log(y), and 0 where x is 0 and y is not NaN."""
    return _xlogy(*_pair(x, y, float_result=True))


def _slope_of_factor(t, out, x, y):
    zero = np.zeros((), x.dtype)
    return lax.mul(t, zero_where(lax.log(y), lax.bitwise_and(lax.eq(x, zero), lax.le(y, zero))))


@slopes(_slope_of_factor, lambda t, out, x, y: lax.div(lax.mul(t, x), y))
def _xlogy(x, y):
    zero = np.zeros((), x.dtype)
    unsafe = lax.bitwise_or(lax.le(y, zero), lax.eq(y, np.asarray(np.inf, y.dtype)))
    void = lax.bitwise_and(lax.eq(x, zero), unsafe)
    safe = where(void, np.ones((), x.dtype), y)
    return lax.mul(x, lax.log(safe))


def copysign(x, y, /):
    """Return the size of x with the sign of y (also of -0.0)."""
    return _copysign(*_pair(x, y, float_result=True))


@slopes(lambda t, out, x, y: lax.mul(t, zero_where(lax.div(out, x), lax.eq(x, np.zeros((), x.dtype)))), None)
def _copysign(x, y):
    size = lax.abs(x)
    return where(jnp.signbit(y), lax.neg(size), size)


def heaviside(x, y, /):
    """Return 0 where x < 0, 1 where x > 0, and y where x is 0."""
    x, y = _pair(x, y)
    zero, one = np.zeros((), x.dtype), np.ones((), x.dtype)
    return where(lax.eq(x, zero), y, where(lax.gt(x, zero), one, zero))
