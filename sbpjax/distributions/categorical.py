"""Categorical distributions: an index, a one-hot vector, counts of several trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.autograd import no_grad
from sbpjax.errors import DistributionError
from sbpjax.nn import functional as F

from . import constraints
from .discrete import Binomial, _Binary, _require_one_parameter
from .distribution import Distribution
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, where


class Categorical(Distribution):
    """The categorical distribution over the outcomes 0 to k - 1.

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
        _require_one_parameter("Categorical", probs, logits)
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

    support = constraints.dependent_property(
        lambda self: constraints.integer_interval(0, self._num_events - 1), is_discrete=True, event_dim=0
    )
    mean = property(lambda self: sbpjax.full(self.batch_shape, float("nan"), dtype=self.probs.dtype))
    mode = property(lambda self: self.probs.argmax(-1))
    variance = property(lambda self: sbpjax.full(self.batch_shape, float("nan"), dtype=self.probs.dtype))

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
    """The categorical distribution with one-hot vectors as outcomes.

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

    _param = property(lambda self: self._categorical._param)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameters."""
        return self._param.shape

    mean = property(lambda self: self.probs)
    mode = property(lambda self: self._to_one_hot(self._categorical.mode))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _to_one_hot(self, index: Tensor) -> Tensor:
        return F.one_hot(index, self._categorical._num_events).to(self.probs.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._to_one_hot(self._categorical.sample(sample_shape))

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
    """The multinomial distribution: counts of each outcome in a number of trials.

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

    support = constraints.dependent_property(
        lambda self: constraints.multinomial(self.total_count), is_discrete=True, event_dim=1
    )
    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
            drawn = self._categorical.sample((self.total_count, *shape))
            return F.one_hot(drawn, self.event_shape[0]).sum(0).to(self.probs.dtype)

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
