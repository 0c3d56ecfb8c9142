"""Activation functions with torch's formulas, NaN behaviour and gradients at the kinks.

Each is a short composition, so that it splits along any dim. Worked case: `relu` is `select(x <= 0, 0, x)` and not
`max(x, 0)`, since the gradient of max at a tie is one half, torch's gradient of relu at 0 is 0; NaN stays NaN either
way. Functions that lose digits in bfloat16 compute in float32 and round once at the end, as torch does.
"""

from __future__ import annotations

import functools
import math

import jax
from jax import lax

from ..dims import fail, no_complex, one
from ..promote import BOOL, broadcast_to, cast, compute_dtype, is_float, promote
from ..slopes import slopes, zero_unless, zero_where


def _check_float_dtype(x, name: str):
    if not is_float(x.dtype):
        fail("type", f"{name}(x)", f"x of dtype {x.dtype}", "only floats are accepted", f"{name}(x.float())")
    return x


def _number(value, x):
    return cast(value, x.dtype)


def _pick(condition, x, y):
    """Return x where the condition holds, else y; x and y may be scalars."""
    return lax.select_n(condition, broadcast_to(y, condition.shape), broadcast_to(x, condition.shape))


def _wide(function):
    """Compute in float32 for bfloat16 and float16."""

    def apply(x, *args):
        out = function(cast(x, compute_dtype(x.dtype)), *args)
        return cast(out, x.dtype)

    return apply


def relu(x, /):
    """Return max(x, 0), with gradient 0 at 0.

    Raises:
        OpNotSupportedError: ``x`` is complex.

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.relu(x)
        tensor([0.0000, 0.0000, 1.5000])
    """
    no_complex(x, "relu")
    if x.dtype == BOOL:
        fail("shape", "relu(x)", "a bool tensor", "Boolean inputs not supported for relu", "relu(x.int())")
    zero = _number(0, x)
    return _pick(lax.le(x, zero), zero, x)


def square_relu(x, /):
    """Return max(x, 0)²."""
    return lax.square(relu(x))


def relu6(x, /):
    """Return min(max(x, 0), 6).

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.relu6(x)
        tensor([0.0000, 0.0000, 1.5000])
    """
    return hardtanh(x, min_val=0.0, max_val=6.0)


def hardtanh(x, /, min_val: float = -1.0, max_val: float = 1.0):
    """Return x limited to [min_val, max_val], with gradient 0 at both bounds.

    Args:
        min_val: the lower bound.
        max_val: the upper bound.

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.hardtanh(x)
        tensor([-1.,  0.,  1.])
    """
    no_complex(x, "hardtanh")
    if min_val > max_val:
        rule = "min_val cannot be greater than max_val"
        fail("value", f"hardtanh(x, {min_val}, {max_val})", f"{min_val} > {max_val}", rule, "exchange the two")
    if min_val < 0 and x.dtype.kind == "u":
        rule = "cannot do hardtanh on an unsigned type with negative limits"
        fail("shape", f"hardtanh(x, {min_val}, {max_val})", f"{x.dtype}{list(x.shape)}", rule, "min_val=0, or x.int()")
    low, high = _number(min_val, x), _number(max_val, x)
    return _pick(lax.le(x, low), low, _pick(lax.ge(x, high), high, x))


def threshold(x, /, threshold: float, value: float):
    """Return x where it is above the threshold, else ``value``."""
    return _pick(lax.le(x, _number(threshold, x)), _number(value, x), x)


def leaky_relu(x, /, negative_slope: float = 0.01):
    """Return x where positive, else negative_slope * x.

    Args:
        negative_slope: the factor of negative elements.

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.leaky_relu(x)
        tensor([-0.0200,  0.0000,  1.5000])
    """
    _check_float_dtype(x, "leaky_relu")
    return _pick(lax.gt(x, _number(0, x)), x, lax.mul(x, _number(negative_slope, x)))


