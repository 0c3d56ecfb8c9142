"""Distances between vectors (`cdist`, `pdist`, `dist`), and `renorm`.

Worked case: `cdist` of 3 and 5 points in the plane is a (3, 5) matrix; between two equal points its gradient is 0.
With ``p=inf`` every coordinate with the largest difference gets the whole gradient, as in torch.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..arithmetic import sub
from ..dims import fail, one
from ..promote import broadcast_to, category
from ..reductions import reduce
from ..slopes import slopes, zero_where


def cdist(x, y, /, p: float = 2.0):
    """Return the p-norm distances of all pairs of ``(..., P, M)`` and ``(..., R, M)`` vectors: ``(..., P, R)``."""
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        rule = "X1 and X2 have at least 2 dims and the same number of columns"
        fail("shape", "cdist(x, y)", f"x {x.shape}, y {y.shape}", rule, "unsqueeze them")
    if category(x.dtype) != 2 or category(y.dtype) != 2 or p < 0:
        seen = f"{x.dtype}, {y.dtype}, p={p}"
        fail("shape", "cdist(x, y)", seen, "cdist only supports floating-point dtypes and p >= 0", "x.float()")
    return _length(sub(lax.expand_dims(x, (x.ndim - 1,)), lax.expand_dims(y, (y.ndim - 2,))), float(p))


def pdist(x, /, p: float = 2.0):
    """Return the p-norms of the differences of all pairs of rows of ``(N, M)``, the pairs in row-major order."""
    if x.ndim != 2 or p < 0:
        fail("shape", f"pdist(p={p})", f"x {x.shape}", "x has 2 dims and p is not negative", "x.reshape(N, M)")
    first, second = np.triu_indices(x.shape[0], 1)
    return _length(lax.sub(jnp.take(x, first, axis=0), jnp.take(x, second, axis=0)), float(p))


def _length(apart, p: float):
    """Return the p-norms of the vectors along the last dim."""
    return _length_of(p)(apart) if apart.shape[-1] else lax.full(apart.shape[:-1], 0, apart.dtype)


@functools.cache
def _length_of(p: float):
    """Return the function from differences to distances of an order, with the slopes torch writes down for it."""

    @slopes(lambda t, out, apart: lax.reduce_sum(lax.mul(t, _slope(out, apart)), (apart.ndim - 1,)))
    def length(apart):
        last, size = (apart.ndim - 1,), lax.abs(apart)
        if p == 0:  # a NaN counts as NaN
            return lax.reduce_sum(lax.min(lax.ceil(size), lax.full_like(size, 1)), last)
        if p == 1:
            return lax.reduce_sum(size, last)
        if p == 2:
            return lax.sqrt(lax.reduce_sum(lax.square(apart), last))
        if p == math.inf:
            return lax.reduce_max(size, last)
        return lax.pow(lax.reduce_sum(lax.pow(size, np.asarray(p, size.dtype)), last), np.asarray(1 / p, size.dtype))

    def _slope(out, apart):
        size, sign = lax.abs(apart), lax.sign(apart)
        whole = broadcast_to(lax.expand_dims(out, (out.ndim,)), apart.shape)
        if p == 0:
            return lax.full_like(apart, 0)
        if p == 1:
            return sign
        if p == math.inf:
            short = lax.min(lax.ceil(lax.abs(lax.sub(size, whole))), lax.full_like(size, 1))
            return lax.mul(sign, lax.sub(lax.full_like(size, 1), short))
        less = np.asarray(p - 1, size.dtype)
        if p == 2:
            slope = lax.div(apart, whole)
        elif p < 2:
            slope = lax.div(lax.mul(sign, lax.pow(size, less)), lax.pow(whole, less))
        else:
            slope = lax.div(lax.mul(apart, lax.pow(size, np.asarray(p - 2, size.dtype))), lax.pow(whole, less))
        slope = zero_where(slope, lax.eq(whole, lax.full_like(whole, 0)))
        return zero_where(slope, lax.eq(apart, lax.full_like(apart, 0))) if p < 1 else slope

    return length


def dist(x, y, /, p: float = 2.0):
    """Return the p-norm of x - y, over all elements."""
    return reduce.norm(sub(x, y), p=float(p))


def renorm(x, /, p: float, dim: int, maxnorm: float):
    """Return x with the slices of a dim scaled down to a p-norm of at most ``maxnorm``."""
    if x.ndim < 2 or p <= 0 or maxnorm < 0:
        rule = "renorm: input needs at least 2 dims, p > 0 and maxnorm >= 0"
        fail("shape", f"renorm(p={p}, dim={dim}, maxnorm={maxnorm})", f"x {x.shape}", rule, "unsqueeze it")
    dim = one(dim, x.ndim, "renorm")
    others = tuple(d for d in range(x.ndim) if d != dim)
    norm = reduce.norm(x, p=float(p), dim=others, keepdim=True)
    long = norm > np.asarray(maxnorm, norm.dtype)
    kept = reduce.norm(jnp.where(long, x, jnp.ones((), x.dtype)), p=float(p), dim=others, keepdim=True)
    factor = np.asarray(maxnorm, norm.dtype) / (kept + np.asarray(1e-7, norm.dtype))  # no slope of a NaN is mixed in
    return x * jnp.where(long, factor, jnp.ones((), norm.dtype)).astype(x.dtype)
