"""Special functions: Bessel functions, the normal distribution, entropy.

Integers become float32, as in torch; bfloat16 and float16 are computed in float32. Worked case: `log_ndtr` of -40 is
-804.6 although `ndtr` of it is 0 in float32.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sbpjax._core.runtime.optional_packages import LazyModule

from ..arithmetic import _pair
from ..elementwise import exp2
from ..promote import cast, compute_dtype, floats
from ..slopes import slopes, zero_where

jax_special = LazyModule("jax.scipy.special")


def _wide(function, *inputs):
    """Compute in float32 at least, and return the result in the inputs' dtype."""
    dtype = inputs[0].dtype
    return cast(function(*[cast(x, compute_dtype(dtype)) for x in inputs]), dtype)


def _number(value, x):
    return np.asarray(value, x.dtype)


# ---------------------------------------------------------------------------------------------------------- Bessel


def i0e(x, /):
    """Return ``i0(x) * exp(-|x|)``."""
    return _wide(lax.bessel_i0e, floats(x))


def i1e(x, /):
    """Return ``i1(x) * exp(-|x|)``."""
    return _wide(lax.bessel_i1e, floats(x))


@jax.custom_jvp
def _i0(x):
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals, tangents):
    return _i0(primals[0]), tangents[0] * _i1(primals[0])


@jax.custom_jvp
def _i1(x):
    return lax.mul(lax.exp(lax.abs(x)), lax.bessel_i1e(x))


@_i1.defjvp
def _i1_jvp(primals, tangents):
    (x,) = primals
    zero = lax.eq(x, _number(0, x))
    ratio = _i1(x) / jnp.where(zero, _number(1, x), x)
    return _i1(x), tangents[0] * jnp.where(zero, _number(0.5, x), _i0(x) - ratio)


def i0(x, /):
    """Return the modified Bessel function of the first kind of order 0."""
    return _wide(_i0, floats(x))


def i1(x, /):
    """Return the modified Bessel function of the first kind of order 1."""
    return _wide(_i1, floats(x))


# ------------------------------------------------------------------------------------------- normal distribution


def ndtr(x, /):
    """Return the area under the normal density from minus infinity to x."""
    return _wide(lambda v: lax.erfc(v * _number(-math.sqrt(0.5), v)) * _number(0.5, v), floats(x))


@jax.custom_jvp
def _ndtri(x):
    return jax_special.ndtri(x)


@_ndtri.defjvp
def _ndtri_jvp(primals, tangents):
    value = _ndtri(primals[0])
    slope = _number(math.sqrt(2 * math.pi), value) * lax.exp(value * value * _number(0.5, value))
    return value, tangents[0] * slope


def ndtri(x, /):
    """Return the x for which `ndtr` gives the input."""
    return _wide(_ndtri, floats(x))


def log_ndtr(x, /):
    """Return the logarithm of `ndtr`, exact where that is 0."""
    return _wide(jax_special.log_ndtr, floats(x))


# --------------------------------------------------------------------------------------------------------- entropy


def entr(x, /):
    """Return ``-x log(x)``: 0 at 0, minus infinity below."""
    return _entr(floats(x))


@slopes(lambda t, out, x: lax.mul(t, lax.sub(_number(-1, x), lax.log(x))))
def _entr(x):
    positive = lax.gt(x, _number(0, x))
    inside = lax.neg(x * lax.log(jnp.where(positive, x, _number(1, x))))
    outside = jnp.where(x == 0, _number(0, x), jnp.where(x != x, x, _number(-np.inf, x)))
    return jnp.where(positive, inside, outside)


def xlog1py(x, y, /):
    """Return ``x log(1 + y)``, 0 where x is 0 and y is no NaN."""
    return _xlog1py(*_pair(x, y, float_result=True))


def _slope_of_factor(t, out, x, y):
    below = (x == 0) & lax.le(y, _number(-1, y))
    return lax.mul(t, zero_where(lax.log1p(y), below))


@slopes(_slope_of_factor, lambda t, out, x, y: lax.div(lax.mul(t, x), lax.add(y, _number(1, y))))
def _xlog1py(x, y):
    x, y = jnp.broadcast_arrays(x, y)
    unsafe = (y <= -1) | (y == np.inf)
    nothing = (x == 0) & unsafe
    return x * lax.log1p(jnp.where(nothing, _number(0, x), y))


def logaddexp2(x, y, /):
    """Return ``log2(2**x + 2**y)`` without overflow."""
    return _logaddexp2(*_pair(x, y))


def _share(t, x, y):
    """Return t * 2**x / (2**x + 2**y)."""
    return lax.div(t, lax.add(_number(1, x), exp2(lax.sub(y, x))))


@slopes(lambda t, out, x, y: _share(t, x, y), lambda t, out, x, y: _share(t, y, x))
def _logaddexp2(x, y):
    scale = math.log(2)
    return _wide(lambda a, b: jnp.logaddexp(a * scale, b * scale) / scale, x, y)


def spherical_bessel_j0(x, /):
    """Return ``sin(x) / x``, 1 at 0 and 0 at infinity."""
    x = floats(x)
    small = lax.abs(x) < _number(0.5, x)
    near = jnp.where(small, x, _number(0, x))
    square = near * near
    series = 1 + square * (-1 / 6 + square * (1 / 120 + square * (-1 / 5040 + square * (1 / 362880))))
    far = jnp.where(small, _number(1, x), x)
    finite = jnp.isinf(x)
    value = lax.sin(jnp.where(finite, _number(1, x), far)) / far
    return jnp.where(small, cast(series, x.dtype), jnp.where(finite, _number(0, x), value))
