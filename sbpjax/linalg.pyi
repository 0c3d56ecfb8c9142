"""Written by `make stubs` from the live package; do not edit."""
# Linear algebra beyond products: norms, decompositions, equations; the names of ``torch.linalg``.

import __future__
import builtins
import collections.abc
import sbpjax.tensor.types as _types
from sbpjax.tensor.attached import Eigen as _Eigen
from sbpjax.tensor.attached import InverseInfo as _InverseInfo
from sbpjax.tensor.attached import LDPivots as _LDPivots
from sbpjax.tensor.attached import LDPivotsInfo as _LDPivotsInfo
from sbpjax.tensor.attached import LInfo as _LInfo
from sbpjax.tensor.attached import LUPivots as _LUPivots
from sbpjax.tensor.attached import LUPivotsInfo as _LUPivotsInfo
from sbpjax.tensor.attached import Lstsq as _Lstsq
from sbpjax.tensor.attached import PLU as _PLU
from sbpjax.tensor.attached import QR as _QR
from sbpjax.tensor.attached import ResultInfo as _ResultInfo
from sbpjax.tensor.attached import SVDh as _SVDh
from sbpjax.tensor.attached import SignLogabsdet as _SignLogabsdet
from sbpjax.tensor.tensor import Tensor as _Tensor

