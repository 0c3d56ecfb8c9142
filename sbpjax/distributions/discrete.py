"""Discrete distributions: Bernoulli, geometric, binomial, Poisson, categorical, multinomial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.autograd import no_grad
from sbpjax.errors import DistributionError

from . import constraints
from .distribution import Distribution, ExponentialFamily
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, where


def _one(asked: str, probs: Any, logits: Any) -> None:
    if (probs is None) == (logits is None):
        rule = "Either `probs` or `logits` must be specified, but not both."
        seen = "both" if probs is not None else "neither"
        raise DistributionError(f"{asked}(probs, logits)", seen, rule, f"{asked}(logits=x)")


class _Binary(Distribution):
    """Base of the distributions with the probability of one of two outcomes."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}

    def __init__(self, probs: Any, logits: Any, validate_args: bool | None) -> None:
        _one(type(self).__name__, probs, logits)
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

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.shape


class Bernoulli(_Binary, ExponentialFamily):
    """1 with a probability, else 0.

    Args:
        probs: the probability.
        logits: its log-odds, instead.
        validate_args: whether arguments are checked.
    """

    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return where(self.probs == 0.5, float("nan"), (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return sbpjax.bernoulli(self.probs.expand(self._sample_size(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        logits, value = broadcast_all(self.logits, self._check_value(value))
        return -sbpjax.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return sbpjax.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = sbpjax.arange(2, dtype=self._param.dtype).reshape(2, *[1] * len(self.batch_shape))
        return values.expand(2, *self.batch_shape) if expand else values

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return natural_params[0].exp().log1p()

    _mean_carrier_measure = 0


class Geometric(_Binary):
    """How often 0 comes before the first 1.

    Args:
        probs: the probability of 1.
        logits: its log-odds, instead.
        validate_args: whether arguments are checked.
    """

    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return sbpjax.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

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
        bce = sbpjax.nn.functional.binary_cross_entropy_with_logits
        return bce(self.logits, self.probs, reduction="none") / self.probs


class Binomial(Distribution):
    """How many of a number of tries give 1.

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
        _one("Binomial", probs, logits)
        name = "probs" if probs is not None else "logits"
        given, count = broadcast_all(probs if probs is not None else logits, total_count)
        self.__dict__[name], self.total_count = given, count.to(given.dtype)
        super().__init__(given.shape, validate_args=validate_args)

    probs, logits, _param, param_shape = _Binary.probs, _Binary.logits, _Binary._param, _Binary.param_shape

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        from .draws import draw_binomial

        with no_grad():
            shape = self._sample_size(sample_shape)
            return draw_binomial(self.total_count.expand(shape), self.probs.expand(shape))

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


class Poisson(ExponentialFamily):
    """How many come in a unit of time.

    Args:
        rate: the mean.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return sbpjax.poisson(self.rate.expand(self._sample_size(sample_shape)))

    def log_prob(self, value: Any) -> Tensor:
        rate, value = broadcast_all(self.rate, self._check_value(value))
        return sbpjax.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return natural_params[0].exp()


class Categorical(Distribution):
    """One of several outcomes, 0 to k - 1.

    Args:
        probs: their weights along the last dim; they need not sum to 1.
        logits: the logarithms of weights, instead.
        validate_args: whether arguments are checked.

    Example:
        >>> action = Categorical(logits=policy(state)).sample()
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        _one("Categorical", probs, logits)
        given = probs if probs is not None else logits
        if given.ndim < 1:
            name = "probs" if probs is not None else "logits"
            rule = f"`{name}` parameter must be at least one-dimensional."
            raise DistributionError("Categorical(...)", "0-d", rule, f"Categorical({name}=x[None])")
        if probs is not None:
            self.__dict__["probs"] = probs / probs.sum(-1, True)
        else:
            self.__dict__["logits"] = logits - logits.logsumexp(-1, True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    _param, param_shape = _Binary._param, _Binary.param_shape

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return sbpjax.full(self.batch_shape, float("nan"), dtype=self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return sbpjax.full(self.batch_shape, float("nan"), dtype=self.probs.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape = self._sample_size(sample_shape)
            logits = self.logits.expand(*shape, self._num_events)
            u = sbpjax.rand_like(logits).clamp(min=sbpjax.finfo(logits.dtype).tiny)
            return (logits - (-u.log()).log()).argmax(-1)  # the largest of logits with Gumbel noise

    def log_prob(self, value: Any) -> Tensor:
        value = self._check_value(value).long()
        shape = sbpjax.broadcast_shapes(tuple(value.shape), tuple(self.batch_shape))
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, value.expand(shape).unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=sbpjax.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = sbpjax.arange(self._num_events).reshape(-1, *[1] * len(self.batch_shape))
        return values.expand(self._num_events, *self.batch_shape) if expand else values


class OneHotCategorical(Distribution):
    """One of several outcomes, as a vector with a single 1.

    Args:
        probs: their weights along the last dim.
        logits: the logarithms of weights, instead.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        k = self._categorical._num_events
        super().__init__(self._categorical.batch_shape, (k,), validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def param_shape(self) -> Any:
        """The shape of the parameters."""
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _hot(self, index: Tensor) -> Tensor:
        return sbpjax.nn.functional.one_hot(index, self._categorical._num_events).to(self.probs.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        return self._categorical.log_prob(self._check_value(value).argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        k = self._categorical._num_events
        values = sbpjax.eye(k, dtype=self.probs.dtype).reshape(k, *[1] * len(self.batch_shape), k)
        return values.expand(k, *self.batch_shape, k) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose draws pass the gradient on to the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """How often each of several outcomes comes in a number of tries.

    Args:
        total_count: the number of tries.
        probs: the weights of the outcomes along the last dim.
        logits: the logarithms of weights, instead.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, (self._categorical._num_events,), validate_args)

    probs, logits = OneHotCategorical.probs, OneHotCategorical.logits
    _param, param_shape = OneHotCategorical._param, OneHotCategorical.param_shape

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
            drawn = self._categorical.sample((self.total_count, *shape))
            return sbpjax.nn.functional.one_hot(drawn, self.event_shape[0]).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Any) -> Tensor:
        logits, value = broadcast_all(self.logits, self._check_value(value))
        never = where((value == 0) & (logits == -float("inf")), 0.0, logits)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (never * value).sum(-1)

    def entropy(self) -> Tensor:
        n = self.total_count
        factor = sbpjax.tensor(float(n + 1), dtype=self.probs.dtype).lgamma()
        binomial = Binomial(n, probs=self.probs, validate_args=False)
        values = sbpjax.arange(n + 1, dtype=self.probs.dtype)[1:].reshape(-1, *[1] * self.probs.ndim)
        weight = binomial.log_prob(values).exp()
        return n * self._categorical.entropy() - factor + (weight * (values + 1).lgamma()).sum([0, -1])
