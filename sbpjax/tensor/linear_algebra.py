"""Linear algebra under PyTorch's older names: ``svd qr inverse logdet triangular_solve …`` at the top level.

They are the functions of `sbpjax.linalg` in other call forms: ``svd(x)`` gives V where ``linalg.svd`` gives V^H.
"""

from __future__ import annotations

from collections import namedtuple

from sbpjax import linalg
from sbpjax.ops import decompose, solve

from . import dispatch
from .binding import bind, hashable, into_out
from .op import op_of
from .tensor import Tensor

svd_result = namedtuple("svd", "U S V")
triangular_solve_result = namedtuple("triangular_solve", "solution cloned_coefficient")
lu_unpack_result = namedtuple("lu_unpack", "P L U")

logdet = bind(decompose.logdet, ("input",))
cholesky_solve = bind(decompose.cholesky_solve, ("input", "input2"))
cholesky_inverse = bind(decompose.cholesky_inverse, ("L",))
matrix_exp = bind(decompose.matrix_exp, ("input",))
det = bind(decompose.det, ("input",))
orgqr = bind(decompose.householder_product, ("input", "input2"), "orgqr")
inverse, pinverse, slogdet = linalg.inv, linalg.pinv, linalg.slogdet


def matrix_power(input: Tensor, n: int, *, out=None) -> Tensor:
    """Return the n-th power of square matrices."""
    return linalg.matrix_power(input, n, out=out)


def cholesky(input: Tensor, upper: bool = False, *, out=None) -> Tensor:
    """Return the lower (or upper) Cholesky factor."""
    return linalg.cholesky(input, upper=upper, out=out)


def qr(input: Tensor, some: bool = True, *, out=None):
    """Return Q and R, with as many columns as the smaller dim, or all."""
    return linalg.qr(input, "reduced" if some else "complete", out=out)


def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out=None):
    """Return U, S and V with ``input = U diag(S) V^H``."""
    if not compute_uv:
        m, n = input.shape[-2:]
        batch, values = tuple(input.shape[:-2]), linalg.svdvals(input)
        found = svd_result(input.new_zeros((*batch, m, m)), values, input.new_zeros((*batch, n, n)))
    else:
        u, s, vh = linalg.svd(input, full_matrices=not some)
        found = svd_result(u, s, vh.mH)
    return found if out is None else into_out(out, tuple(found))


def triangular_solve(
    b: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out=None,
):
    """Return x with ``A x = b`` (``A^T x = b`` with ``transpose``) for triangular matrices, and A."""
    matrix = A.mT if transpose else A
    solution = linalg.solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    found = triangular_solve_result(solution, A.clone())
    return found if out is None else into_out(out, tuple(found))


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out=None) -> Tensor:
    """Return x with ``A x = b`` for what `linalg.lu_factor` gave of A."""
    return linalg.lu_solve(LU_data, LU_pivots, b, out=out)


def lu(A: Tensor, *, pivot: bool = True, get_infos: bool = False, out=None):
    """Return L and U in one matrix, the pivots, and if asked where U is singular."""
    found = tuple(linalg.lu_factor_ex(A, pivot=pivot))[: 3 if get_infos else 2]
    return found if out is None else into_out(out, found)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out=None):
    """Return P, L and U of what `linalg.lu_factor` gave."""
    static = (("unpack_data", unpack_data), ("unpack_pivots", unpack_pivots))
    found = lu_unpack_result(*dispatch.run(op_of(decompose.lu_unpack, static), (LU_data, LU_pivots)))
    return found if out is None else into_out(out, tuple(found))


def chain_matmul(*matrices, out=None) -> Tensor:
    """Return the product of several matrices, multiplied in the cheapest order."""
    return linalg.multi_dot(matrices, out=out)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of a vector's elements as columns, the highest first unless ``increasing``."""
    static = (("N", hashable(N)), ("increasing", increasing))
    return dispatch.run(op_of(solve.vander, static), (x,))
