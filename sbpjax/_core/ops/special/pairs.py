"""Integer pairs (`gcd`, `lcm`) and parts of floats (`nextafter`, `frexp`, `ldexp`, `signbit`).

Worked case: ``frexp`` of 10 is the mantissa 0.625 and the exponent 4, since 10 = 0.625 · 2⁴.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..arithmetic import _pair
from ..dims import fail
from ..elementwise import exp2
from ..promote import as_arrays, broadcast_to, cast, category, compute_dtype, floats, is_float, joint_shape, promote
from ..slopes import slopes


def _integers(op: str, x, y):
    x, y = promote(x, y)
    if category(x.dtype) != 1:
        fail("type", f"{op}(x, y)", f"tensors of {x.dtype}", f"{op} is defined for integers only", "x.long()")
    shape = joint_shape(np.shape(x), np.shape(y))
    return broadcast_to(x, shape), broadcast_to(y, shape)


def gcd(x, y, /):
    """Return the greatest common divisors, never negative."""
    return jnp.gcd(*_integers("gcd", x, y))


def lcm(x, y, /):
    """Return the least common multiples, never negative."""
    x, y = _integers("lcm", x, y)
    divisor = jnp.gcd(x, y)
    one = jnp.ones((), x.dtype)
    return jnp.abs(jnp.where(divisor == 0, divisor, x // jnp.where(divisor == 0, one, divisor) * y))


def nextafter(x, y, /):
    """Return the floats next to x in the direction of y; the gradient is that of x alone."""
    x, y = _pair(x, y)
    if not is_float(x.dtype):
        fail(
            "type", "nextafter(x, y)", f"tensors of {x.dtype}", "nextafter is not implemented for integers", "x.float()"
        )
    shape = joint_shape(np.shape(x), np.shape(y))
    return _nextafter(broadcast_to(x, shape), broadcast_to(y, shape))


@slopes(lambda t, out, x, y: t, lambda t, out, x, y: lax.full_like(t, 0))
def _nextafter(x, y):
    return lax.nextafter(x, y)


def signbit(x, /):
    """Return where the sign is minus, that of -0.0 too."""
    (x,) = as_arrays(x)
    if is_float(x.dtype):
        return jnp.signbit(x)
    return lax.lt(x, np.zeros((), x.dtype)) if category(x.dtype) == 1 else lax.full(x.shape, False)


def ldexp(x, y, /):
    """Return ``x * 2**y``; integers y do not change the dtype of floats x."""
    if category(x.dtype) >= 2 and category(y.dtype) == 0:
        fail("type", "ldexp(x, y)", f"exponents of {y.dtype}", "ldexp is not defined for booleans", "y.long()")
    y = cast(y, x.dtype) if category(x.dtype) == 2 > category(y.dtype) else floats(y)
    return lax.mul(*_pair(x, exp2(y), float_result=True))


def frexp(x, /):
    """Return mantissas, 0.5 or more and less than 1 in size, and int32 exponents."""
    if category(x.dtype) != 2:
        fail("shape", "frexp(x)", f"a tensor of {x.dtype}", "frexp() only supports floating-point dtypes", "x.float()")
    wide = cast(x, compute_dtype(x.dtype))
    mantissa, exponent = jnp.frexp(lax.stop_gradient(wide))
    finite = lax.is_finite(wide)
    exponent = jnp.where(finite, exponent, 0).astype(np.int32)
    scaled = wide * jnp.where(
        wide == 0, jnp.ones((), wide.dtype), lax.stop_gradient(mantissa / jnp.where(wide == 0, 1, wide))
    )
    return cast(jnp.where(finite, scaled, wide), x.dtype), exponent
