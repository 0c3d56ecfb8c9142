"""Norms with a choice, factorisations and equations that say where they fail, of ``torch.linalg``.

Functions that fail on some matrices raise `LinAlgError` where their result is at hand, on the CPU and outside compiled
programs; their ``_ex`` forms return `info` instead.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from sbpjax.errors import LinAlgError, OpError, OpTypeError, message
from sbpjax.ops import decompose
from sbpjax.ops import ldl as _ldl
from sbpjax.ops import solve as _solve
from sbpjax.tensor import bounds, dispatch, views
from sbpjax.tensor.binding import hashable, into_out
from sbpjax.tensor.op import op_of
from sbpjax.tensor.tensor import Tensor

from . import table
from .reductions import norm as _norm

_results = {
    name: namedtuple(f"linalg_{name}", fields)
    for name, fields in {
        "cholesky_ex": "L info",
        "inv_ex": "inverse info",
        "solve_ex": "result info",
        "lu_factor": "LU pivots",
        "lu_factor_ex": "LU pivots info",
        "ldl_factor": "LD pivots",
        "ldl_factor_ex": "LD pivots info",
        "lstsq": "solution residuals rank singular_values",
    }.items()
}


def _run(fn, inputs: tuple, /, **static):
    return dispatch.run(op_of(fn, tuple((k, hashable(v)) for k, v in static.items())), inputs)


def _finish(result, out):
    return result if out is None else into_out(out, result)


def _named(name: str, parts, out=None):
    found = _results[name](*parts)
    return found if out is None else into_out(out, tuple(found))


def _check(asked: str, info: Tensor, what: str, fix: str) -> None:
    """Raise if the `info` of a batch of matrices is at hand and says that one has not what is asked for."""
    for part in bounds.parts_on_cpu(info):
        if part.any():
            where = "" if part.ndim == 0 else f"(Batch element {tuple(int(i) for i in np.argwhere(part)[0])}): "
            raise LinAlgError(message(asked, f"info {part.tolist()}", f"{where}{what}", fix))


def vector_norm(x: Tensor, ord=2, dim=None, keepdim: bool = False, *, dtype=None, out=None) -> Tensor:
    """Return the norm of the elements as one vector, or along dims."""
    return _finish(_norm(x, ord, hashable(dim), keepdim, dtype), out)


def norm(A: Tensor, ord=None, dim=None, keepdim: bool = False, *, out=None, dtype=None) -> Tensor:
    """Return a vector or matrix norm.

    Args:
        A: the tensor.
        ord: the order; None is the 2-norm of all elements named.
        dim: an int for a vector norm, two for a matrix norm; None is all, which for an order asks for 1 or 2 dims.
        keepdim: keep the reduced dims with size 1.
        out: where the result goes.
        dtype: compute in this dtype.
    """
    many = isinstance(dim, (tuple, list))
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype, out=out)
    if dim is None and A.ndim not in (1, 2):
        rule = f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        raise OpError(message(f"linalg.norm(A, {ord!r})", f"A {list(A.shape)}", rule, "give dim"))
    if (many and len(dim) == 2) or (dim is None and A.ndim == 2) or isinstance(ord, str):
        return table.found("linalg", "matrix_norm")(
            A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype, out=out
        )
    return vector_norm(A, ord, dim, keepdim, dtype=dtype, out=out)


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out=None):
    """Return the Cholesky factor, and `info`: 0, or 1 where the matrix is not positive definite."""
    found = _named("cholesky_ex", _run(decompose.cholesky_ex, (A,), upper=upper), out)
    if check_errors:
        _positive(found.info)
    return found


def _positive(info: Tensor) -> None:
    what = "the factorization could not be completed because the input is not positive-definite"
    _check("linalg.cholesky(A)", info, what, "A + eps * sbpjax.eye(n), or linalg.cholesky_ex(A)")


def cholesky(A: Tensor, *, upper: bool = False, out=None) -> Tensor:
    """Return the lower (or upper) Cholesky factor of Hermitian positive definite matrices.

    Raises:
        LinAlgError: a matrix is not positive definite.
    """
    factor, info = cholesky_ex(A, upper=upper)
    _positive(info)
    return _finish(factor, out)


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out=None):
    """Return L and U in one matrix, the pivots counted from 1, and `info`: where U is singular."""
    if not pivot:
        rule = "LU without pivoting is not implemented on the CPU, and not here"
        raise OpError(message("linalg.lu_factor(A, pivot=False)", f"A {list(A.shape)}", rule, "pivot=True"))
    found = _named("lu_factor_ex", _run(decompose.lu_factor, (A,)), out)
    if check_errors:
        _check("linalg.lu_factor(A)", found.info, "U has a zero on its diagonal", "linalg.lu_factor_ex(A)")
    return found


def lu_factor(A: Tensor, *, pivot: bool = True, out=None):
    """Return L and U in one matrix, and the pivots counted from 1."""
    return _named("lu_factor", lu_factor_ex(A, pivot=pivot, check_errors=True)[:2], out)


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out=None):
    """Return L and D of ``A = L D L^T`` in one matrix, the pivots, and `info`: the first column where D is singular.

    Args:
        A: ``(..., N, N)``, symmetric, or Hermitian with ``hermitian``; the lower triangle is read.
        hermitian: read a complex matrix as Hermitian, ``A = L D L^H``.
        check_errors: raise where D is singular.
        out: where the results go.
    """
    found = _named("ldl_factor_ex", _run(_ldl.ldl_factor_ex, (A,), hermitian=hermitian), out)
    if check_errors:
        _check("linalg.ldl_factor(A)", found.info, "D has a zero on its diagonal", "linalg.ldl_factor_ex(A)")
    return found


def ldl_factor(A: Tensor, *, hermitian: bool = False, out=None):
    """Return L and D of ``A = L D L^T`` in one matrix, and the pivots: negative for a block of two, counted from 1.

    Raises:
        LinAlgError: D is singular.
    """
    return _named("ldl_factor", ldl_factor_ex(A, hermitian=hermitian, check_errors=True)[:2], out)


def _singular(asked: str, info: Tensor) -> None:
    what = "The solver failed because the input matrix is singular: a pivot of its LU decomposition is zero"
    _check(asked, info, what, "linalg.pinv(A), or linalg.lstsq")


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out=None):
    """Return x with ``A x = B`` (``x A = B`` if not ``left``), and `info`: where A is singular."""
    found = _named("solve_ex", _run(_solve.solve_ex, (A, B), left=left), out)
    if check_errors:
        _singular("linalg.solve(A, B)", found.info)
    return found


def solve(A: Tensor, B: Tensor, *, left: bool = True, out=None) -> Tensor:
    """Return x with ``A x = B`` (``x A = B`` if not ``left``).

    Raises:
        LinAlgError: a matrix is singular.
    """
    result, info = solve_ex(A, B, left=left)
    _singular("linalg.solve(A, B)", info)
    return _finish(result, out)


def inv_ex(A: Tensor, *, check_errors: bool = False, out=None):
    """Return the inverses of matrices, and `info`: where there is none."""
    found = _named("inv_ex", _run(_solve.inv_ex, (A,)), out)
    if check_errors:
        _singular("linalg.inv(A)", found.info)
    return found


def inv(A: Tensor, *, out=None) -> Tensor:
    """Return the inverses of matrices.

    Raises:
        LinAlgError: a matrix is singular.
    """
    result, info = inv_ex(A)
    _singular("linalg.inv(A)", info)
    return _finish(result, out)


def pinv(A: Tensor, rcond=None, hermitian: bool = False, *, atol=None, rtol=None, out=None) -> Tensor:
    """Return the pseudoinverses; singular values up to ``max(atol, rtol * the largest)`` count as 0."""
    found = _run(_solve.pinv, (A, atol, rtol if rcond is None else rcond), hermitian=hermitian)
    return _finish(found, out)


def matrix_rank(A: Tensor, tol=None, hermitian: bool = False, *, atol=None, rtol=None, out=None) -> Tensor:
    """Return the number of singular values above ``max(atol, rtol * the largest)``."""
    if tol is not None:
        atol, rtol = tol, 0.0
    return _finish(_run(_solve.matrix_rank, (A, atol, rtol), hermitian=hermitian), out)


def lstsq(A: Tensor, B: Tensor, rcond=None, *, driver: str | None = None):
    """Return the least-squares solution of ``A x = B``, its squared residuals, the rank, and singular values.

    Residuals are empty unless ``M > N`` and every matrix has full rank; the rank is empty for the driver ``"gels"``,
    singular values are for all but ``"gelsd"`` and ``"gelss"``.
    """
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        rule = "parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        raise OpError(message(f"linalg.lstsq(driver={driver!r})", repr(driver), rule, 'driver="gelsy"'))
    found, rest, rank, values = _run(_solve.lstsq, (A, B), rcond=rcond)
    m, n = A.shape[-2:]
    nothing = A.detach().new_empty(0)
    full = m > n and (driver == "gels" or all(bool((p == n).all()) for p in bounds.parts_on_cpu(rank)))
    rank = nothing.long() if driver == "gels" else rank
    return _results["lstsq"](
        found, rest.detach() if full else nothing, rank, values if driver in ("gelsd", "gelss") else nothing
    )


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out=None) -> Tensor:
    """Return the inner products of vectors along a dim, the first conjugated."""
    if x.dtype != y.dtype or not (x.is_floating_point() or x.is_complex()):
        rule = "x and y are of one dtype, floating point or complex"
        raise OpTypeError(message("linalg.vecdot(x, y)", f"{x.dtype.name}, {y.dtype.name}", rule, "y.to(x.dtype)"))
    return _finish((x.conj() * y).sum(dim), out)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of the diagonals of matrices."""
    return views.diagonal(A, offset, dim1, dim2)
