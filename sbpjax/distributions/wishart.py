"""`Wishart`: distribution of positive definite matrices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError

from . import constraints
from .distribution import ExponentialFamily, noise
from .gamma import Chi2
from .multivariate_normal import half_log_det, inverse_of_square, lower_of, one_matrix
from .utils import is_known, lazy_property, where


class Wishart(ExponentialFamily):
    """Sums of ``x xᵀ`` of `df` normal vectors x.

    Args:
        df: how many are summed; more than k - 1, not necessarily an integer.
        covariance_matrix: of the vectors, `(..., k, k)`; one of the three.
        precision_matrix: its inverse.
        scale_tril: its lower Cholesky factor.
        validate_args: whether arguments are checked.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = one_matrix("Wishart", covariance_matrix, precision_matrix, scale_tril)
        k = matrix.shape[-1]
        df = df if isinstance(df, Tensor) else sbpjax.full_like(matrix[..., 0, 0].detach(), df)
        batch = sbpjax.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(df.shape))
        self.df = df.expand(batch)
        self.__dict__[name] = matrix.expand(*batch, k, k)
        if is_known(self.df) and (self.df <= k - 1).any().item():
            rule = f"Value of df={df} expected to be greater than ndim - 1 = {k - 1}."
            raise DistributionError("Wishart(df, ...)", f"{df}", rule, f"df={k}")
        if is_known(self.df) and (self.df < k).any().item():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur.", stacklevel=2)
        super().__init__(batch, (k, k), validate_args)
        lower = lower_of(name, matrix)
        self._unbroadcasted_scale_tril = lower.expand(*batch, k, k)

    @property
    def arg_constraints(self) -> dict[str, Any]:  # type: ignore[override]
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the vectors' covariance."""
        return self._unbroadcasted_scale_tril

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The vectors' covariance."""
        return self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.transpose(-2, -1)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the vectors' covariance."""
        return inverse_of_square(self._unbroadcasted_scale_tril)

    def _factor(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self) -> Tensor:
        return self._factor(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        more = self.df - self.event_shape[-1] - 1
        return self._factor(where(more > 0, more, math.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._factor(self.df) * (self.covariance_matrix.square() + products)

    def _rows(self) -> Tensor:
        """Return 0, ..., k - 1, in the shape of a batch of vectors."""
        return sbpjax.ones_like(self._unbroadcasted_scale_tril[..., 0].detach()).cumsum(-1) - 1

    def _bartlett_sampling(self, sample_shape: Sequence[int]) -> Tensor:
        """Return L A Aᵀ Lᵀ, of A with normal numbers below roots of chi-squared ones of df, df - 1, ...."""
        diagonal = Chi2(self.df.unsqueeze(-1) - self._rows(), validate_args=False).rsample(sample_shape)
        diagonal = diagonal.clamp(min=sbpjax.finfo(diagonal.dtype).eps).sqrt()
        below = noise(self._sample_size(sample_shape), self._unbroadcasted_scale_tril).tril(-1)
        root = self._unbroadcasted_scale_tril @ (below + diagonal.diag_embed())
        return root @ root.transpose(-2, -1)

    def rsample(self, sample_shape: Sequence[int] = (), max_try_correction: int | None = None) -> Tensor:
        """Return draws; those that rounding made singular are drawn anew, up to `max_try_correction` (10) times."""
        drawn = self._bartlett_sampling(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            singular = ~self.support.check(drawn.detach())
            if not is_known(singular) or not singular.any().item():
                break
            drawn = where(self._factor(singular), self._bartlett_sampling(sample_shape), drawn)
        return drawn

    def log_prob(self, value: Any) -> Tensor:
        value, nu, k = self._check_value(value), self.df, self.event_shape[-1]
        lower = self._unbroadcasted_scale_tril
        trace = (self.precision_matrix * value).flatten(-2).sum(-1)  # of the precision times the value, symmetric both
        norm = nu * (0.5 * k * math.log(2) + half_log_det(lower)) + sbpjax.mvlgamma(nu / 2, k)
        return (nu - k - 1) / 2 * sbpjax.linalg.slogdet(value)[1] - trace / 2 - norm

    def entropy(self) -> Tensor:
        nu, k = self.df, self.event_shape[-1]
        digamma = ((nu.unsqueeze(-1) - self._rows()) / 2).digamma().sum(-1)
        first = (k + 1) * (0.5 * k * math.log(2) + half_log_det(self._unbroadcasted_scale_tril))
        return first + sbpjax.mvlgamma(nu / 2, k) - (nu - k - 1) / 2 * digamma + nu * k / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self.event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        k = self.event_shape[-1]
        half = y + (k + 1) / 2
        return half * (k * math.log(2) - sbpjax.linalg.slogdet(-2 * x)[1]) + sbpjax.mvlgamma(half, k)
