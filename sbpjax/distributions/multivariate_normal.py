"""`MultivariateNormal`: normal vectors, by covariance, precision or Cholesky factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax.errors import DistributionError, message
from sbpjax.tensor import Tensor

from . import constraints
from .distribution import Distribution, noise
from .utils import lazy_property


def solve_lower(lower: Tensor, x: Tensor) -> Tensor:
    """Return ``lower⁻¹ x`` of vectors along the last dim."""
    shape = sbpjax.broadcast_shapes(tuple(lower.shape[:-1]), tuple(x.shape))
    lower = lower.expand(*shape, shape[-1])
    return sbpjax.linalg.solve_triangular(lower, x.expand(shape).unsqueeze(-1), upper=False).squeeze(-1)


class MultivariateNormal(Distribution):
    """Vectors of normal numbers that depend on each other.

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
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1 or loc.ndim < 1:
            rule = "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified"
            fix = "MultivariateNormal(loc, scale_tril=l)"
            raise DistributionError(message("MultivariateNormal(...)", f"{sorted(given)}", rule, fix))
        ((name, matrix),) = given.items()
        batch = sbpjax.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.__dict__[name] = matrix.expand(*batch, *matrix.shape[-2:])
        self.loc = loc.expand(*batch, loc.shape[-1])
        super().__init__(batch, loc.shape[-1:], validate_args)
        if name == "scale_tril":
            self._lower = matrix
        elif name == "covariance_matrix":
            self._lower = sbpjax.linalg.cholesky(matrix)
        else:
            flipped = sbpjax.linalg.cholesky(matrix.flip(-2, -1)).flip(-2, -1).transpose(-2, -1)
            eye = sbpjax.eye(loc.shape[-1], dtype=loc.dtype).expand(flipped.shape)
            self._lower = sbpjax.linalg.solve_triangular(flipped, eye, upper=False)
        self._lower = self._lower.expand(*batch, *self._lower.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._lower

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self.scale_tril @ self.scale_tril.transpose(-2, -1)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return sbpjax.linalg.inv(self.covariance_matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self.scale_tril.square().sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = noise(self._extended(sample_shape), self.loc)
        return self.loc + (self.scale_tril @ drawn.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Any) -> Tensor:
        apart = solve_lower(self.scale_tril, self._checked(value) - self.loc).square().sum(-1)
        return -0.5 * (self.event_shape[0] * math.log(2 * math.pi) + apart) - self._half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1 + math.log(2 * math.pi)) + self._half_log_det()
