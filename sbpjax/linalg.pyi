"""Written by `make stubs` from the live package; do not edit."""
# Linear algebra under the names of ``torch.linalg``: norms, decompositions, solvers.

import builtins
import collections.abc
import sbpjax._core.tensor.handle.types as _types
from sbpjax._core.tensor.handle.attached import Eigen as _Eigen
from sbpjax._core.tensor.handle.attached import InverseInfo as _InverseInfo
from sbpjax._core.tensor.handle.attached import LDPivots as _LDPivots
from sbpjax._core.tensor.handle.attached import LDPivotsInfo as _LDPivotsInfo
from sbpjax._core.tensor.handle.attached import LInfo as _LInfo
from sbpjax._core.tensor.handle.attached import LUPivots as _LUPivots
from sbpjax._core.tensor.handle.attached import LUPivotsInfo as _LUPivotsInfo
from sbpjax._core.tensor.handle.attached import Lstsq as _Lstsq
from sbpjax._core.tensor.handle.attached import PLU as _PLU
from sbpjax._core.tensor.handle.attached import QR as _QR
from sbpjax._core.tensor.handle.attached import ResultInfo as _ResultInfo
from sbpjax._core.tensor.handle.attached import SVDh as _SVDh
from sbpjax._core.tensor.handle.attached import SignLogabsdet as _SignLogabsdet
from sbpjax._core.tensor.handle.tensor import Tensor as _Tensor

