"""Products and cumulative products with torch's gradients at zeros and infinities.

The slope of a product at one factor is the product of the others. Where all are finite that is product / factor, and at
the only zero the product of the rest. Torch divides whenever the whole tensor has no zero, so that an infinity itself
gets inf / inf; with a zero anywhere it multiplies the others. Worked case: of ``[2, inf]`` the slopes are
``[inf, nan]``, of the rows ``[[2, inf], [0, 1]]`` they are ``[[inf, 2], [1, 0]]``.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import restore_dims
from ..promote import broadcast_to, cast
from ..slopes import zero_unless, zero_where


def _same(condition, axes: tuple[int, ...], shape):
    """Return whether a condition holds somewhere along axes, at every place along them."""
    return broadcast_to(restore_dims(lax.reduce_or(condition, axes), axes, True), shape)


def _has_nonfinite(x, axes: tuple[int, ...]):
    """Return where a NaN or an infinity is among the factors; nowhere for complex numbers."""
    if x.dtype.kind == "c":
        return None
    return _same(lax.bitwise_not(lax.is_finite(x)), axes, x.shape)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def product(x, axes: tuple[int, ...]):
    """Return the product of floats over axes; its gradient is right with zeros too."""
    return lax.reduce_prod(x, axes)


@product.defjvp
def _product_jvp(axes, primals, tangents):
    # JAX's own rule halves the dim log(n) times by slices; this one keeps every dim whole.
    (x,), (t,) = primals, tangents
    wild = _has_nonfinite(x, axes)
    others = _others(x if wild is None else zero_where(x, wild), axes)
    if wild is not None:
        others = lax.select_n(wild, others, _nonfinite_others(lax.stop_gradient(x), axes))
    return product(x, axes), lax.reduce_sum(lax.mul(t, others), axes)


def _others(x, axes: tuple[int, ...]):
    """Return at each factor the product of the others, of finite ones: prod / x without zeros, times the other zero.

    A single other zero stays a factor, so that the slope's slope is right as well.
    """
    zero, nothing, one = lax.eq(x, np.zeros((), x.dtype)), lax.full_like(x, 0), lax.full_like(x, 1)
    safe = lax.select_n(zero, x, one)
    rest = lax.div(restore_dims(product(safe, axes), axes, True), safe)
    own, count = lax.select_n(zero, nothing, x), cast(zero, np.int32)
    other = lax.sub(restore_dims(lax.reduce_sum(own, axes), axes, True), own)
    zeros = lax.sub(restore_dims(lax.reduce_sum(count, axes), axes, True), count)
    factor = lax.select_n(lax.eq(zeros, np.int32(1)), nothing, other)
    return lax.mul(rest, lax.select_n(lax.eq(zeros, np.int32(0)), factor, one))


def _nonfinite_others(x, axes: tuple[int, ...]):
    """Return at each factor torch's product of the others, with NaN and infinities among them."""
    every = tuple(range(x.ndim))
    zero, infinite, nan = lax.eq(x, np.zeros((), x.dtype)), lax.eq(lax.abs(x), lax.full_like(x, np.inf)), lax.ne(x, x)
    tame = lax.select_n(infinite, lax.select_n(lax.bitwise_or(zero, nan), x, lax.full_like(x, 1)), lax.sign(x))
    others = lax.div(restore_dims(lax.reduce_prod(tame, axes), axes, True), tame)
    for hit, value in ((zero, 0.0), (infinite, np.inf), (nan, np.nan)):
        own = cast(hit, np.int32)
        rest = lax.sub(restore_dims(lax.reduce_sum(own, axes), axes, True), own)
        none = lax.eq(rest, np.int32(0))
        others = lax.mul(others, lax.select_n(none, lax.full_like(x, value), lax.full_like(x, 1)))
    zeros = lax.reduce_sum(cast(zero, np.int32), every)
    divided = lax.div(restore_dims(lax.reduce_prod(x, axes), axes, True), x)
    found = lax.select_n(broadcast_to(lax.eq(zeros, np.int32(0)), x.shape), others, divided)
    if len(axes) < x.ndim:
        return found
    return zero_where(found, lax.gt(zeros, np.int32(1)))  # the product of the whole tensor is known to have no slope


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def running_product(x, dim: int):
    """Return the running product of floats along a dim."""
    return lax.cumprod(x, dim)


@running_product.defjvp
def _running_jvp(dim, primals, tangents):
    (x,), (t,) = primals, tangents
    wild = _has_nonfinite(x, (dim,)) if x.shape[dim] > 1 else None
    tame = x if wild is None else zero_where(x, wild)
    tangent = jax.jvp(functools.partial(lax.cumprod, axis=dim), (tame,), (t,))[1]
    if wild is not None:
        one = lax.full_like(x, 1)
        tangent = lax.select_n(wild, tangent, _nonfinite_tangent(lax.stop_gradient(jnp.where(wild, x, one)), t, dim))
    return running_product(x, dim), tangent


def _nonfinite_tangent(x, t, dim: int):
    """Return the tangent of the running product whose transpose is torch's gradient.

    Factors before the first zero share in the products before it, product / factor each; the first zero in those
    before the second, as the product of the others; later factors in none.
    """
    out = lax.cumprod(x, dim)
    zeros = lax.cumsum(cast(lax.eq(x, np.zeros((), x.dtype)), np.int32), dim)
    before, between = lax.eq(zeros, np.int32(0)), lax.eq(zeros, np.int32(1))
    early = lax.mul(zero_unless(lax.cumsum(lax.div(zero_unless(t, before), x), dim), before), out)
    first = lax.bitwise_and(between, lax.eq(x, np.zeros((), x.dtype)))
    one = lax.full_like(x, 1)
    behind = lax.cumprod(lax.select_n(lax.bitwise_and(between, lax.bitwise_not(first)), one, x), dim)
    ahead = restore_dims(lax.reduce_prod(lax.select_n(before, one, x), (dim,)), (dim,), True)
    at_zero = lax.mul(restore_dims(lax.reduce_sum(zero_unless(t, first), (dim,)), (dim,), True), ahead)
    return lax.add(early, zero_unless(lax.mul(broadcast_to(at_zero, x.shape), behind), between))
