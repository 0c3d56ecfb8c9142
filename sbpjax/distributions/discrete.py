"""Discrete distributions: Bernoulli, geometric, binomial, negative binomial, Poisson."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

import sbpjax
from sbpjax import Tensor
from sbpjax.autograd import no_grad
from sbpjax.errors import DistributionError
from sbpjax.func import draw
from sbpjax.nn import functional as F

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, where


def _require_one_parameter(operation: str, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        rule = "Either `probs` or `logits` must be specified, but not both."
        seen = "both" if probs is not None else "neither"
        raise DistributionError(f"{operation}(probs, logits)", seen, rule, f"{operation}(logits=x)")


class _Binary(Distribution):
    """Base of the distributions with the probability of one of two outcomes."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs: Any, logits: Any, validate_args: bool | None) -> None:
        _require_one_parameter(type(self).__name__, probs, logits)
        if probs is not None:
            (self.__dict__["probs"],) = broadcast_all(probs)
        else:
            (self.__dict__["logits"],) = broadcast_all(logits)
        given = self.__dict__["probs" if probs is not None else "logits"]
        super().__init__(given.shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return logits_to_probs(self.logits, True)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds of 1."""
        return probs_to_logits(self.probs, True)

    _param = property(lambda self: self.__dict__["probs" if "probs" in self.__dict__ else "logits"])

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.shape


class Bernoulli(_Binary):
    """The Bernoulli distribution: 1 with a given probability, otherwise 0.

    Args:
        probs: the probability.
        logits: its log-odds, instead.
        validate_args: whether arguments are checked.
    """

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    mode = property(lambda self: where(self.probs == 0.5, float("nan"), (self.probs >= 0.5).to(self.probs.dtype)))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return sbpjax.bernoulli(self.probs.expand(self._sample_size(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        logits, value = broadcast_all(self.logits, self._check_value(value))
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = sbpjax.arange(2, dtype=self._param.dtype).reshape(2, *[1] * len(self.batch_shape))
        return values.expand(2, *self.batch_shape) if expand else values


class Geometric(_Binary):
    """The geometric distribution: the number of failures before the first success.

    Args:
        probs: the probability of 1.
        logits: its log-odds, instead.
        validate_args: whether arguments are checked.
    """

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)

    mean = property(lambda self: 1 / self.probs - 1)
    mode = property(lambda self: sbpjax.zeros_like(self.probs))
    variance = property(lambda self: (1 / self.probs - 1) / self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            probs = self.probs.expand(self._sample_size(sample_shape))
            u = sbpjax.rand_like(probs).clamp(min=sbpjax.finfo(probs.dtype).tiny)
            return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Any) -> Tensor:
        value, probs = broadcast_all(self._check_value(value), self.probs)
        never = where((probs == 1) & (value == 0), 0.0, probs)
        return value * (-never).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        bce = F.binary_cross_entropy_with_logits
        return bce(self.logits, self.probs, reduction="none") / self.probs


def binomial(key: jax.Array, count: jax.Array, probs: jax.Array, /) -> jax.Array:
    """Return how many of `count` tries succeed."""
    return jax.random.binomial(key, count, probs, dtype=probs.dtype)


class Binomial(Distribution):
    """The binomial distribution: the number of successes in a number of trials.

    Args:
        total_count: the number of tries.
        probs: the probability of 1.
        logits: its log-odds, instead.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        _require_one_parameter("Binomial", probs, logits)
        name = "probs" if probs is not None else "logits"
        given, count = broadcast_all(probs if probs is not None else logits, total_count)
        self.__dict__[name], self.total_count = given, count.to(given.dtype)
        super().__init__(given.shape, validate_args=validate_args)

    probs, logits, _param, param_shape = _Binary.probs, _Binary.logits, _Binary._param, _Binary.param_shape

    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self.total_count), is_discrete=True, event_dim=0
    )
    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().minimum(self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape = self._sample_size(sample_shape)
            return draw(binomial, self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Tensor:
        value = self._check_value(value)
        n, logits = self.total_count, self.logits
        choose = (value + 1).lgamma() + (n - value + 1).lgamma() - (n + 1).lgamma()
        norm = n * logits.clamp(min=0) + n * (-logits.abs()).exp().log1p()
        return value * logits - choose - norm

    has_enumerate_support = True

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = int(self.total_count.max().item())
        if not (self.total_count == count).all().item():
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = sbpjax.arange(1 + count, dtype=self.probs.dtype).reshape(-1, *[1] * len(self.batch_shape))
        return values.expand(1 + count, *self.batch_shape) if expand else values

    def entropy(self) -> Tensor:
        log_prob = self.log_prob(self.enumerate_support())
        return -(log_prob.exp() * log_prob).sum(0)


class Poisson(Distribution):
    """The Poisson distribution: the number of events in a unit of time.

    Args:
        rate: the mean.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return sbpjax.poisson(self.rate.expand(self._sample_size(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        rate, value = broadcast_all(self.rate, self._check_value(value))
        return sbpjax.xlogy(value, rate) - rate - (value + 1).lgamma()


class NegativeBinomial(Distribution):
    """The negative binomial distribution: the number of successes before a number of failures.

    Args:
        total_count: the number of failures; it need not be an integer.
        probs: the probability of a success.
        logits: its log-odds, instead.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        _require_one_parameter("NegativeBinomial", probs, logits)
        name = "probs" if probs is not None else "logits"
        count, given = broadcast_all(total_count, probs if probs is not None else logits)
        self.__dict__[name], self.total_count = given, count.to(given.dtype)
        super().__init__(given.shape, validate_args=validate_args)

    probs, logits, _param, param_shape = _Binary.probs, _Binary.logits, _Binary._param, _Binary.param_shape

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / (-self.logits).sigmoid())

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)  # a count of 0 is none of its own

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return sbpjax.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        value, n = self._check_value(value), self.total_count
        each = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        return each + where(n + value == 0, 0.0, ways)
