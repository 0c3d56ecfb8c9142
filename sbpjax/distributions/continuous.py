"""Continuous distributions: normal, log-normal, uniform, exponential, Laplace, Gumbel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor

from . import constraints
from .derived import TransformedDistribution
from .distribution import Distribution
from .transforms import ExpTransform
from .utils import broadcast_all, euler_constant, noise

_LOG_2PI = math.log(2 * math.pi)


class _LocationScale(Distribution):
    """Base of the distributions of ``loc + scale * x``, of an x without parameters."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    mode = property(lambda self: self.loc)


class Normal(_LocationScale):
    """The normal distribution.

    Args:
        loc: the mean.
        scale: the standard deviation.
        validate_args: whether arguments are checked.
    """

    mean = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.square())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + noise(self._sample_size(sample_shape), self.loc) * self.scale

    def log_prob(self, value: Any) -> Tensor:
        value = self._check_value(value)
        return -((value - self.loc).square()) / (2 * self.variance) - self.scale.log() - _LOG_2PI / 2

    def cdf(self, value: Any) -> Tensor:
        return 0.5 * (1 + sbpjax.erf((self._check_value(value) - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Tensor:
        return self.loc + self.scale * sbpjax.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * _LOG_2PI + self.scale.log()


class LogNormal(TransformedDistribution):
    """The log-normal distribution: the exponential of a normal variable.

    Args:
        loc: the mean of its logarithm.
        scale: the standard deviation of its logarithm.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    mean = property(lambda self: (self.loc + self.scale.square() / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())
    variance = property(lambda self: self.scale.square().expm1() * (2 * self.loc + self.scale.square()).exp())

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class Uniform(Distribution):
    """The uniform distribution on the interval from `low` to `high`.

    Args:
        low: the lower bound.
        high: the upper bound.
        validate_args: whether arguments are checked.
    """

    has_rsample = True
    arg_constraints = property(
        lambda self: {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}
    )

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    support = constraints.dependent_property(
        lambda self: constraints.interval(self.low, self.high), is_discrete=False, event_dim=0
    )
    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: self.high * math.nan)
    stddev = property(lambda self: (self.high - self.low) / 12**0.5)
    variance = property(lambda self: (self.high - self.low).square() / 12)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.low + noise(self._sample_size(sample_shape), self.low, "rand_like") * (self.high - self.low)

    def log_prob(self, value: Any) -> Tensor:
        value = self._check_value(value)
        inside = (self.low <= value) & (self.high > value)
        return inside.to(self.low.dtype).log() - (self.high - self.low).log()

    def cdf(self, value: Any) -> Tensor:
        return ((self._check_value(value) - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Any) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(Distribution):
    """The exponential distribution.

    Args:
        rate: how many per unit of time.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: sbpjax.zeros_like(self.rate))
    stddev = property(lambda self: self.rate.reciprocal())
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return -(-noise(self._sample_size(sample_shape), self.rate, "rand_like")).log1p() / self.rate

    def log_prob(self, value: Any) -> Tensor:
        return self.rate.log() - self.rate * self._check_value(value)

    def cdf(self, value: Any) -> Tensor:
        return 1 - (-self.rate * self._check_value(value)).exp()

    def icdf(self, value: Any) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class Laplace(_LocationScale):
    """The Laplace distribution.

    Args:
        loc: the mean.
        scale: the mean distance to it.
        validate_args: whether arguments are checked.
    """

    mean = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale.square())
    stddev = property(lambda self: 2**0.5 * self.scale)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = noise(self._sample_size(sample_shape), self.loc, "rand_like") - 0.5
        u = u.clamp(min=-0.5 + sbpjax.finfo(u.dtype).tiny)
        return self.loc - self.scale * u.sign() * (-2 * u.abs()).clamp(min=-1 + sbpjax.finfo(u.dtype).eps).log1p()

    def log_prob(self, value: Any) -> Tensor:
        return -(2 * self.scale).log() - (self._check_value(value) - self.loc).abs() / self.scale

    def cdf(self, value: Any) -> Tensor:
        apart = self._check_value(value) - self.loc
        return 0.5 - 0.5 * apart.sign() * (-apart.abs() / self.scale).expm1()

    def icdf(self, value: Any) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Gumbel(_LocationScale):
    """The Gumbel distribution.

    Args:
        loc: the mode.
        scale: the scale.
        validate_args: whether arguments are checked.
    """

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.square())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        limits = sbpjax.finfo(self.loc.dtype)
        u = noise(self._sample_size(sample_shape), self.loc, "rand_like").clamp(limits.tiny, 1 - limits.eps)
        return self.loc - self.scale * (-u.log()).log()

    def log_prob(self, value: Any) -> Tensor:
        y = (self.loc - self._check_value(value)) / self.scale
        return y - y.exp() - self.scale.log()

    def cdf(self, value: Any) -> Tensor:
        return (-((self.loc - self._check_value(value)) / self.scale).exp()).exp()

    def icdf(self, value: Any) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
