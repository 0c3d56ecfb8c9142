"""Approximations of low rank by random projections, and the unblocked forms that few scripts call."""

from __future__ import annotations

from collections import namedtuple

from sbpjax.errors import OpValueError, message
from sbpjax.tensor.tensor import Tensor

from . import linalg
from .random import randn

svd_result = namedtuple("svd_lowrank", "U S V")
native_layer_norm_result = namedtuple("native_layer_norm", "output mean rstd")


def _range(A: Tensor, q: int, niter: int) -> Tensor:
    """Return an orthonormal basis of about the range of A (Halko et al., 2011, algorithm 4.4)."""
    where = {}
    if A.is_global:
        from sbpjax.sbp import broadcast

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
        raise OpValueError(message(f"svd_lowrank(A, q={q})", f"A {list(A.shape)}", rule, "a smaller q"))
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


def native_layer_norm(input: Tensor, normalized_shape, weight, bias, eps: float):
    """Return `nn.functional.layer_norm`, the means and the reciprocal deviations."""
    from .nn import layer_norm

    dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    mean = input.mean(dims, keepdim=True)
    deviation = (input.var(dims, correction=0, keepdim=True) + eps).rsqrt()
    return native_layer_norm_result(layer_norm(input, normalized_shape, weight, bias, eps), mean, deviation)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple:
    """Return `nn.functional.dropout`, and where elements were kept."""
    from .nn import dropout

    if not train:
        return input.clone(), input.new_ones(*input.shape).bool()
    kept = dropout(input.detach().new_ones(*input.shape), p) != 0
    return input * kept / (1 - p if p < 1 else 1), kept


def fill(input: Tensor, value) -> Tensor:
    """Return a tensor of the same shape with one number everywhere."""
    return input.clone().fill_(value)


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return `nn.functional.grid_sample` with modes by number."""
    from .nn import grid_sample

    mode, padding = (
        ("bilinear", "nearest", "bicubic")[interpolation_mode],
        ("zeros", "border", "reflection")[padding_mode],
    )
    return grid_sample(input, grid, mode, padding, align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def affine_grid_generator(theta: Tensor, size, align_corners: bool) -> Tensor:
    """Return `nn.functional.affine_grid`, of maps of any dtype."""
    from sbpjax.functions.nn.grid import affine_grid_generator as generated

    return generated(theta, size, align_corners)


def _inplace(name: str):
    def function(input: Tensor, *args, **options) -> Tensor:
        from . import nn as functional

        return getattr(functional, name)(input, *args, inplace=True, **options)

    function.__name__ = function.__qualname__ = f"{name}_"
    function.__doc__ = f"Write `nn.functional.{name}` into a tensor and return it."
    return function


dropout_, alpha_dropout_, feature_alpha_dropout_ = (
    _inplace(n) for n in ("dropout", "alpha_dropout", "feature_alpha_dropout")
)
