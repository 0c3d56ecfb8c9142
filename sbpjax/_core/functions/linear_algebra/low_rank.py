"""Low-rank approximation by random projections: `svd_lowrank`, `pca_lowrank`."""

from __future__ import annotations

from collections import namedtuple

from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import OpValueError
from sbpjax.sbp import broadcast

from ..random import randn
from . import linalg

svd_result = namedtuple("svd_lowrank", "U S V")


def _range(A: Tensor, q: int, niter: int) -> Tensor:
    """Return an orthonormal basis of about the range of A (Halko et al., 2011, algorithm 4.4)."""
    where = {}
    if A.is_global:
        where = {"placement": A.placement, "sbp": (broadcast,) * len(A.sbp)}
    basis = linalg.qr(A @ randn(A.shape[-1], q, dtype=A.dtype, **where)).Q
    for _ in range(niter):
        basis = linalg.qr(A.mH @ basis).Q
        basis = linalg.qr(A @ basis).Q
    return basis


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None):
    """Return U, S, V with about ``A - M = U diag(S) V^H`` of rank ``q``, by random projections.

    Args:
        A: ``(..., M, N)``.
        q: the rank, a little more than is expected.
        niter: rounds of subspace iteration.
        M: taken off A first.
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    A = A if M is None else A - M
    if not 0 <= q <= min(A.shape[-2:]):
        rule = f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(A.shape[-2:])}"
        raise OpValueError(f"svd_lowrank(A, q={q})", f"A {list(A.shape)}", rule, "a smaller q")
    if A.shape[-2] < A.shape[-1]:
        u, s, v = svd_lowrank(A.mH, q, niter)
        return svd_result(v, s, u)
    basis = _range(A, q, niter)
    u, s, vh = linalg.svd(basis.mH @ A, full_matrices=False)
    return svd_result(basis @ u, s, vh.mH)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2):
    """Return `svd_lowrank` of A with the mean of every column taken off."""
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
