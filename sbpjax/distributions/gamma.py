"""Gamma distribution, and distributions derived from it: chi-squared, beta, Dirichlet, Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError
from sbpjax.func import draw

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, noise, where


def standard_gamma(key: jax.Array, concentration: jax.Array, /) -> jax.Array:
    """Return draws of the gamma distribution of rate 1, differentiable in the concentration."""
    return jax.random.gamma(key, concentration, concentration.shape, concentration.dtype)


def draw_gamma(concentration: Tensor, shape: Sequence[int]) -> Tensor:
    """Return draws of a shape, with gradient."""
    value = draw(standard_gamma, concentration.expand(shape))
    return value.clamp(min=sbpjax.finfo(value.dtype).tiny)


class Gamma(Distribution):
    """The gamma distribution.

    Args:
        concentration: how many are summed.
        rate: how many there are per unit of time.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.square())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return draw_gamma(self.concentration, self._sample_size(sample_shape)) / self.rate

    def log_prob(self, value: Any) -> Tensor:
        value = self._check_value(value)
        a, b = self.concentration, self.rate
        return sbpjax.xlogy(a, b) + sbpjax.xlogy(a - 1, value) - b * value - a.lgamma()

    def cdf(self, value: Any) -> Tensor:
        return sbpjax.special.gammainc(self.concentration, self.rate * self._check_value(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1 - a) * a.digamma()


class Chi2(Gamma):
    """The chi-squared distribution: the sum of squared normal variables.

    Args:
        df: how many.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, sbpjax.full_like(df.detach(), 0.5), validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class Dirichlet(Distribution):
    """The Dirichlet distribution over vectors of probabilities.

    Args:
        concentration: of each, along the last dim.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            rule = "`concentration` parameter must be at least one-dimensional."
            raise DistributionError("Dirichlet(concentration)", "0-d", rule, "Dirichlet(x[None])")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        less = (self.concentration - 1).clamp(min=0.0)
        mode = less / less.sum(-1, True)
        none = (self.concentration < 1).all(-1, True)
        top = sbpjax.nn.functional.one_hot(mode.nan_to_num(0.0).argmax(-1), mode.shape[-1]).to(mode.dtype)
        return where(none, top, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = draw_gamma(self.concentration, self._sample_size(sample_shape))
        return drawn / drawn.sum(-1, True)

    def log_prob(self, value: Any) -> Tensor:
        value = self._check_value(value)
        a = self.concentration
        return sbpjax.xlogy(a - 1, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        rest = ((a - 1) * a.digamma()).sum(-1)
        return a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma() - rest


class Beta(Distribution):
    """The beta distribution over probabilities.

    Args:
        concentration1: of 1.
        concentration0: of 0.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _dirichlet(self) -> Dirichlet:
        return Dirichlet(sbpjax.stack([self.concentration1, self.concentration0], -1), validate_args=False)

    mean = property(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet().mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet().rsample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> Tensor:
        value = self._check_value(value)
        return self._dirichlet().log_prob(sbpjax.stack([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet().entropy()


class StudentT(Distribution):
    """Student's t-distribution.

    Args:
        df: the degrees of freedom.
        loc: the median.
        scale: the scale.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    mean = property(lambda self: where(self.df > 1, self.loc, math.nan))
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.scale.square() * self.df / (self.df - 2)
        return where(self.df > 2, finite, where(self.df > 1, math.inf, math.nan))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._sample_size(sample_shape)
        spread = draw_gamma(0.5 * self.df, shape) * 2
        return self.loc + self.scale * noise(shape, self.loc) * (spread / self.df).rsqrt()

    def log_prob(self, value: Any) -> Tensor:
        y = (self._check_value(value) - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        norm = norm + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1)).lgamma()
        return -0.5 * (self.df + 1) * (y.square() / self.df).log1p() - norm

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + beta
