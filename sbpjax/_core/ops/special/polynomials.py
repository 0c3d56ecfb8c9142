"""Orthogonal polynomials of an order given per element: Chebyshev, Hermite, Laguerre, Legendre.

Each family is a recurrence ``p[k + 1] = (a x + b) p[k] - c p[k - 1]`` from ``p[0] = 1``. Worked case: Chebyshev's T has
p[1] = x, a = 2, c = 1, so T of order 3 at 0.5 is -1. The orders are a tensor: the loop runs to the largest of them, and
an element keeps its value from its own order on. A negative order gives 0.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..arithmetic import _pair


def _chebyshev(first):
    return lambda x: first(x), lambda x, k: (2 * x, 1.0)


# Name → (p[1] of x, (factor of p[k], factor of p[k - 1]) of x and k).
FAMILIES = {
    "chebyshev_polynomial_t": _chebyshev(lambda x: x),
    "chebyshev_polynomial_u": _chebyshev(lambda x: 2 * x),
    "chebyshev_polynomial_v": _chebyshev(lambda x: 2 * x - 1),
    "chebyshev_polynomial_w": _chebyshev(lambda x: 2 * x + 1),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, k: (2 * x, 2 * k)),
    "hermite_polynomial_he": (lambda x: x, lambda x, k: (x, k)),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda x, k: ((2 * k + 1 - x) / (k + 1), k / (k + 1))),
    "legendre_polynomial_p": (lambda x: x, lambda x, k: ((2 * k + 1) * x / (k + 1), k / (k + 1))),
}
_SHIFTED = ("t", "u", "v", "w")


def polynomial(x, n, /, family: str):
    """Return a polynomial's value.

    Args:
        x: where; any shape, integers become floats.
        n: the order, broadcast with x; its fraction is dropped.
        family: a name of `FAMILIES`, or one of Chebyshev's with ``shifted_`` before it, which takes ``2 x - 1``.
    """
    x, n = jnp.broadcast_arrays(*_pair(x, n, float_result=True))
    wide = lax.convert_element_type(x, np.float64)
    wide = 2 * wide - 1 if family.startswith("shifted_") else wide
    value = _value(wide, lax.convert_element_type(n, np.int64), family.removeprefix("shifted_"))
    return lax.convert_element_type(value, x.dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _value(x, order, family: str):
    start, factors = FAMILIES[family]

    def recur(k, state):
        before, now = state
        a, c = factors(x, lax.convert_element_type(k, np.float64))
        after = a * now - c * before
        more = order > k
        return jnp.where(more, now, before), jnp.where(more, after, now)

    one = jnp.ones_like(x)
    _, value = lax.fori_loop(np.int64(1), jnp.max(order, initial=1), recur, (one, start(x)))
    return jnp.where(order < 0, 0.0, jnp.where(order == 0, one, value))


@_value.defjvp
def _value_jvp(family: str, primals, tangents):
    """Return the tangent; a loop of unknown length has no reverse mode, but its slope is found on the way."""
    x, order = primals
    value, slope = jax.jvp(lambda v: _value.fun(v, order, family), (x,), (jnp.ones_like(x),))
    return value, slope * tangents[0]


def _make_family_op(family: str):
    def evaluate(x, n, /):
        return polynomial(x, n, family=family)

    evaluate.__name__ = evaluate.__qualname__ = family
    evaluate.__doc__ = f"Return the polynomial of `polynomial(x, n, family={family!r})`."
    return evaluate


NAMES = (*FAMILIES, *(f"shifted_chebyshev_polynomial_{kind}" for kind in _SHIFTED))
globals().update({name: _make_family_op(name) for name in NAMES})
