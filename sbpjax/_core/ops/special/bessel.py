"""Bessel functions of orders 0 and 1, Airy's function and erfcx, by quadrature and expansions.

A periodic integrand makes the trapezoidal rule exact to rounding, so ``J0(x)``, the mean of ``cos(x sin t)`` over a
circle, is a sum over 128 angles for every x up to 25; beyond that Hankel's expansion takes over. The same angles
with other weights give Y (by Neumann's series of J), and the half line gives K. Everything is computed in float64.

Sources: NIST Digital Library of Mathematical Functions 9.4, 9.5.8, 10.8, 10.9, 10.17, 10.23, 10.31, 10.32, 7.12.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from sbpjax._core.runtime.optional_packages import LazyModule

from ..promote import cast, floats

scipy_special = LazyModule("scipy.special")


_FAR = 25.0  # from here on Hankel's expansion is exact to rounding
_ANGLES = (np.arange(128) + 0.5) * (2 * np.pi / 128)
_GAMMA = float(np.euler_gamma)


def _in_double(function, x):
    """Compute in float64 and return the result in the dtype of ``x``, which is a float."""
    x = floats(x)
    return cast(function(lax.convert_element_type(x, np.float64)), x.dtype)


def _mean(x, values):
    """Return the mean over the angles of ``values``, which maps ``(..., 1)`` to ``(..., 128)``."""
    return jnp.sum(values(lax.expand_dims(x, (x.ndim,))), axis=-1) / len(_ANGLES)


def _near_j(x, order: int):
    return _mean(x, lambda v: jnp.cos(order * _ANGLES - v * np.sin(_ANGLES)))


@functools.cache
def _neumann(order: int) -> np.ndarray:
    """Return per angle the sum of Neumann's series of Y: the coefficient of each J times its kernel."""
    k = np.arange(1, 32)[:, None]  # up to J of order 63: more would be aliased by 128 angles
    if order == 0:
        return (-((-1.0) ** k) / k * np.cos(2 * k * _ANGLES)).sum(0)
    return (-((-1.0) ** k) * (2 * k + 1) / (k * (k + 1)) * np.sin((2 * k + 1) * _ANGLES)).sum(0)


def _near_y(x, order: int):
    logarithm = jnp.log(x / 2) + _GAMMA
    if order == 0:
        series = _mean(x, lambda v: jnp.cos(v * np.sin(_ANGLES)) * _neumann(0))
        return 2 / np.pi * logarithm * _near_j(x, 0) + 4 / np.pi * series
    series = _mean(x, lambda v: jnp.sin(v * np.sin(_ANGLES)) * _neumann(1))
    return 2 / np.pi * ((logarithm - 1) * _near_j(x, 1) - _near_j(x, 0) / x + series)


def _hankel(order: int) -> np.ndarray:
    """Return the coefficients of Hankel's expansion in 1 / x."""
    found = [1.0]
    for k in range(1, 20):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return np.asarray(found)


