"""Relaxed distributions (Gumbel-softmax): differentiable samples near discrete outcomes, by temperature.

Source: Maddison, Mnih, Teh: The Concrete Distribution (2017); Jang, Gu, Poole: Gumbel-Softmax (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor

from . import constraints
from .discrete import Categorical, OneHotCategorical, _Binary
from .distribution import Distribution, noise
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs


def _tensor_like(value: Any, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else sbpjax.full_like(like.detach(), float(value))


class LogitRelaxedBernoulli(_Binary):
    """The log-odds of `RelaxedBernoulli`'s values.

    Args:
        temperature: how far from 0 and 1 the values are.
        probs: the probability of 1.
        logits: its log-odds, instead.
        validate_args: whether arguments are checked.
    """

    support = constraints.real
    has_rsample = True
    _expanded_apart = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._sample_size(sample_shape)
        probs, u = clamp_probs(self.probs.expand(shape)), clamp_probs(noise(shape, self.probs, "rand_like"))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Tensor:
        logits, value = broadcast_all(self.logits, self._check_value(value))
        apart = logits - value * self.temperature
        return _tensor_like(self.temperature, logits).log() + apart - 2 * apart.exp().log1p()


class _Relaxed(TransformedDistribution):
    """Base of the relaxed distributions, whose parameters are those of the untransformed one."""

    has_rsample = True

    @property
    def temperature(self) -> Tensor:
        """How far from the outcomes the values are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds, or the logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """A number near 1 with a probability, else near 0, with gradient.

    Args:
        temperature: how far from 0 and 1 the values are.
        probs: the probability of 1.
        logits: its log-odds, instead.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(Distribution):
    """The logarithms of `RelaxedOneHotCategorical`'s values.

    Args:
        temperature: how far from the outcomes the values are.
        probs: the weights of the outcomes along the last dim.
        logits: the logarithms of weights, instead.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _expanded_apart = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, (self._categorical._num_events,), validate_args)

    probs, logits = OneHotCategorical.probs, OneHotCategorical.logits
    _param, param_shape = OneHotCategorical._param, OneHotCategorical.param_shape

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = clamp_probs(noise(self._sample_size(sample_shape), self.logits, "rand_like"))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores.log_softmax(-1)

    def log_prob(self, value: Any) -> Tensor:
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, self._check_value(value))
        temperature = _tensor_like(self.temperature, logits[..., 0])
        norm = sbpjax.full_like(temperature.detach(), float(k)).lgamma() + (k - 1) * temperature.log()
        return (logits - value * self.temperature).log_softmax(-1).sum(-1) + norm


class RelaxedOneHotCategorical(_Relaxed):
    """Shares near a vector with a single 1, with gradient.

    Args:
        temperature: how far from the outcomes the values are.
        probs: the weights of the outcomes along the last dim.
        logits: the logarithms of weights, instead.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
