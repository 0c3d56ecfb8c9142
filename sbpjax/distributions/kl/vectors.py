"""KL divergences between multivariate normals, of full and of low-rank covariance.

    2 KL = log det Σq - log det Σp + trace(Σq⁻¹ Σp) + (μq - μp)ᵀ Σq⁻¹ (μq - μp) - k

The trace is that of ``A Aᵀ`` with ``A = Lq⁻¹ Lp``, or of its parts where a covariance is ``W Wᵀ + D``.
"""

from __future__ import annotations

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError

from ..lowrank_multivariate_normal import LowRankMultivariateNormal
from ..multivariate_normal import MultivariateNormal, _batch_mahalanobis, half_log_det
from .registry import register_kl


def _same_size(p: MultivariateNormal | LowRankMultivariateNormal, q: MultivariateNormal | LowRankMultivariateNormal):
    if p.event_shape != q.event_shape:
        rule = "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        seen = f"{tuple(p.event_shape)}, {tuple(q.event_shape)}"
        raise DistributionError("kl_divergence(p, q)", seen, rule, "vectors of one size")


def _squares(matrix: Tensor) -> Tensor:
    """Return the trace of ``A Aᵀ``."""
    return matrix.square().sum([-2, -1])


def _solve_lower(lower: Tensor, right: Tensor) -> Tensor:
    """Return ``L⁻¹ B`` of batches that broadcast."""
    batch = sbpjax.broadcast_shapes(tuple(lower.shape[:-2]), tuple(right.shape[:-2]))
    lower, right = lower.expand(*batch, *lower.shape[-2:]), right.expand(*batch, *right.shape[-2:])
    return sbpjax.linalg.solve_triangular(lower, right, upper=False)


@register_kl(MultivariateNormal, MultivariateNormal)
def _full(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _same_size(p, q)
    mine, its = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace, apart = _squares(_solve_lower(its, mine)), _batch_mahalanobis(its, q.loc - p.loc)
    return half_log_det(its) - half_log_det(mine) + 0.5 * (trace + apart - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_from_full(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _same_size(p, q)
    its = q._unbroadcasted_scale_tril
    trace = _squares(_solve_lower(its, p.cov_factor)) + _squares(_solve_lower(its, p.cov_diag.sqrt().diag_embed()))
    apart = _batch_mahalanobis(its, q.loc - p.loc)
    return 0.5 * (2 * half_log_det(its) - p.log_det() + trace + apart - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_from_low_rank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _same_size(p, q)
    mine = p._unbroadcasted_scale_tril
    root = _solve_lower(q._capacitance_tril, q.scaled_factor())
    trace = _squares(mine * q.cov_diag.rsqrt().unsqueeze(-1)) - _squares(root @ mine)
    apart = q.squared_distance(q.loc - p.loc)
    return 0.5 * (q.log_det() - 2 * half_log_det(mine) + trace + apart - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _same_size(p, q)
    root = _solve_lower(q._capacitance_tril, q.scaled_factor())
    trace = (p.cov_diag / q.cov_diag).sum(-1) + _squares(p.cov_factor * q.cov_diag.rsqrt().unsqueeze(-1))
    trace = trace - _squares(root * p.cov_diag.sqrt().unsqueeze(-2)) - _squares(root @ p.cov_factor)
    apart = q.squared_distance(q.loc - p.loc)
    return 0.5 * (q.log_det() - p.log_det() + trace + apart - p.event_shape[0])