def _polynomial(coefficients, v):
    total = jnp.full_like(v, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * v + c
    return total


def _far(x, order: int, second: bool):
    """Return J or Y of large x by Hankel's expansion."""
    c = _hankel(order)
    square = -1 / (x * x)
    p, q = _polynomial(c[0::2], square), _polynomial(c[1::2], square) / x
    # The phase is x - π/4 or x - 3π/4; sums of sin and cos of x itself lose nothing.
    a, b = jnp.cos(x) + jnp.sin(x), jnp.sin(x) - jnp.cos(x)
    cosine, sine = (a, b) if order == 0 else (b, -a)
    return jnp.sqrt(1 / (np.pi * x)) * (p * sine + q * cosine if second else p * cosine - q * sine)


def _both(x, order: int, near, second: bool):
    far = x > _FAR
    value = jnp.where(far, _far(jnp.where(far, x, _FAR), order, second), near(jnp.where(far, 1.0, x), order))
    return jnp.where(jnp.isinf(x), 0.0, value)


def bessel_j0(x, /):
    """Return the Bessel function of the first kind of order 0."""
    return _in_double(lambda v: _both(jnp.abs(v), 0, _near_j, False), x)


def bessel_j1(x, /):
    """Return the Bessel function of the first kind of order 1."""

    def odd(v):
        tiny = v / 2 * (1 - v * v / 8 * (1 - v * v / 24))
        return jnp.where(jnp.abs(v) < 1e-3, tiny, jnp.sign(v) * _both(jnp.abs(v), 1, _near_j, False))

    return _in_double(odd, x)


def _second_kind(v, order: int):
    inside = jnp.where(v > 0, v, 1.0)
    return jnp.where(v > 0, _both(inside, order, _near_y, True), jnp.where(v == 0, -np.inf, np.nan))


def bessel_y0(x, /):
    """Return the Bessel function of the second kind of order 0: minus infinity at 0, NaN below."""
    return _in_double(lambda v: _second_kind(v, 0), x)


def bessel_y1(x, /):
    """Return the Bessel function of the second kind of order 1: minus infinity at 0, NaN below."""
    return _in_double(lambda v: _second_kind(v, 1), x)


# ------------------------------------------------------------------------------------------- modified, second kind


def _small_k(x, order: int):
    """Return K of x up to 2 by its power series."""
    quarter = x * x / 4
    digamma = [-_GAMMA]
    for k in range(1, 20):
        digamma.append(digamma[-1] + 1 / k)
    if order == 0:
        c = [1 / math.factorial(k) ** 2 for k in range(18)]
        return -jnp.log(x / 2) * _polynomial(c, quarter) + _polynomial([a * b for a, b in zip(c, digamma)], quarter)
    c = [1 / (math.factorial(k) * math.factorial(k + 1)) for k in range(18)]
    mixed = [a * (digamma[k] + digamma[k + 1]) / 2 for k, a in enumerate(c)]
    return 1 / x + x / 2 * (jnp.log(x / 2) * _polynomial(c, quarter) - _polynomial(mixed, quarter))


def _large_k(x, order: int):
    """Return ``exp(x) K(x)`` of x from 2 on: the integral of ``exp(-x (cosh t - 1)) cosh(order t)``."""
    # With s = sqrt(x) sinh(t / 2) the integrand is exp(-2 s²) times something smooth, of the same width for every x.
    s = np.arange(-40, 41) * 0.11
    v = lax.expand_dims(x, (x.ndim,))
    root = jnp.sqrt(1 + s * s / v)
    weight = np.exp(-2 * s * s) / root * (1 + 2 * s * s / v if order else 1.0)
    return jnp.sum(weight, axis=-1) * 0.11 / jnp.sqrt(x)


def _modified_k(v, order: int, scaled: bool):
    inside = jnp.where(v > 0, v, 1.0)
    small = inside <= 2
    low = _small_k(jnp.where(small, inside, 1.0), order)
    high = _large_k(jnp.where(small | jnp.isinf(inside), 2.0, inside), order)
    low, high = (low * jnp.exp(jnp.minimum(inside, 2.0)), high) if scaled else (low, high * jnp.exp(-inside))
    value = jnp.where(jnp.isinf(inside), 0.0, jnp.where(small, low, high))
    return jnp.where(v > 0, value, jnp.where(v == 0, np.inf, np.nan))


def modified_bessel_k0(x, /):
    """Return the modified Bessel function of the second kind of order 0: infinity at 0, NaN below."""
    return _in_double(lambda v: _modified_k(v, 0, False), x)


def modified_bessel_k1(x, /):
    """Return the modified Bessel function of the second kind of order 1: infinity at 0, NaN below."""
    return _in_double(lambda v: _modified_k(v, 1, False), x)


def scaled_modified_bessel_k0(x, /):
    """Return ``exp(x) * modified_bessel_k0(x)``."""
    return _in_double(lambda v: _modified_k(v, 0, True), x)


def scaled_modified_bessel_k1(x, /):
    """Return ``exp(x) * modified_bessel_k1(x)``."""
    return _in_double(lambda v: _modified_k(v, 1, True), x)


# --------------------------------------------------------------------------------------------------- Airy, erfcx


@functools.cache
def _laguerre() -> tuple[np.ndarray, np.ndarray]:
    return scipy_special.roots_genlaguerre(40, -1 / 6)


def _airy_sum(zeta):
    """Return the integral of ``(2 + t / zeta) ** (-1/6) t ** (-1/6) exp(-t)`` over t, for complex zeta too."""
    nodes, weights = _laguerre()
    inner = 2 + nodes / lax.expand_dims(zeta, (zeta.ndim,))
    return jnp.sum(weights * jnp.exp(jnp.log(inner) / -6), axis=-1)


_AIRY_NEAR = 2.0
_AIRY_SCALE = 1 / (math.sqrt(math.pi) * 48 ** (1 / 6) * math.gamma(5 / 6))


def _airy(x):
    near = jnp.where(jnp.abs(x) <= _AIRY_NEAR, x, 0.0)
    cube = near**3
    f, g = [1.0], [1.0]
    for k in range(1, 16):
        f.append(f[-1] / ((3 * k - 1) * 3 * k))
        g.append(g[-1] / (3 * k * (3 * k + 1)))
    at_0 = 3 ** (-2 / 3) / math.gamma(2 / 3), 3 ** (-1 / 3) / math.gamma(1 / 3)
    series = at_0[0] * _polynomial(f, cube) - at_0[1] * near * _polynomial(g, cube)
    size = jnp.where(jnp.abs(x) > _AIRY_NEAR, jnp.abs(x), 1.0)
    zeta = 2 / 3 * size * jnp.sqrt(size)
    decaying = _AIRY_SCALE * jnp.exp(-zeta) * zeta ** (-1 / 6) * _airy_sum(zeta)
    # Ai(-x) is twice the real part of e^{iπ/3} Ai(x e^{iπ/3}), whose zeta is on the imaginary axis.
    turned = lax.complex(jnp.zeros_like(zeta), zeta)
    phase = jnp.exp(-turned + 1j * np.pi / 4)
    waving = 2 * _AIRY_SCALE * zeta ** (-1 / 6) * jnp.real(phase * _airy_sum(turned))
    value = jnp.where(jnp.abs(x) <= _AIRY_NEAR, series, jnp.where(x > 0, decaying, waving))
    return jnp.where(jnp.isfinite(x), value, np.nan)


def airy_ai(x, /):
    """Return Airy's function Ai; NaN at infinity, as torch does."""
    return _in_double(_airy, x)


def erfcx(x, /):
    """Return ``exp(x * x) * erfc(x)``, without overflow for large x."""

    def scale(v):
        far = v > 8
        near = jnp.where(far, 0.0, v)
        large = jnp.where(far, v, 8.0)
        c = [1.0]
        for k in range(1, 24):
            c.append(-c[-1] * (2 * k - 1) / 2)
        tail = _polynomial(c, 1 / (large * large)) / (large * math.sqrt(math.pi))
        return jnp.where(far, tail, jnp.exp(near * near) * lax.erfc(near))

    return _in_double(scale, x)