def prelu(x, weight, /):
    """Return x where positive, else weight * x.

    Args:
        x: ``(N, C, ...)``; with one dim or none, the channel dim counts as 1.
        weight: one slope, or one per channel (dim 1).

    Returns:
        The shape of ``x``. A split stays; a partial sum is reduced first.

    Raises:
        OpError: neither 1 nor as many slopes as channels, or slopes of two dims.

    Example:
        >>> flow.nn.functional.prelu(flow.tensor([[-2.0, -4.0]]), flow.tensor([0.25, 0.5]))
        tensor([[-0.5000, -2.0000]])
    """
    _check_float_dtype(x, "prelu")
    if weight.ndim > 1:
        rule = f"Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        fail("shape", "prelu(x, weight)", f"weight {weight.shape}", rule, "weight.flatten()")
    if weight.ndim and weight.shape[0] != 1:
        if x.ndim < 2 or weight.shape[0] != x.shape[1]:
            channels = x.shape[1] if x.ndim > 1 else 1
            fail(
                "shape",
                "prelu(x, weight)",
                f"weight {weight.shape}, x {x.shape}",
                f"num_parameters in prelu must be 1 or {channels}",
                f"use a weight of shape ({channels},)",
            )
        weight = lax.broadcast_in_dim(weight, (1, weight.shape[0]) + (1,) * (x.ndim - 2), (1,))
    elif weight.ndim != x.ndim:
        weight = lax.reshape(weight, (1,) * x.ndim)
    above = lax.gt(x, _number(0, x))
    below = _pick(above, _number(0, x), x)  # an infinite x above 0 would turn the slope's gradient to 0 * inf
    return _pick(above, x, lax.mul(weight, below))


def elu(x, /, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0):
    """Return scale * (x where positive, else alpha * (e**(input_scale * x) - 1)).

    Args:
        alpha: minus the limit for large negative elements.

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.elu(x)
        tensor([-0.8647,  0.0000,  1.5000])
    """
    _check_float_dtype(x, "elu")

    @_wide
    def formula(x):
        below = lax.le(x, _number(0, x))
        safe = _pick(below, x, _number(0, x))  # exp of a large positive x would turn its gradient to 0 * inf
        scaled = safe if input_scale == 1 else lax.mul(safe, _number(input_scale, x))
        out = _pick(below, _times(lax.expm1(scaled), alpha), x)  # NaN counts as positive, with its gradient
        return _times(out, scale)

    return formula(x)


def _times(x, factor: float):
    return x if factor == 1 else lax.mul(x, _number(factor, x))


def selu(x, /):
    """Return the self-normalising elu.

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.selu(x)
        tensor([-1.5202,  0.0000,  1.5761])
    """
    return elu(x, alpha=1.6732632423543772, scale=1.0507009873554805)


def celu(x, /, alpha: float = 1.0):
    """Return max(x, 0) + min(0, alpha * (e**(x / alpha) - 1))."""
    return elu(x, alpha=alpha, input_scale=1.0 / alpha)


def sigmoid(x, /):
    """Return 1 / (1 + e**-x).

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.sigmoid(x)
        tensor([0.1192, 0.5000, 0.8176])
    """
    return lax.logistic(promote(x, float_result=True)[0])


def logsigmoid(x, /):
    """Return log(1 / (1 + e**-x)) without overflow.

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.logsigmoid(x)
        tensor([-2.1269, -0.6931, -0.2014])
    """
    _check_float_dtype(x, "logsigmoid")

    @_wide
    def formula(x):
        # |x| by select: the gradient at 0 has to be 1/2, that is 0 from this branch choice and 1/2 from the exponential
        small = _pick(lax.lt(x, _number(0, x)), x, lax.neg(x))
        below = _pick(lax.lt(x, _number(0, x)), x, _number(0, x))
        return lax.sub(below, lax.log1p(lax.exp(small)))

    return formula(x)


def softplus(x, /, beta: float = 1.0, threshold: float = 20.0):
    """Return log(1 + e**(beta * x)) / beta, and x where beta * x is above the threshold.

    Args:
        beta: how sharp the bend is.
        threshold: x itself is returned where beta * x is larger.

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.softplus(x)
        tensor([0.1269, 0.6931, 1.7014])
    """
    _check_float_dtype(x, "softplus")

    @_wide
    def formula(x):
        scaled = _times(x, beta)
        linear = lax.gt(scaled, _number(threshold, x))
        safe = _pick(linear, _number(0, x), scaled)
        return _pick(linear, x, _times(lax.log1p(lax.exp(safe)), 1.0 / beta))

    return formula(x)


def softsign(x, /):
    """Return x / (1 + |x|)."""
    x = promote(x, float_result=True)[0]
    return lax.div(x, lax.add(cast(lax.abs(x), x.dtype), _number(1, x)))


def silu(x, /):
    """Return x * sigmoid(x).

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.silu(x)
        tensor([-0.2384,  0.0000,  1.2264])
    """
    _check_float_dtype(x, "silu")
    return _wide(lambda x: lax.mul(x, lax.logistic(x)))(x)


def mish(x, /):
    """Return x * tanh(softplus(x)).

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.mish(x)
        tensor([-0.2525,  0.0000,  1.4034])
    """
    _check_float_dtype(x, "mish")
    return _wide(lambda x: lax.mul(x, lax.tanh(softplus(x))))(x)


