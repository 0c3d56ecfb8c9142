"""Distances between vectors, and vectors limited in length.

Worked case: `cdist` of 3 and 5 points in the plane is a (3, 5) matrix; between two equal points its gradient is 0.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import reduce
from .arithmetic import sub
from .dims import fail, one
from .promote import category


def cdist(x, y, /, p: float = 2.0):
    """Return the p-norm distances of all pairs of ``(..., P, M)`` and ``(..., R, M)`` vectors: ``(..., P, R)``."""
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        rule = "X1 and X2 have at least 2 dims and the same number of columns"
        fail("shape", "cdist(x, y)", f"x {x.shape}, y {y.shape}", rule, "unsqueeze them")
    if category(x.dtype) != 2 or category(y.dtype) != 2 or p < 0:
        seen = f"{x.dtype}, {y.dtype}, p={p}"
        fail("shape", "cdist(x, y)", seen, "cdist only supports floating-point dtypes and p >= 0", "x.float()")
    apart = sub(lax.expand_dims(x, (x.ndim - 1,)), lax.expand_dims(y, (y.ndim - 2,)))
    if p == 0:  # a NaN counts as NaN
        unequal = lax.min(lax.ceil(lax.abs(apart)), np.ones((), apart.dtype))
        return reduce.sum(lax.stop_gradient(unequal), dim=apart.ndim - 1)
    if p == 1:  # the slope at NaN is NaN, that of a norm 0
        return reduce.sum(lax.mul(apart, lax.sign(apart)), dim=apart.ndim - 1)
    return reduce.norm(apart, p=float(p), dim=apart.ndim - 1)


def dist(x, y, /, p: float = 2.0):
    """Return the p-norm of x - y, over all elements."""
    return reduce.norm(sub(x, y), p=float(p))


def renorm(x, /, p: float, dim: int, maxnorm: float):
    """Return x with the slices of a dim scaled down to a p-norm of at most ``maxnorm``."""
    if x.ndim < 2 or p <= 0 or maxnorm < 0:
        rule = "renorm: input needs at least 2 dims, p > 0 and maxnorm >= 0"
        fail("shape", f"renorm(p={p}, dim={dim}, maxnorm={maxnorm})", f"x {x.shape}", rule, "unsqueeze it")
    dim = one(dim, x.ndim, "renorm")
    norm = reduce.norm(x, p=float(p), dim=tuple(d for d in range(x.ndim) if d != dim), keepdim=True)
    limit = np.asarray(maxnorm, norm.dtype)
    factor = limit / (norm + np.asarray(1e-7, norm.dtype))
    return x * jnp.where(norm > limit, factor, jnp.ones((), norm.dtype)).astype(x.dtype)
