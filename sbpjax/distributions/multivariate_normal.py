"""`MultivariateNormal`: by covariance, precision or Cholesky factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal as _standard_normal
from .utils import lazy_property, noise


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Return products of matrices and vectors of batches that broadcast."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def solve_lower(lower: Tensor, x: Tensor) -> Tensor:
    """Return ``lower⁻¹ x`` of vectors along the last dim."""
    shape = sbpjax.broadcast_shapes(tuple(lower.shape[:-1]), tuple(x.shape))
    lower = lower.expand(*shape, shape[-1])
    return sbpjax.linalg.solve_triangular(lower, x.expand(shape).unsqueeze(-1), upper=False).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:
    """Return ``xᵀ (L Lᵀ)⁻¹ x`` of vectors along the last dim, with lower triangular L."""
    return solve_lower(bL, bx).square().sum(-1)


def _precision_to_scale_tril(P: Tensor) -> Tensor:
    """Return the lower Cholesky factor of the inverse of matrices."""
    flipped = sbpjax.linalg.cholesky(P.flip(-2, -1)).flip(-2, -1).transpose(-2, -1)
    eye = sbpjax.ones_like(flipped[..., 0].detach()).diag_embed()
    return sbpjax.linalg.solve_triangular(flipped, eye, upper=False)


def half_log_det(lower: Tensor) -> Tensor:
    """Return the logarithm of the determinant of triangular matrices, half of that of their squares."""
    return lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(Distribution):
    """The multivariate normal distribution.

    Args:
        loc: the mean, `(..., k)`.
        covariance_matrix: `(..., k, k)`; one of the three.
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            rule = "loc must be at least one-dimensional."
            raise DistributionError("MultivariateNormal(loc, ...)", "0-d", rule, "loc[None]")
        three = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: value for name, value in three.items() if value is not None}
        if len(given) != 1:
            rule = "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            fix = "MultivariateNormal(loc, scale_tril=l)"
            raise DistributionError("MultivariateNormal(...)", f"{[*given]}", rule, fix)
        ((name, matrix),) = given.items()
        if matrix.ndim < 2:
            rule = f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            raise DistributionError(f"MultivariateNormal({name})", f"{tuple(matrix.shape)}", rule, "(k, k)")
        batch = sbpjax.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.__dict__[name] = matrix.expand(*batch, *matrix.shape[-2:])
        self.loc = loc.expand(*batch, loc.shape[-1])
        super().__init__(batch, loc.shape[-1:], validate_args)
        factor = {"covariance_matrix": sbpjax.linalg.cholesky, "precision_matrix": _precision_to_scale_tril}
        lower = factor[name](matrix) if name in factor else matrix
        self._unbroadcasted_scale_tril = lower.expand(*batch, *lower.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(*self.batch_shape, *self.event_shape, *self.event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.scale_tril @ self.scale_tril.transpose(-2, -1)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return sbpjax.cholesky_inverse(self.scale_tril)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)
    variance = property(
        lambda self: self._unbroadcasted_scale_tril.square().sum(-1).expand(*self.batch_shape, *self.event_shape)
    )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = noise(self._sample_size(sample_shape), self.loc)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, drawn)

    def log_prob(self, value: Any) -> Tensor:
        lower = self._unbroadcasted_scale_tril
        apart = _batch_mahalanobis(lower, self._check_value(value) - self.loc)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + apart) - half_log_det(lower)

    def entropy(self) -> Tensor:
        half = half_log_det(self._unbroadcasted_scale_tril)
        return (0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + half).expand(self.batch_shape)
