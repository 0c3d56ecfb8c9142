"""Distributions derived by powers: Weibull, Pareto, Kumaraswamy, inverse gamma; and generalized Pareto."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor

from . import constraints
from .continuous import Exponential, Uniform
from .distribution import Distribution, noise
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform, PowerTransform
from .utils import broadcast_all, euler_constant, where


class Weibull(TransformedDistribution):
    """Times until something fails, at a rate that changes as a power of the time.

    Args:
        scale: the time by which all but a share of 1/e fail.
        concentration: the exponent; at 1 the rate is constant, above it grows.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(sbpjax.ones_like(self.scale.detach()), validate_args)
        super().__init__(base, _power_and_scale(self.concentration_reciprocal, self.scale), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.transforms = _power_and_scale(new.concentration_reciprocal, new.scale)
        return new

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        return self.scale.square() * ((1 + 2 * r).lgamma().exp() - (2 * (1 + r).lgamma()).exp())

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1


def _power_and_scale(exponent: Tensor, scale: Tensor) -> list:
    return [PowerTransform(exponent), AffineTransform(0, scale)]


class Pareto(TransformedDistribution):
    """Numbers above a scale of which ever fewer are larger, by a power.

    Args:
        scale: the smallest number.
        alpha: the exponent.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        parts = [ExpTransform(), AffineTransform(0, self.scale)]
        super().__init__(Exponential(self.alpha, validate_args), parts, validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()


class GeneralizedPareto(Distribution):
    """What of a number lies beyond a threshold.

    Args:
        loc: the threshold.
        scale: the scale.
        concentration: how heavy the tail is: 0 is an exponential, below it numbers have an upper bound.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        bounded = self.concentration < 0
        upper = self.loc - self.scale / where(bounded, self.concentration, -1.0)
        return constraints.interval(self.loc, where(bounded, upper, math.inf))

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        return where(finite, self.loc + self.scale / (1 - where(finite, self.concentration, 0.5)), math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        less = 1 - where(finite, self.concentration, 0.25)
        return where(finite, self.scale.square() / (less.square() * (2 * less - 1)), math.nan)

    def _exponent(self) -> tuple[Tensor, Tensor]:
        """Return where the distribution is an exponential, and the concentration with ones there."""
        none = sbpjax.isclose(self.concentration, sbpjax.zeros_like(self.concentration))
        return none, where(none, 1.0, self.concentration)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(noise(self._sample_size(sample_shape), self.loc, "rand_like"))

    def log_prob(self, value: Any) -> Tensor:
        z = (self._check_value(value) - self.loc) / self.scale
        none, c = self._exponent()
        power = 1 / c + 1
        return -self.scale.log() - where(none, z, where(power == 0, power, power * (c * z).log1p()))

    def log_survival_function(self, value: Any) -> Tensor:
        """Return the logarithm of the probability of more than a value."""
        z = (self._check_value(value) - self.loc) / self.scale
        none, c = self._exponent()
        return where(none, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Any) -> Tensor:
        """Return the logarithm of the probability of at most a value."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Any) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Any) -> Tensor:
        none, c = self._exponent()
        left = (-value).log1p()
        return where(none, self.loc - self.scale * left, self.loc + self.scale / c * (-c * left).expm1())

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


class Kumaraswamy(TransformedDistribution):
    """A probability, much as the beta distribution's, whose distribution function is simple.

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
        like = self.concentration0.detach()
        base = Uniform(sbpjax.zeros_like(like), sbpjax.ones_like(like), validate_args)
        powers = [PowerTransform(self.concentration0.reciprocal()), PowerTransform(self.concentration1.reciprocal())]
        super().__init__(base, [powers[0], AffineTransform(1.0, -1.0), powers[1]], validate_args)

    def _moment(self, n: int) -> Tensor:
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0  # PyTorch's is NaN also where there is one
        return where((a < 1) | (b < 1), math.nan, ((a - 1) / (a * b - 1)) ** a.reciprocal())

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class InverseGamma(TransformedDistribution):
    """One over a number of the gamma distribution.

    Args:
        concentration: of the gamma distribution.
        rate: of the gamma distribution.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        inverse = PowerTransform(sbpjax.full_like(base.rate.detach(), -1.0))
        super().__init__(base, inverse, validate_args)

    @property
    def concentration(self) -> Tensor:
        """The concentration of the gamma distribution."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma distribution."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        a = self.concentration
        return where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