from sbpjax.errors import LinAlgError as LinAlgError
def cholesky(A: _Tensor, *, upper: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return the lower (or upper) Cholesky factor of Hermitian positive definite matrices.

    Args:
        A: ``(..., N, N)``; the lower triangle is read, the upper one with ``upper``.
        upper: return the upper factor U of ``U^H U``.
    """
def cholesky_ex(A: _Tensor, *, upper: builtins.bool = False, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _LInfo:
    """Return the Cholesky factor of Hermitian matrices and where they are not positive definite.

    Args:
        A: ``(..., N, N)``; the lower triangle is read, the upper one with ``upper``.
        upper: return the upper factor U of ``U^H U``.
    """
def cond(A: _Tensor, p: _types.TensorLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return condition numbers: the norm of a matrix times that of its inverse; infinite for a singular one."""
def cross(input: _Tensor, other: _Tensor, *, dim: builtins.int = -1, out: _Tensor | None = None) -> _Tensor:
    """Return the cross product along a dim of size 3."""
def det(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the determinants of square matrices; the gradient at a singular one is 0, as torch's."""
def diagonal(A: _Tensor, *, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> _Tensor:
    """Return ``diagonal(A, offset, dim1, dim2)``."""
def eig(A: _Tensor, *, out: _Tensor | None = None) -> _Eigen:
    """Return the complex eigenvalues of square matrices and their eigenvectors, of length 1, as columns."""
def eigh(A: _Tensor, UPLO: builtins.str = 'L', *, out: _Tensor | None = None) -> _Eigen:
    """Return the eigenvalues of Hermitian matrices, smallest first, and their eigenvectors as columns."""
def eigvals(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the complex eigenvalues of square matrices."""
def eigvalsh(A: _Tensor, UPLO: builtins.str = 'L', *, out: _Tensor | None = None) -> _Tensor:
    """Return the eigenvalues of Hermitian matrices, smallest first."""
def householder_product(A: _Tensor, tau: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the first N columns of the product of Householder reflections, as LAPACK's ``orgqr``."""
def inv(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverses of matrices."""
def inv_ex(A: _Tensor, *, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _InverseInfo:
    """Return the inverses of square matrices, and where there is none (int32, 0 for nowhere)."""
def ldl_factor(A: _Tensor, *, hermitian: builtins.bool = False, out: _Tensor | None = None) -> _LDPivots:
    """Return L and D of ``A = L D L^T`` in one matrix, and the pivots: negative for a block of two, from 1.

    Args:
        A: ``(..., N, N)``, symmetric, or Hermitian if `hermitian`; only the lower triangle is read.
        hermitian: whether the other triangle of a complex matrix is the conjugate.
    """
def ldl_factor_ex(A: _Tensor, *, hermitian: builtins.bool = False, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _LDPivotsInfo:
    """Return L and D in one matrix, the pivots, and the first column where D is singular (int32, 0 for nowhere).

    Args:
        A: ``(..., N, N)``, symmetric, or Hermitian if `hermitian`; only the lower triangle is read.
        hermitian: whether the other triangle of a complex matrix is the conjugate.
    """
def ldl_solve(LD: _Tensor, pivots: _Tensor, B: _Tensor, *, hermitian: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return the solution of ``A x = B`` for a result of `ldl_factor_ex`.

    Args:
        LD: ``(..., N, N)``.
        pivots: ``(..., N)`` int32.
        B: ``(..., N, K)``; batch dims broadcast.
        hermitian: as it was decomposed.
    """
def lstsq(A: _Tensor, B: _Tensor, rcond: builtins.float | None = None, *, driver: builtins.str | None = None) -> _Lstsq:
    """Return the least-squares solution of ``A x = B``, its squared residuals, the rank, and singular values.

    Residuals are empty unless ``M > N`` and every matrix has full rank; the rank is empty for the driver ``"gels"``,
    singular values are for all but ``"gelsd"`` and ``"gelss"``. Rank and singular values have no gradient.
    """
def lu(A: _Tensor, *, pivot: builtins.bool = True, out: _Tensor | None = None) -> _PLU:
    """Return P, L, U with ``x = P L U``."""
def lu_factor(A: _Tensor, *, pivot: builtins.bool = True, out: _Tensor | None = None) -> _LUPivots:
    """Return L and U in one matrix, and the pivots counted from 1."""
def lu_factor_ex(A: _Tensor, *, pivot: builtins.bool = True, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _LUPivotsInfo:
    """Return LU in one matrix, LAPACK's pivots counted from 1, and where U is singular (int32, 0 for nowhere)."""
def lu_solve(LU: _Tensor, pivots: _Tensor, B: _Tensor, left: builtins.bool = True, adjoint: builtins.bool = False, *, out: _Tensor | None = None) -> _Tensor:
    """Return the solution for a result of `lu_factor`; with ``adjoint`` for A^H."""
def matmul(input: _Tensor, other: _Tensor, transpose_a: builtins.bool = False, transpose_b: builtins.bool = False, alpha: builtins.float = 1.0, *, out: _Tensor | None = None) -> _Tensor:
    """Return ``alpha`` times the matrix product, with PyTorch's rules for 1-d inputs and batch dims.

    Args:
        input: a vector, a matrix, or a stack of them.
        other: likewise.
        transpose_a: swap the last two dims of `input` first; it keeps its layout.
        transpose_b: swap the last two dims of `other` first; it keeps its layout.
        alpha: factor of the product.
        out: a tensor to write it into.
    """
def matrix_exp(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the exponentials of square matrices: the series of ``x / 2**s``, squared s times."""
def matrix_norm(A: _Tensor, ord: builtins.float | builtins.str = 'fro', dim: builtins.tuple[builtins.int, builtins.int] = (-2, -1), keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return a norm of matrices.

    Args:
        A: at least 2 dims.
        ord: ``"fro"``, ``"nuc"``, ``inf``, ``-inf``, ``1``, ``-1``, ``2`` or ``-2``.
        dim: the dims of the matrices.
        keepdim: keep them with size 1.
        dtype: compute in this dtype.
    """
from sbpjax._core.functions.linear_algebra.norms import matrix_power as matrix_power
def matrix_rank(A: _Tensor, tol: builtins.float | None = None, hermitian: builtins.bool = False, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the number of singular values above ``max(atol, rtol * the largest)``."""
def multi_dot(tensors: collections.abc.Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Return the product of several matrices in the cheapest order; the first and the last may be vectors."""
def norm(A: _Tensor, ord: builtins.float | builtins.str | None = None, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return a vector or matrix norm.

    Args:
        A: the tensor.
        ord: the order; None is the 2-norm of all elements named.
        dim: an int for a vector norm, two for a matrix norm; None is all, which with an order must be 1 or 2 dims.
        dtype: compute in this dtype.
    """
def pinv(A: _Tensor, rcond: builtins.float | None = None, hermitian: builtins.bool = False, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the pseudoinverses; singular values up to ``max(atol, rtol * the largest)`` count as 0."""
def qr(A: _Tensor, mode: builtins.str = 'reduced', *, out: _Tensor | None = None) -> _QR:
    """Return Q and R with ``x = Q R``.

    Args:
        A: ``(..., M, N)``.
        mode: ``"reduced"`` gives K = min(M, N) columns of Q, ``"complete"`` M, ``"r"`` an empty Q.
    """
def slogdet(A: _Tensor, *, out: _Tensor | None = None) -> _SignLogabsdet:
    """Return the sign (a unit complex number) and the logarithm of the absolute value of determinants."""
def solve(A: _Tensor, B: _Tensor, *, left: builtins.bool = True, out: _Tensor | None = None) -> _Tensor:
    """Return x with ``A x = B`` (``x A = B`` if not ``left``).

    Args:
        A: ``(..., N, N)``.
        B: ``(..., N, K)``, or vectors ``(..., N)`` in the batch shape of a.
        left: whether the matrix is on the left of x.
    """
def solve_ex(A: _Tensor, B: _Tensor, *, left: builtins.bool = True, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _ResultInfo:
    """Return x with ``a x = B`` (``x a = B`` if not ``left``) and where a is singular (int32, 0 for nowhere).

    Args:
        A: ``(..., N, N)``.
        B: ``(..., N, K)``, or vectors ``(..., N)`` in the batch shape of a.
        left: whether the matrix is on the left of x.
    """
def solve_triangular(A: _Tensor, B: _Tensor, *, upper: builtins.bool, left: builtins.bool = True, unitriangular: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return x with ``a x = B`` for triangular matrices; the other triangle is not read."""
def svd(A: _Tensor, full_matrices: builtins.bool = True, *, driver: builtins.str | None = None, out: _Tensor | None = None) -> _SVDh:
    """Return U, S and V^H with ``x = U diag(S) V^H``.

    Args:
        A: ``(..., M, N)``.
        full_matrices: give all M columns of U and N rows of V^H; gradients go through the first min(M, N).
    """
def svdvals(A: _Tensor, *, driver: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the singular values of matrices, largest first."""
def tensorinv(A: _Tensor, ind: builtins.int = 2, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse of A in the sense of `tensordot` over its last dims from `ind` on."""
def tensorsolve(A: _Tensor, B: _Tensor, dims: builtins.tuple[builtins.int, ...] | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return x with ``tensordot(A, x, x.ndim) = B``; `dims` of A go after the others first."""
def vander(x: _Tensor, N: builtins.int | None = None, increasing: builtins.bool = True, *, out: _Tensor | None = None) -> _Tensor:
    """Return the powers 0 to N - 1 of the last dim's elements along a new last dim; those of integers are int64."""
from sbpjax._core.functions.linear_algebra.norms import vecdot as vecdot
def vector_norm(x: _Tensor, ord: builtins.float | builtins.str = 2, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the norm of the elements as one vector, or along dims."""
