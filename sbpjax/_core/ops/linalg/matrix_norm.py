"""Norms of matrices and condition numbers.

Worked case: of ``[[1, 2], [3, 4]]`` the norm ``1`` is 6 (the largest column), ``inf`` is 7 (the largest row),
``"fro"`` is 5.477 (all elements), ``2`` is 5.465 (the largest singular value), ``"nuc"`` is their sum.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail, one
from ..promote import cast, is_float
from ..reductions import reduce
from .decompose import check_matrices, svdvals
from .solve import inv_ex

ORDERS = ("fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2)


def matrix_norm(x, /, ord="fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False, dtype=None):
    """Return a norm of matrices.

    Args:
        x: at least 2 dims.
        ord: ``"fro"``, ``"nuc"``, ``inf``, ``-inf``, ``1``, ``-1``, ``2`` or ``-2``.
        dim: the dims of the matrices.
        keepdim: keep them with size 1.
        dtype: compute in this dtype.
    """
    if x.ndim < 2:
        fail("shape", "linalg.matrix_norm(A)", f"A {x.shape}", "A must have at least 2 dimensions", "vector_norm")
    if ord not in ORDERS:
        fail("shape", f"linalg.matrix_norm(ord={ord!r})", f"ord={ord!r}", f"ord is one of {ORDERS}", 'ord="fro"')
    if not isinstance(dim, tuple) or len(dim) != 2:
        fail("shape", f"linalg.matrix_norm(dim={dim})", f"A {x.shape}", "dim must be a 2-tuple", "dim=(-2, -1)")
    rows, columns = (one(d, x.ndim, "matrix_norm") for d in dim)
    if rows == columns:
        fail("shape", f"linalg.matrix_norm(dim={dim})", f"A {x.shape}", "dims must be different", "dim=(-2, -1)")
    x = cast(x, dtype) if dtype is not None else x
    if not is_float(x.dtype):
        rule = "Expected a floating point or complex tensor as input"
        fail("shape", "linalg.matrix_norm(A)", f"a tensor of {x.dtype}", rule, "A.float()")
    if ord == "fro":
        return reduce.norm(x, p=2.0, dim=(rows, columns), keepdim=keepdim)
    if ord in ("nuc", 2, -2):
        s = svdvals(jnp.moveaxis(x, (rows, columns), (-2, -1)))
        last = s.ndim - 1
        value = reduce.sum(s, dim=last) if ord == "nuc" else (reduce.amax if ord == 2 else reduce.amin)(s, dim=last)
    else:
        summed, searched = (columns, rows) if abs(ord) == math.inf else (rows, columns)
        size = reduce.norm(x, p=1.0, dim=summed, keepdim=True)
        value = (reduce.amax if ord > 0 else reduce.amin)(size, dim=(summed, searched))
    return lax.expand_dims(value, sorted((rows, columns))) if keepdim else value


def cond(x, /, p=None):
    """Return condition numbers: the norm of a matrix times that of its inverse; infinite for a singular one."""
    check_matrices("linalg.cond", x)
    if p is None or (p in (2, -2) and not isinstance(p, str)):
        s = svdvals(x)
        ratio = s[..., 0] / s[..., -1]
        return ratio if p in (None, 2) else s[..., -1] / s[..., 0]
    check_matrices("linalg.cond", x, square=True)
    inverse, info = inv_ex(x)
    value = matrix_norm(x, ord=p) * matrix_norm(inverse, ord=p)
    return jnp.where(info == 0, value, jnp.full((), np.inf, value.dtype))
