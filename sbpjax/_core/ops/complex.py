"""Complex-number ops: conjugate, angle, sign, and construction from parts or polar form.

Worked case: the angle of ``[-1.0, 0.0, -0.0]`` is ``[π, 0, 0]``: of a real number it is π where it is negative.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from .dims import fail
from .promote import DEFAULT_FLOAT, align, broadcast_to, cast, category, joint_shape
from .slopes import slopes


def conj(x, /):
    """Return the complex conjugate; real numbers stay."""
    return lax.conj(x) if category(x.dtype) == 3 else x


def angle(x, /):
    """Return the angle to the positive real axis: of real numbers 0 or π, and NaN of NaN."""
    if category(x.dtype) == 3:
        return _angle_of(lax.real(x), lax.imag(x))
    x = x if category(x.dtype) == 2 else cast(x, DEFAULT_FLOAT)
    still = lax.stop_gradient(x)
    flat = jnp.where(still < 0, np.asarray(np.pi, x.dtype), jnp.zeros((), x.dtype))
    return jnp.where(still != still, still, flat)


def _angle_of(re, im):
    zero = lax.bitwise_and(lax.eq(re, np.zeros((), re.dtype)), lax.eq(im, np.zeros((), im.dtype)))
    safe = lax.select_n(zero, re, jnp.where(jnp.signbit(re), -jnp.ones((), re.dtype), jnp.ones((), re.dtype)))
    im = lax.select_n(zero, im, lax.stop_gradient(im))  # at 0 the gradient is 0, as in torch
    return lax.atan2(im, safe)


def sgn(x, /):
    """Return x / |x|, 0 at 0; of real numbers the sign."""
    if category(x.dtype) == 3:
        zero = lax.eq(x, np.zeros((), x.dtype))
        safe = lax.select_n(zero, x, lax.full_like(x, 1))
        return lax.select_n(zero, lax.div(safe, lax.convert_element_type(lax.abs(safe), x.dtype)), lax.full_like(x, 0))
    return x if x.dtype == np.bool_ else jnp.where(x != x, jnp.zeros((), x.dtype), lax.sign(x))


def complex(real, imag, /):
    """Return real + i imag; both are float32 or float64."""
    if real.dtype != imag.dtype or real.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        rule = "Expected both inputs to be Float or Double tensors, of one dtype"
        fail("shape", "complex(real, imag)", f"{real.dtype} and {imag.dtype}", rule, "imag.to(real.dtype)")
    shape = joint_shape(real.shape, imag.shape)
    real, imag = align(real, imag)
    return lax.complex(jnp.broadcast_to(real, shape), jnp.broadcast_to(imag, shape))


def polar(abs, angle, /):
    """Return abs * e^(i angle); both are float32 or float64.

    The gradient of ``abs`` is along the result's direction, as in torch: 0 at 0, NaN at infinity.
    """
    if abs.dtype != angle.dtype or abs.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        rule = "Expected both inputs to be Float or Double tensors, of one dtype"
        fail("shape", "polar(abs, angle)", f"{abs.dtype} and {angle.dtype}", rule, "angle.to(abs.dtype)")
    shape = joint_shape(abs.shape, angle.shape)
    return _polar(broadcast_to(abs, shape), broadcast_to(angle, shape))


def _slope_of_size(t, out, abs, angle):
    return lax.mul(lax.convert_element_type(t, out.dtype), sgn(out))


def _slope_of_angle(t, out, abs, angle):
    return lax.mul(lax.convert_element_type(t, out.dtype), lax.mul(out, np.asarray(1j, out.dtype)))


@slopes(_slope_of_size, _slope_of_angle)
def _polar(abs, angle):
    return lax.complex(lax.mul(abs, lax.cos(angle)), lax.mul(abs, lax.sin(angle)))


def isreal(x, /):
    """Return where the imaginary part is 0.

    Returns:
        Bools in the shape of ``x``. A split of a complex tensor stays.
    """
    if category(x.dtype) == 3:
        return lax.eq(lax.imag(x), np.zeros((), lax.imag(x).dtype))
    return jnp.ones(x.shape, np.bool_)
