"""Extreme eigenvalues of large symmetric matrices: `lobpcg`.

It finds a few eigenvalues at one end of a spectrum by products with the matrix alone: every round solves the
problem within the span of the approximations, their residuals, and the last directions (Knyazev, 2001, with the
orthogonal basis of Duersch et al., 2018). Worked case: of a 1000 × 1000 matrix three eigenvalues need a 1000 × 9 basis.
"""

from __future__ import annotations

from sbpjax._core import functions
from sbpjax._core.tensor.handle.dtype import finfo
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import OpError, OpValueError
from sbpjax.sbp import broadcast

from ..random import randn
from . import linalg


def _fail(operation: str, seen: str, rule: str, fix: str):
    raise OpValueError(operation, seen, rule, fix)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker=None,
    ortho_iparams: dict | None = None,
    ortho_fparams: dict | None = None,
    ortho_bparams: dict | None = None,
) -> tuple[Tensor, Tensor]:
    """Return a few of the largest (or smallest) eigenvalues of ``A x = λ B x`` and their vectors as columns.

    Where A requires grad the whole problem is solved by `linalg.eigh`, whose gradient reaches A.

    Args:
        A: ``(..., M, M)``, symmetric.
        k: how many; by default the columns of X, or 1.
        B: ``(..., M, M)``, symmetric positive definite; by default the identity.
        X: ``(..., M, n)``, where to begin.
        n: how many columns the approximation has, if there is no X; by default k.
        iK: a preconditioner, near the inverse of A.
        niter: the most rounds; by default until they converge, 1000 at most, and negative for no bound.
        tol: the bound of ``|A x - λ B x| / (|x| (|A| + |B| λ))``; by default the square root of the dtype's eps.
        largest: the largest eigenvalues rather than the smallest (the default).
        method: ``"ortho"`` or ``"basic"``; both take the orthogonal basis.
        tracker: not called.
        ortho_iparams: without effect, as are the following.
        ortho_fparams: see above.
        ortho_bparams: see above.

    Raises:
        OpValueError: A has fewer than 3 n rows.
    """
    operation = "lobpcg(A)"
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        _fail(operation, f"A {list(A.shape)}", "A is a stack of square matrices", "slice it to a square")
    if method not in (None, "ortho", "basic"):
        _fail(f"lobpcg(method={method!r})", repr(method), 'method is "ortho" or "basic"', 'method="ortho"')
    if tracker is not None:
        raise OpError("lobpcg(tracker=...)", "a tracker", "no tracker is called", "tracker=None")
    size = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if size < 3 * n or k > n:
        rule = f"the matrix has at least 3 n = {3 * n} rows, and k <= n"
        _fail(operation, f"A {list(A.shape)}, n={n}, k={k}", rule, "linalg.eigh(A)")
    largest = True if largest is None else largest
    if A.requires_grad or (B is not None and B.requires_grad):
        return _dense_eigenvalues(A, B, k, largest)
    tol = _eps(A) ** 0.5 if tol is None else tol
    niter = 1000 if niter is None else niter
    if X is None:
        X = _beginning(A, n)
    return _rounds(A, B, X, iK, k, niter, tol, largest)


def _eps(A: Tensor) -> float:
    return float(finfo(A.dtype).eps)


def _beginning(A: Tensor, n: int) -> Tensor:
    where = {}
    if A.is_global:
        where = {"placement": A.placement, "sbp": (broadcast,) * len(A.sbp)}
    return randn(*A.shape[:-1], n, dtype=A.dtype, **where)


def _dense_eigenvalues(A: Tensor, B: Tensor | None, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues by `linalg.eigh`, of ``L^-1 A L^-H`` for ``B = L L^H``."""
    A = (A + A.mH) / 2
    if B is None:
        values, vectors = linalg.eigh(A)
    else:
        factor = linalg.cholesky((B + B.mH) / 2)
        half = linalg.solve_triangular(factor, A, upper=False)
        values, vectors = linalg.eigh(linalg.solve_triangular(factor, half.mH, upper=False))
        vectors = linalg.solve_triangular(factor.mH, vectors, upper=True)
    return _first(values, vectors, k, largest)


def _first(values: Tensor, vectors: Tensor, count: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return so many of the largest or smallest of ascending eigenvalues, best first, and their vectors."""
    if largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :count], vectors[..., :count]


def _basis(S: Tensor, B: Tensor | None) -> Tensor:
    """Return an orthonormal basis of a span; with B, one that is orthonormal in the product of B."""
    basis = linalg.qr(S).Q
    if B is None:
        return basis
    return linalg.solve_triangular(linalg.cholesky(basis.mH @ (B @ basis)).mH, basis, upper=True, left=False)


def _rayleigh_ritz(A: Tensor, basis: Tensor, n: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return the best n eigenvalues in a span and the coefficients of their vectors (Rayleigh and Ritz)."""
    inner = basis.mH @ (A @ basis)
    return _first(*linalg.eigh((inner + inner.mH) / 2), n, largest)


def _rounds(A, B, X, iK, k: int, niter: int, tol: float, largest: bool) -> tuple[Tensor, Tensor]:
    n = X.shape[-1]
    basis = _basis(X, B)
    values, parts = _rayleigh_ritz(A, basis, n, largest)
    X = basis @ parts
    scale = linalg.matrix_norm(A).amax() + (0 if B is None else linalg.matrix_norm(B).amax() * values.abs().amax())
    last = None
    while niter:
        niter -= 1
        residual = A @ X - (X if B is None else B @ X) * values.unsqueeze(-2)
        errors = linalg.vector_norm(residual, dim=-2) / linalg.vector_norm(X, dim=-2)
        if bool((errors[..., :k] <= tol * scale).all()):
            break
        step = residual if iK is None else iK @ residual
        # the part within X is subtracted first: the basis of the rest keeps its digits
        directions = [step] if last is None else [step, last]
        rest = [d - X @ (X.mH @ (d if B is None else B @ d)) for d in directions]
        rest = [d / linalg.vector_norm(d, dim=-2, keepdim=True).clamp(min=_eps(A)) for d in rest]
        basis = _basis(functions.cat([X, *rest], dim=-1), B)
        values, parts = _rayleigh_ritz(A, basis, n, largest)
        new = basis @ parts
        last = new - X @ (X.mH @ (new if B is None else B @ new))
        X = new
    return values[..., :k], X[..., :k]
