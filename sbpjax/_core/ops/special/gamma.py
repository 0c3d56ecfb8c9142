"""Gamma-related functions: lgamma, digamma, polygamma, Hurwitz' zeta, incomplete gamma functions.

JAX's zeta sums upwards from its second argument and is right for positive ones only; every derivative of digamma needs
it for negative ones. For whole ``s`` and the fraction ``f`` of ``q`` the terms below zero are those of two sums that
start above it::

    zeta(s, q) = zeta(s, f) + (-1)^s * (zeta(s, 1 - f) - zeta(s, 1 - q))        q < 0, f = q - floor(q)

Worked case: ``zeta(2, -0.3)`` = zeta(2, 0.7) + zeta(2, 0.3) - zeta(2, 1.3) = 2.8340 + 12.2454 - 1.1343 = 13.9451.
Integers become float32, as in torch; bfloat16 and float16 are computed in float32.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from sbpjax._core.runtime import sizes

from ..arithmetic import _pair
from ..dims import fail
from ..promote import cast, compute_dtype, floats
from ..slopes import slopes


def _wide(function, *inputs):
    """Compute in float32 at least, and return the result in the inputs' dtype."""
    dtype = inputs[0].dtype
    return cast(function(*[cast(x, compute_dtype(dtype)) for x in inputs]), dtype)


def _number(value, x):
    return np.asarray(value, x.dtype)


# ------------------------------------------------------------------------------------------------------------ zeta


@slopes(None, lambda t, out, s, q: lax.mul(t, lax.neg(s) * _zeta(s + 1, q)))
def _zeta(s, q):
    one, whole = _number(1, q), lax.eq(s, lax.floor(s))
    below = lax.lt(q, _number(0, q)) & lax.ne(q, lax.floor(q)) & whole
    fraction = jnp.where(below, q - lax.floor(q), q)
    total = lax.zeta(s, jnp.where(lax.gt(fraction, _number(0, q)), fraction, one))
    total = jnp.where(lax.ne(q, q), q, total)
    # lax.ceil(q) - q and not 1 - fraction, which is rounded to 0 just below a whole number
    mirrored = lax.zeta(s, jnp.where(below, lax.ceil(q) - q, one)) - lax.zeta(s, jnp.where(below, one - q, one))
    even = lax.eq(lax.rem(s, _number(2, s)), _number(0, s))
    total = jnp.where(below, total + jnp.where(even, mirrored, -mirrored), total)
    negative, pole = lax.le(q, _number(0, q)), lax.eq(q, lax.floor(q))
    total = jnp.where(negative & ~pole & ~whole, _number(np.nan, q), total)
    total = jnp.where(negative & pole, _number(np.inf, q), total)
    total = jnp.where(lax.eq(s, _number(1, s)), _number(np.inf, q), total)
    return jnp.where(lax.lt(s, _number(1, s)), _number(np.nan, q), total)


def zeta(x, q, /):
    """Return Hurwitz' zeta function, the sum of ``(k + q) ** -x``; the gradient is that of q."""
    x, q = _pair(x, q, float_result=True)
    return _wide(lambda a, b: _zeta(*jnp.broadcast_arrays(lax.stop_gradient(a), b)), x, q)


# -------------------------------------------------------------------------------- the logarithm and its derivatives


def _derivative(n: int, x):
    """Return the n-th derivative of digamma, n > 0."""
    size = math.factorial(n) if n <= 170 else math.inf  # of 171 no float64 holds it
    scaled = lax.mul(_number(size * (1 if n % 2 else -1), x), _zeta(lax.full_like(x, n + 1), x))
    # torch computes the first one in another way, with the limits at both infinities
    limit = jnp.where(lax.gt(x, _number(0, x)), _number(0, x), _number(np.nan, x))
    return jnp.where(jnp.isinf(x), limit, scaled) if n == 1 else scaled


@slopes(lambda t, out, x: lax.mul(t, _wide(lambda v: _derivative(1, v), x)))
def _digamma(x):
    return lax.select_n(lax.eq(x, _number(0, x)), lax.digamma(x), lax.div(lax.full_like(x, -1), x))


@slopes(lambda t, out, x: lax.mul(t, _digamma(x)))
def _lgamma(x):
    return lax.lgamma(x)


def lgamma(x, /):
    """Return log|Γ(x)|."""
    return _lgamma(floats(x))


def digamma(x, /):
    """Return the derivative of lgamma; at 0 it is infinite, with the sign opposite to the zero's."""
    return _digamma(floats(x))


def polygamma(x, /, n: int):
    """Return the n-th derivative of digamma."""
    if n < 0:
        fail("shape", f"polygamma({n}, x)", f"n={n}", "polygamma(n, x) does not support negative n.", "polygamma(0, x)")
    x = floats(x)
    return _digamma(x) if n == 0 else _wide(lambda v: _derivative(n, v), x)


def mvlgamma(x, /, p: int):
    """Return the logarithm of the multivariate gamma function of dimension ``p``; NaN below its domain."""
    if p < 1:
        fail("shape", f"mvlgamma(p={p})", f"p={p}", "p has to be greater than or equal to 1", "p=1")
    x = floats(x)
    total = lax.full_like(x, p * (p - 1) / 4 * math.log(math.pi))
    if p > 64:  # an equation for each would not be compiled in time
        sizes.check_memory(f"mvlgamma(p={p})", [((*x.shape, p), x.dtype)])
        terms = lax.sub(jnp.expand_dims(x, -1), lax.iota(x.dtype, p) / 2)
        return lax.add(total, jnp.sum(_lgamma(terms), -1))
    for j in range(p):
        total = lax.add(total, _lgamma(lax.sub(x, _number(j / 2, x))))
    return total


# -------------------------------------------------------------------------------------------------- incomplete gamma


def igamma(a, x, /):
    """Return the lower regularized incomplete gamma function; the gradient is that of x."""
    a, x = _pair(a, x, float_result=True)
    return _wide(lambda s, y: lax.igamma(*jnp.broadcast_arrays(lax.stop_gradient(s), y)), a, x)


def igammac(a, x, /):
    """Return the upper regularized incomplete gamma function; the gradient is that of x."""
    a, x = _pair(a, x, float_result=True)
    return _wide(lambda s, y: lax.igammac(*jnp.broadcast_arrays(lax.stop_gradient(s), y)), a, x)