def gelu(x, /, approximate: str = "none"):
    """Return x * Φ(x), with Φ the normal distribution function.

    Args:
        x: floats of any shape.
        approximate: ``"none"`` uses erf, ``"tanh"`` the tanh formula.

    Source:
        Hendrycks & Gimpel, https://arxiv.org/abs/1606.08415

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.gelu(x)
        tensor([-0.0455,  0.0000,  1.3998])
    """
    _check_float_dtype(x, "gelu")
    if approximate not in ("none", "tanh"):
        fail(
            "value", f"gelu(approximate={approximate!r})", f"x {x.shape}", "approximate is 'none' or 'tanh'", "gelu(x)"
        )

    @_wide
    def formula(x):
        half = lax.mul(x, _number(0.5, x))
        if approximate == "none":
            inner = lax.erf(lax.mul(x, _number(math.sqrt(0.5), x)))
        else:
            cubic = lax.add(x, lax.mul(_number(0.044715, x), lax.integer_pow(x, 3)))
            inner = lax.tanh(lax.mul(cubic, _number(math.sqrt(2.0 / math.pi), x)))
        return lax.mul(half, lax.add(inner, _number(1, x)))

    return formula(x)


def quick_gelu(x, /):
    """Return x * sigmoid(1.702 * x)."""
    _check_float_dtype(x, "quick_gelu")
    return lax.mul(x, lax.logistic(lax.mul(x, _number(1.702, x))))


def hardsigmoid(x, /):
    """Return min(max(x + 3, 0), 6) / 6.

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.hardsigmoid(x)
        tensor([0.1667, 0.5000, 0.7500])
    """
    _check_float_dtype(x, "hardsigmoid")
    return _hardsigmoid(x)


def _within(x):
    return lax.bitwise_and(lax.gt(x, _number(-3, x)), lax.lt(x, _number(3, x)))


@slopes(lambda t, out, x: zero_unless(lax.mul(t, _number(1 / 6, x)), _within(x)))
def _hardsigmoid(x):
    return lax.div(_zero_to_six(x), _number(6, x))


def _zero_to_six(x):
    return lax.min(lax.max(lax.add(x, _number(3, x)), _number(0, x)), _number(6, x))


def hardswish(x, /):
    """Return x * min(max(x + 3, 0), 6) / 6.

    Example:
        >>> x = flow.tensor([-2.0, 0.0, 1.5])
        >>> flow.nn.functional.hardswish(x)
        tensor([-0.3333,  0.0000,  1.1250])
    """
    _check_float_dtype(x, "hardswish")
    return _wide(_hardswish)(x)


def _slope_of_hardswish(t, out, x):
    rising = lax.add(lax.div(x, _number(3, x)), _number(0.5, x))
    slope = _pick(lax.lt(x, _number(3, x)), rising, _number(1, x))  # NaN has the slope on the right
    return lax.mul(t, zero_where(slope, lax.le(x, _number(-3, x))))


@slopes(_slope_of_hardswish)
def _hardswish(x):
    return lax.div(lax.mul(x, _zero_to_six(x)), _number(6, x))


def hardshrink(x, /, lambd: float = 0.5):
    """Return x, and 0 where |x| <= lambd."""
    small = lax.bitwise_and(lax.ge(x, _number(-lambd, x)), lax.le(x, _number(lambd, x)))
    return _pick(small, _number(0, x), x)


def softshrink(x, /, lambd: float = 0.5):
    """Return x moved by lambd towards 0, and 0 where |x| <= lambd."""
    above, small = lax.gt(x, _number(lambd, x)), lax.ge(x, _number(-lambd, x))
    small = lax.bitwise_and(small, lax.le(x, _number(lambd, x)))
    moved = _pick(above, lax.sub(x, _number(lambd, x)), lax.add(x, _number(lambd, x)))
    return _pick(small, _number(0, x), moved)  # NaN is not small and keeps its gradient


def tanhshrink(x, /):
    """Return x - tanh(x)."""
    x = promote(x, float_result=True)[0]
    return lax.sub(x, lax.tanh(x))


def glu(x, /, dim: int = -1):
    """Return a * sigmoid(b), with a and b the two halves of x along ``dim``.

    Args:
        dim: the dim that is halved.

    Returns:
        Half the size in the dim. Splits of other dims stay; a partial sum is reduced first.

    Raises:
        OpError: the size of the dim is odd.

    Example:
        >>> x = flow.tensor([[1.0, 2.0, 0.0, 10.0]])
        >>> flow.nn.functional.glu(x)
        tensor([[0.5000, 1.9999]])
    """
    dim = one(dim, x.ndim, "glu")
    if x.ndim == 0 or x.shape[dim] % 2:
        rule = f"Halving dimension must be even, but dimension {dim} is size {x.shape[dim]}"
        fail("shape", f"glu(dim={dim})", f"x {x.shape}", rule, "choose another dim or pad x")
    half = x.shape[dim] // 2
    return lax.mul(lax.slice_in_dim(x, 0, half, axis=dim), lax.logistic(lax.slice_in_dim(x, half, 2 * half, axis=dim)))


