"""`MixtureSameFamily`: mixture of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax import Tensor
from sbpjax.autograd import no_grad
from sbpjax.errors import DistributionError

from . import constraints
from .discrete import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """One of several distributions of a kind, chosen at random.

    Args:
        mixture_distribution: which one.
        component_distribution: all of them, along the last batch dim.
        validate_args: whether arguments are checked.
    """

    arg_constraints: Any = {}

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        seen = f"{type(mixture_distribution).__name__}, {type(component_distribution).__name__}"
        if not isinstance(mixture_distribution, Categorical) or not isinstance(component_distribution, Distribution):
            rule = "The Mixture distribution needs to be a Categorical, the components a Distribution"
            raise DistributionError("MixtureSameFamily(...)", seen, rule, "Categorical(logits=x), Normal(a, b)")
        batch, parts = component_distribution.batch_shape[:-1], component_distribution.batch_shape[-1]
        weights = mixture_distribution.batch_shape
        if any(i not in (1, j) and j != 1 for i, j in zip(reversed(weights), reversed(batch))):
            rule = f"`mixture_distribution.batch_shape` ({tuple(weights)}) is not compatible with "
            rule += f"`component_distribution.batch_shape`({tuple(batch)})"
            raise DistributionError("MixtureSameFamily(...)", seen, rule, "equal batch shapes")
        if mixture_distribution._num_events != parts:
            rule = f"`mixture_distribution component` ({mixture_distribution._num_events}) does not equal "
            rule += f"`component_distribution.batch_shape[-1]` ({parts})"
            raise DistributionError("MixtureSameFamily(...)", seen, rule, "one weight for each component")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._num_component, self._event_ndims = parts, len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args)

    _expanded_apart = ("_mixture_distribution", "_component_distribution")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return new

    @constraints.dependent_property
    def support(self) -> Any:  # type: ignore[override]
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """Which component it is."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dim."""
        return self._component_distribution

    def _pad(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._event_ndims)

    def _weights(self) -> Tensor:
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        at = -1 - self._event_ndims
        inside = (self._weights() * self.component_distribution.variance).sum(at)
        apart = self.component_distribution.mean - self._pad(self.mean)
        return inside + (self._weights() * apart.square()).sum(at)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            drawn = self.component_distribution.sample(sample_shape)
            at = drawn.ndim - 1 - self._event_ndims
            which = self.mixture_distribution.sample(sample_shape).expand(drawn.shape[:at])
            index = which.reshape(*which.shape, 1, *[1] * self._event_ndims)
            return drawn.gather(at, index.expand(*which.shape, 1, *self.event_shape)).squeeze(at)

    def log_prob(self, value: Any) -> Tensor:
        each = self.component_distribution.log_prob(self._pad(self._check_value(value)))
        return (each + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, value: Any) -> Tensor:
        return (self.component_distribution.cdf(self._pad(value)) * self.mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n  {self.mixture_distribution},\n  {self.component_distribution})"
