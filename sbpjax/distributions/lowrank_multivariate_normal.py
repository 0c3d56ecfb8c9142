"""`LowRankMultivariateNormal`: multivariate normal with covariance ``W Wᵀ + D``, low-rank plus diagonal.

Only the capacitance matrix ``C = I + Wᵀ D⁻¹ W``, as large as there are columns, is factored:

    log det(W Wᵀ + D) = log det C + log det D                        matrix determinant lemma
    (W Wᵀ + D)⁻¹ = D⁻¹ - D⁻¹ W C⁻¹ Wᵀ D⁻¹                            Woodbury identity
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError

from . import constraints
from .distribution import Distribution, noise
from .multivariate_normal import _batch_mahalanobis, _batch_mv, half_log_det
from .utils import lazy_property


def _plus_eye(matrix: Tensor) -> Tensor:
    return matrix + sbpjax.ones_like(matrix[..., 0].detach()).diag_embed()


class LowRankMultivariateNormal(Distribution):
    """Vectors of normal numbers whose covariance is ``cov_factor @ cov_factor.mT + diag(cov_diag)``.

    Args:
        loc: the mean, `(..., k)`.
        cov_factor: `(..., k, m)`.
        cov_diag: `(..., k)`.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        shapes = [tuple(value.shape) for value in (loc, cov_factor, cov_diag)]
        if len(shapes[0]) < 1 or len(shapes[1]) < 2 or not shapes[0][-1:] == shapes[1][-2:-1] == shapes[2][-1:]:
            rule = "loc must be at least one-dimensional (..., k), cov_factor must be a batch of matrices with shape "
            rule += "k x m, cov_diag must be a batch of vectors with shape k"
            raise DistributionError("LowRankMultivariateNormal(...)", f"{shapes}", rule, "(k,), (k, m), (k,)")
        try:
            batch = sbpjax.broadcast_shapes(shapes[0][:-1], shapes[1][:-2], shapes[2][:-1])
        except (RuntimeError, ValueError) as error:
            rule = f"Incompatible batch shapes: loc {shapes[0]}, cov_factor {shapes[1]}, cov_diag {shapes[2]}"
            asked = "LowRankMultivariateNormal(...)"
            raise DistributionError(asked, f"{shapes}", rule, "batch shapes that broadcast") from error
        self.loc = loc.expand(*batch, *shapes[0][-1:])
        self.cov_factor = cov_factor.expand(*batch, *shapes[1][-2:])
        self.cov_diag = cov_diag.expand(*batch, *shapes[2][-1:])
        super().__init__(batch, shapes[0][-1:], validate_args)
        scaled = cov_factor.transpose(-2, -1) / cov_diag.unsqueeze(-2)
        lower = sbpjax.linalg.cholesky(_plus_eye(scaled @ cov_factor))
        self._capacitance_tril = lower.expand(*batch, *lower.shape[-2:])

    @property
    def _unbroadcasted_cov_factor(self) -> Tensor:
        return self.cov_factor

    @property
    def _unbroadcasted_cov_diag(self) -> Tensor:
        return self.cov_diag

    def scaled_factor(self) -> Tensor:
        """Return ``Wᵀ D⁻¹``."""
        return self.cov_factor.transpose(-2, -1) / self.cov_diag.unsqueeze(-2)

    def log_det(self) -> Tensor:
        """Return the logarithm of the covariance's determinant."""
        return 2 * half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def squared_distance(self, x: Tensor) -> Tensor:
        """Return ``xᵀ (W Wᵀ + D)⁻¹ x``."""
        inside = _batch_mahalanobis(self._capacitance_tril, _batch_mv(self.scaled_factor(), x))
        return (x.square() / self.cov_diag).sum(-1) - inside

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        return self.cov_factor.square().sum(-1) + self.cov_diag

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance, by that of ``I + D^-½ W Wᵀ D^-½``, which is well conditioned."""
        root = self.cov_diag.sqrt().unsqueeze(-1)
        scaled = self.cov_factor / root
        return root * sbpjax.linalg.cholesky(_plus_eye(scaled @ scaled.transpose(-2, -1)))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.cov_factor @ self.cov_factor.transpose(-2, -1) + self.cov_diag.diag_embed()

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        root = sbpjax.linalg.solve_triangular(self._capacitance_tril, self.scaled_factor(), upper=False)
        return self.cov_diag.reciprocal().diag_embed() - root.transpose(-2, -1) @ root

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._sample_size(sample_shape)
        columns = noise((*shape[:-1], self.cov_factor.shape[-1]), self.cov_factor[..., 0, :])
        return self.loc + _batch_mv(self.cov_factor, columns) + self.cov_diag.sqrt() * noise(shape, self.loc)

    def log_prob(self, value: Any) -> Tensor:
        apart = self.squared_distance(self._check_value(value) - self.loc)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + self.log_det() + apart)

    def entropy(self) -> Tensor:
        return 0.5 * (self.event_shape[0] * (1 + math.log(2 * math.pi)) + self.log_det())
