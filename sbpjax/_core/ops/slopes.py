"""Custom derivatives of elementwise functions, where torch's differ from those of JAX's formula.

A function and the formula that computes it agree on values, yet not on gradients at the corners: `maximum` of NaN and 1
hands its gradient to both, and `lerp` computed from the nearer end would mix a NaN of the branch not taken into it.
So such a function names one rule per array: the part of the tangent that comes from this array's tangent ``t``. Worked
case::

    @slopes(lambda t, out, x, y: lax.mul(t, y), lambda t, out, x, y: lax.mul(t, x))
    def product(x, y):
        return lax.mul(x, y)

A rule is linear in ``t`` and made of differentiable parts, so second derivatives follow. The forward stays one call of
the plain function. Of an elementwise function a tangent comes to its rule in the shape of the result: a backward
multiplies first and then sums over the broadcast dims, as torch does, and infinities of both signs make NaN.
"""

from __future__ import annotations

import functools

import jax
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from .promote import broadcast_to, joint_shape


def slopes(*rules):
    """Return a decorator that gives a function of arrays its derivatives.

    Args:
        rules: per array ``rule(t, out, *arrays)``, its part of the result's tangent, or None where that is zero;
            ``t`` has the result's shape if that is the shape to which the arrays broadcast.
    """

    def decorate(function):
        sloped = jax.custom_jvp(function)

        def jvp(primals, tangents):
            out = sloped(*primals)
            whole = _elementwise(primals, out.shape)
            parts = [
                broadcast_to(rule(broadcast_to(t, out.shape) if whole else t, out, *primals), out.shape)
                for rule, t in zip(rules, tangents, strict=True)
                if rule is not None and not isinstance(t, SymbolicZero)
            ]
            return out, functools.reduce(lax.add, parts) if parts else lax.full_like(out, 0)

        sloped.defjvp(jvp, symbolic_zeros=True)
        return sloped

    return decorate


def _elementwise(arrays, shape) -> bool:
    """Return whether arrays broadcast to just this shape."""
    try:
        return joint_shape(*map(np.shape, arrays)) == shape
    except ValueError:
        return False


def zero_unless(t, condition):
    """Return a tangent or slope where a condition holds, and 0 elsewhere.

    A slope that may be NaN is masked before it meets the tangent: a backward runs the steps in reverse, and a mask
    after the product would give 0 · NaN.
    """
    shape = joint_shape(np.shape(t), np.shape(condition))
    condition = condition if np.ndim(condition) == 0 else broadcast_to(condition, shape)
    return lax.select_n(condition, broadcast_to(np.zeros((), t.dtype), shape), broadcast_to(t, shape))


def zero_where(t, condition):
    """Return a tangent or slope where a condition does not hold, and 0 where it does."""
    return zero_unless(t, lax.bitwise_not(condition))