from sbpjax.errors import LinAlgError as LinAlgError
from sbpjax.errors import OpError as OpError
from sbpjax.errors import OpTypeError as OpTypeError
from sbpjax.tensor.tensor import Tensor as Tensor
annotations: __future__._Feature
def cholesky(A: _Tensor, *, upper: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return the lower (or upper) Cholesky factor of Hermitian positive definite matrices.

    Raises:
        LinAlgError: a matrix is not positive definite.
    """
def cholesky_ex(A: _Tensor, *, upper: builtins.bool = False, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _LInfo:
    """Return the Cholesky factor, and `info`: 0, or 1 where the matrix is not positive definite."""
def cond(A: _Tensor, p: _types.TensorLike | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return condition numbers; infinite for singular matrices."""
def cross(input: _Tensor, other: _Tensor, *, dim: builtins.int = -1, out: _Tensor | None = None) -> _Tensor:
    """Return the cross product along a dim of size 3."""
def det(A: _Tensor) -> _Tensor:
    """Return the determinants of square matrices; the gradient at a singular one is 0, as torch's."""
def diagonal(A: _Tensor, *, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> _Tensor:
    """Return a view of the diagonals of matrices."""
def eig(A: _Tensor, *, out: _Tensor | None = None) -> _Eigen:
    """Return the complex eigenvalues of square matrices, and their eigenvectors as columns."""
def eigh(A: _Tensor, UPLO: builtins.str = 'L', *, out: _Tensor | None = None) -> _Eigen:
    """Return the eigenvalues of Hermitian matrices, smallest first, and their eigenvectors as columns."""
def eigvals(A: _Tensor) -> _Tensor:
    """Return the complex eigenvalues of square matrices."""
def eigvalsh(A: _Tensor, UPLO: builtins.str = 'L') -> _Tensor:
    """Return the eigenvalues of Hermitian matrices, smallest first."""
def householder_product(A: _Tensor, tau: _Tensor) -> _Tensor:
    """Return the first N columns of the product of Householder reflections, as LAPACK's ``orgqr``."""
def inv(A: _Tensor, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverses of matrices.

    Raises:
        LinAlgError: a matrix is singular.
    """
def inv_ex(A: _Tensor, *, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _InverseInfo:
    """Return the inverses of matrices, and `info`: where there is none."""
def ldl_factor(A: _Tensor, *, hermitian: builtins.bool = False, out: _Tensor | None = None) -> _LDPivots:
    """Return L and D of ``A = L D L^T`` in one matrix, and the pivots: negative for a block of two, counted from 1.

    Raises:
        LinAlgError: D is singular.
    """
def ldl_factor_ex(A: _Tensor, *, hermitian: builtins.bool = False, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _LDPivotsInfo:
    """Return L and D of ``A = L D L^T`` in one matrix, the pivots, and `info`: the first column where D is singular.

    Args:
        A: ``(..., N, N)``, symmetric, or Hermitian with ``hermitian``; the lower triangle is read.
        hermitian: read a complex matrix as Hermitian, ``A = L D L^H``.
        check_errors: raise where D is singular.
        out: where the results go.
    """
def ldl_solve(LD: _Tensor, pivots: _Tensor, B: _Tensor, *, hermitian: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return x with ``A x = B`` for what `ldl_factor` gave of A."""
def lstsq(A: _Tensor, B: _Tensor, rcond: builtins.float | None = None, *, driver: builtins.str | None = None) -> _Lstsq:
    """Return the least-squares solution of ``A x = B``, its squared residuals, the rank, and singular values.

    Residuals are empty unless ``M > N`` and every matrix has full rank; the rank is empty for the driver ``"gels"``,
    singular values are for all but ``"gelsd"`` and ``"gelss"``.
    """
def lu(A: _Tensor, *, pivot: builtins.bool = True, out: _Tensor | None = None) -> _PLU:
    """Return P, L and U with ``A = P L U``."""
def lu_factor(A: _Tensor, *, pivot: builtins.bool = True, out: _Tensor | None = None) -> _LUPivots:
    """Return L and U in one matrix, and the pivots counted from 1."""
def lu_factor_ex(A: _Tensor, *, pivot: builtins.bool = True, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _LUPivotsInfo:
    """Return L and U in one matrix, the pivots counted from 1, and `info`: where U is singular."""
def lu_solve(LU: _Tensor, pivots: _Tensor, B: _Tensor, left: builtins.bool = True, adjoint: builtins.bool = False) -> _Tensor:
    """Return the solution for what `lu_factor` gave; with ``adjoint`` for A^H."""
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
def matrix_exp(A: _Tensor) -> _Tensor:
    """Return the exponentials of square matrices: the series of ``x / 2**s``, squared s times."""
def matrix_norm(A: _Tensor, ord: builtins.float | builtins.str = 'fro', dim: _types.IntOrInts = (-2, -1), keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return a norm of matrices: ``"fro"``, ``"nuc"``, or of order 1, -1, 2, -2, inf, -inf."""
def matrix_power(A: _Tensor, n: builtins.int) -> _Tensor:
    """Return the n-th power of square matrices by repeated squaring; a negative one is that of the inverse."""
def matrix_rank(A: _Tensor, tol: builtins.float | None = None, hermitian: builtins.bool = False, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the number of singular values above ``max(atol, rtol * the largest)``."""
from sbpjax.errors import message as message
def multi_dot(tensors: collections.abc.Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor:
    """Return the product of several matrices, multiplied in the cheapest order."""
def norm(A: _Tensor, ord: builtins.float | builtins.str | None = None, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, out: _Tensor | None = None, dtype: _types.DTypeLike | None = None) -> _Tensor:
    """Return a vector or matrix norm.

    Args:
        A: the tensor.
        ord: the order; None is the 2-norm of all elements named.
        dim: an int for a vector norm, two for a matrix norm; None is all, which for an order asks for 1 or 2 dims.
        keepdim: keep the reduced dims with size 1.
        out: where the result goes.
        dtype: compute in this dtype.
    """
def pinv(A: _Tensor, rcond: builtins.float | None = None, hermitian: builtins.bool = False, *, atol: builtins.float | None = None, rtol: builtins.float | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the pseudoinverses; singular values up to ``max(atol, rtol * the largest)`` count as 0."""
def qr(A: _Tensor, mode: builtins.str = 'reduced', *, out: _Tensor | None = None) -> _QR:
    """Return Q and R with ``A = Q R``; `mode` is ``"reduced"``, ``"complete"`` or ``"r"`` (an empty Q)."""
def slogdet(A: _Tensor, *, out: _Tensor | None = None) -> _SignLogabsdet:
    """Return the sign and the logarithm of the absolute value of determinants."""
def solve(A: _Tensor, B: _Tensor, *, left: builtins.bool = True, out: _Tensor | None = None) -> _Tensor:
    """Return x with ``A x = B`` (``x A = B`` if not ``left``).

    Raises:
        LinAlgError: a matrix is singular.
    """
def solve_ex(A: _Tensor, B: _Tensor, *, left: builtins.bool = True, check_errors: builtins.bool = False, out: _Tensor | None = None) -> _ResultInfo:
    """Return x with ``A x = B`` (``x A = B`` if not ``left``), and `info`: where A is singular."""
def solve_triangular(A: _Tensor, B: _Tensor, *, upper: builtins.bool, left: builtins.bool = True, unitriangular: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return x with ``A x = B`` for triangular matrices."""
def svd(A: _Tensor, full_matrices: builtins.bool = True, *, driver: builtins.str | None = None, out: _Tensor | None = None) -> _SVDh:
    """Return U, S and V^H with ``A = U diag(S) V^H``, the singular values largest first."""
def svdvals(A: _Tensor, *, driver: builtins.str | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the singular values, largest first."""
def svdvals_(A: _Tensor) -> _Tensor:
    """Return the singular values of matrices, largest first."""
def tensorinv(A: _Tensor, ind: builtins.int = 2) -> _Tensor:
    """Return the inverse of a in the sense of `tensordot` over its last dims from ``ind`` on."""
def tensorsolve(A: _Tensor, B: _Tensor, dims: _types.IntOrInts | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return x with ``tensordot(A, x, x.ndim) = B``."""
def vander(x: _Tensor, N: builtins.int | None = None, increasing: builtins.bool = True) -> _Tensor:
    """Return the powers 0 to N - 1 of the last dim's elements along a new last dim; those of integers are int64."""
def vecdot(x: _Tensor, y: _Tensor, *, dim: builtins.int = -1, out: _Tensor | None = None) -> _Tensor:
    """Return the inner products of vectors along a dim, the first conjugated."""
def vector_norm(x: _Tensor, ord: builtins.float | builtins.str = 2, dim: _types.IntOrInts | None = None, keepdim: builtins.bool = False, *, dtype: _types.DTypeLike | None = None, out: _Tensor | None = None) -> _Tensor:
    """Return the norm of the elements as one vector, or along dims."""