def _shift_by_max(x, dim: int):
    """Return x minus its maximum along ``dim``, and the sum of the exponentials, both with the dim kept."""
    top = lax.stop_gradient(lax.reduce_max(x, (dim,)))
    x = lax.sub(x, lax.expand_dims(top, (dim,)))
    return x


def _prepare_input(x, dim, dtype, name: str):
    if dtype is not None:
        x = cast(x, dtype)
    _check_float_dtype(x, name)
    return x, one((0 if x.ndim in (0, 1, 3) else 1) if dim is None else dim, x.ndim, name)


def softmax(x, /, dim: int | None = None, dtype=None):
    """Return e**x normalised to sum 1 along ``dim``.

    Args:
        dim: the dim of the classes; by default 1, or 0 of tensors with 0, 1 or 3 dims.
        dtype: cast to it first.
        x: floats; any sbp.

    Example:
        >>> x = flow.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
        >>> p = flow.placement("cpu", [0, 1])
        >>> flow.nn.functional.softmax(x, dim=-1)
        tensor([[0.0900, 0.2447, 0.6652],
                [0.3333, 0.3333, 0.3333]])
        >>> x.to_global(p, flow.sbp.split(0)).softmax(-1).sbp
        (sbpjax.sbp.split(dim=0),)
    """
    x, dim = _prepare_input(x, dim, dtype, "softmax")
    if x.size == 0:
        return x

    formula = _wide(lambda x: _softmax(x, dim))
    return formula(x) if x.ndim else lax.squeeze(formula(lax.expand_dims(x, (0,))), (0,))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _softmax(x, dim: int):
    e = lax.exp(_shift_by_max(x, dim))
    return lax.div(e, lax.expand_dims(lax.reduce_sum(e, (dim,)), (dim,)))


@_softmax.defjvp
def _softmax_jvp(dim: int, primals, tangents):
    """Return the tangent in terms of the result, ``p (t - sum(p t))``: half the passes of the formula's derivative."""
    p, (t,) = _softmax(primals[0], dim), tangents
    return p, _slope(p, t, dim)


def _slope(p, t, dim: int):
    return lax.mul(p, lax.sub(t, lax.expand_dims(lax.reduce_sum(lax.mul(p, t), (dim,)), (dim,))))


@jax.custom_jvp
def softmax_where(x, mask, /):
    """Return the softmax along the last dim over the elements where ``mask`` holds, and 0 elsewhere.

    Args:
        x: float32 or wider.
        mask: bools of x's shape; every row has an element.
    """
    return _softmax(lax.select_n(mask, lax.full_like(x, -math.inf), x), x.ndim - 1)


@softmax_where.defjvp
def _softmax_where_jvp(primals, tangents):
    """Return the tangent of the softmax: masked elements have p = 0, so the slope need not be masked again."""
    p, (t, _) = softmax_where(*primals), tangents
    return p, _slope(p, t, p.ndim - 1)


def log_softmax(x, /, dim: int | None = None, dtype=None):
    """Return the logarithm of the softmax along ``dim``, computed without its underflow.

    Example:
        >>> x = flow.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
        >>> flow.nn.functional.log_softmax(x, dim=1)
        tensor([[-2.4076, -1.4076, -0.4076],
                [-1.0986, -1.0986, -1.0986]])
    """
    x, dim = _prepare_input(x, dim, dtype, "log_softmax")
    if x.size == 0:
        return x

    formula = _wide(lambda x: _log_softmax(x, dim))
    return formula(x) if x.ndim else lax.squeeze(formula(lax.expand_dims(x, (0,))), (0,))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _log_softmax(x, dim: int):
    x = _shift_by_max(x, dim)
    total = lax.reduce_sum(lax.exp(x), (dim,))
    return lax.sub(x, lax.expand_dims(lax.log(total), (dim,)))


@_log_softmax.defjvp
def _log_softmax_jvp(dim: int, primals, tangents):
    (x,), (t,) = primals, tangents
    mean = lax.reduce_sum(lax.mul(_softmax(x, dim), t), (dim,))
    return _log_softmax(x, dim), lax.sub(t, lax.expand_dims(mean, (dim,)))


def softmin(x, /, dim: int | None = None, dtype=None):
    """Return the softmax of -x."""
    return softmax(lax.neg(x), dim=dim, dtype=dtype)
