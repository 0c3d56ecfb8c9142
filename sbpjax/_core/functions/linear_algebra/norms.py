"""Norms, pseudoinverse and least squares of ``torch.linalg``; the rest is in `rows/linear_algebra.py`."""

from __future__ import annotations

from collections import namedtuple

from sbpjax._core.ops.linalg import solve as _solve
from sbpjax._core.tensor.calls import bounds
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import OpError, OpTypeError

from ..reductions import norm as _norm
from ..table.checks import check_matrices_without_nan
from . import linalg

lstsq_result = namedtuple("linalg_lstsq", "solution residuals rank singular_values")


def vector_norm(x: Tensor, ord=2, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """Return the norm of the elements as one vector, or along dims."""
    return _norm(x, ord, dim, keepdim, dtype)


def norm(A: Tensor, ord=None, dim=None, keepdim: bool = False, *, dtype=None) -> Tensor:
    """Return a vector or matrix norm.

    Args:
        A: the tensor.
        ord: the order; None is the 2-norm of all elements named.
        dim: an int for a vector norm, two for a matrix norm; None is all, which with an order must be 1 or 2 dims.
        keepdim: keep the reduced dims with size 1.
        dtype: compute in this dtype.
    """
    many = isinstance(dim, (tuple, list))
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None and A.ndim not in (1, 2):
        rule = f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        raise OpError(f"linalg.norm(A, {ord!r})", f"A {list(A.shape)}", rule, "give dim")
    if (many and len(dim) == 2) or (dim is None and A.ndim == 2) or isinstance(ord, str):
        return linalg.matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """Return the n-th power of square matrices; a negative one is that of the inverse.

    Args:
        A: batches of square matrices, `(*, N, N)`.
        n: the power.

    Raises:
        OpError: a matrix is not square.
        LinAlgError: a matrix has no inverse; on the CPU and outside compiled programs.

    Example:
        >>> flow.linalg.matrix_power(flow.tensor([[2.0, 0.0], [0.0, 4.0]]), -1)
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    A = linalg.inv(A) if n < 0 else A
    return dispatch.apply(_solve.matrix_power, A, n=abs(n))


def pinv(A: Tensor, rcond=None, hermitian: bool = False, *, atol=None, rtol=None) -> Tensor:
    """Return the pseudoinverses; singular values up to ``max(atol, rtol * the largest)`` count as 0.

    Raises:
        LinAlgError: a matrix has NaN, and is not `hermitian`; on the CPU and outside compiled programs.
    """
    if not hermitian:
        check_matrices_without_nan("linalg.pinv", A)
    return dispatch.apply(_solve.pinv, A, atol, rtol if rcond is None else rcond, hermitian=hermitian)


def matrix_rank(A: Tensor, tol=None, hermitian: bool = False, *, atol=None, rtol=None) -> Tensor:
    """Return the number of singular values above ``max(atol, rtol * the largest)``.

    Raises:
        LinAlgError: a matrix has NaN, and is not `hermitian`; on the CPU and outside compiled programs.
    """
    if tol is not None:
        atol, rtol = tol, 0.0
    if not hermitian:
        check_matrices_without_nan("linalg.matrix_rank", A)
    return dispatch.apply(_solve.matrix_rank, A, atol, rtol, hermitian=hermitian)


def lstsq(A: Tensor, B: Tensor, rcond=None, *, driver: str | None = None):
    """Return the least-squares solution of ``A x = B``, its squared residuals, the rank, and singular values.

    Residuals are empty unless ``M > N`` and every matrix has full rank; the rank is empty for the driver ``"gels"``,
    singular values are for all but ``"gelsd"`` and ``"gelss"``. Rank and singular values have no gradient.
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        rule = "parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        raise OpError(f"linalg.lstsq(driver={driver!r})", repr(driver), rule, 'driver="gelsy"')
    found, rest, rank, values = dispatch.apply(_solve.lstsq, A, B, rcond=rcond)
    m, n = A.shape[-2:]
    nothing = rest.detach().new_empty(0)  # of a complex matrix residuals and singular values are real
    full = m > n and (driver == "gels" or all(bool((p == n).all()) for p in bounds.parts_on_cpu(rank)))
    rank = nothing.long() if driver == "gels" else rank
    rest = rest if full else rest.reshape(-1)[:0]  # on the tape, as in PyTorch
    return lstsq_result(found, rest, rank, values.detach() if driver in ("gelsd", "gelss") else nothing)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the inner products of vectors along a dim, the first conjugated."""
    if x.dtype != y.dtype or not (x.is_floating_point() or x.is_complex()):
        rule = "x and y are of one dtype, floating point or complex"
        raise OpTypeError("linalg.vecdot(x, y)", f"{x.dtype.name}, {y.dtype.name}", rule, "y.to(x.dtype)")
    return (x.conj() * y).sum(dim)


# ----------------------------------------------------------------------------------------------- PyTorch's older names

svd_result = namedtuple("svd", "U S V")


def svd(input: Tensor, some: bool = True, compute_uv: bool = True):
    """Return U, S and V with ``input = U diag(S) V^H``."""
    if not compute_uv:
        m, n = input.shape[-2:]
        batch, values = tuple(input.shape[:-2]), linalg.svdvals(input)
        return svd_result(input.new_zeros((*batch, m, m)), values, input.new_zeros((*batch, n, n)))
    u, s, vh = linalg.svd(input, full_matrices=not some)
    return svd_result(u, s, vh.mH)
