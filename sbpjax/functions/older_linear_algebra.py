"""Linear algebra under PyTorch's older names: ``svd qr cholesky lu triangular_solve`` at the top level.

They are the functions of `sbpjax.linalg` in other call forms: ``svd(x)`` gives V where ``linalg.svd`` gives V^H.
"""

from __future__ import annotations

from collections import namedtuple

from sbpjax.tensor.binding import into_out
from sbpjax.tensor.tensor import Tensor

from . import linalg

svd_result = namedtuple("svd", "U S V")
triangular_solve_result = namedtuple("triangular_solve", "solution cloned_coefficient")


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
