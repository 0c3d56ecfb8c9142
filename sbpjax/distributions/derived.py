"""Distributions made of others: independent dims as one event, transformed values, mixtures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax.autograd import no_grad
from sbpjax.tensor import Tensor

from . import constraints
from .continuous import Normal
from .discrete import Categorical
from .distribution import Distribution
from .transforms import ComposeTransform, ExpTransform, Transform, sum_last
from .utils import where


class Independent(Distribution):
    """A distribution whose last batch dims are part of the event.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many dims.
        validate_args: whether arguments are checked.
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        batch = tuple(base_distribution.batch_shape)
        cut = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Any:  # type: ignore[override]
        return self.base_dist.support

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Distribution:
        event = self.event_shape[: self.reinterpreted_batch_ndims]
        return Independent(self.base_dist.expand((*batch_shape, *event)), self.reinterpreted_batch_ndims, False)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of a function of a random value.

    Args:
        base_distribution: of the value.
        transforms: the function, or several one after the other.
        validate_args: whether arguments are checked.
    """

    support = constraints.real

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        self.base_dist = base_distribution
        self.transforms: list[Transform] = [transforms] if isinstance(transforms, Transform) else list(transforms)
        self._whole = ComposeTransform(self.transforms)
        mixed = max(0, self._whole.event_dim - len(base_distribution.event_shape))
        batch = tuple(base_distribution.batch_shape)
        cut = len(batch) - mixed
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)
        self._mixed = mixed

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._whole(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        x = self._whole.inverse(value)
        stretch = self._whole.log_abs_det_jacobian(x, value)
        stretch = sum_last(stretch, len(self.event_shape) - self._whole.event_dim)
        return sum_last(self.base_dist.log_prob(x), self._mixed) - stretch

    def cdf(self, value: Any) -> Tensor:
        return self.base_dist.cdf(self._whole.inverse(value))

    def icdf(self, value: Any) -> Tensor:
        return self._whole(self.base_dist.icdf(value))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Distribution:
        base = self.base_dist.expand((*batch_shape, *self.event_shape[: self._mixed]))
        return TransformedDistribution(base, self.transforms, False)


class LogNormal(TransformedDistribution):
    """The exponential of a normal number.

    Args:
        loc: the mean of its logarithm.
        scale: the standard deviation of its logarithm.
        validate_args: whether arguments are checked.
    """

    support = constraints.positive

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale  # type: ignore[attr-defined]

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        return self.scale.square().expm1() * (2 * self.loc + self.scale.square()).exp()

    def log_prob(self, value: Any) -> Tensor:
        return super().log_prob(self._checked(value))

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(Distribution):
    """The size of a normal number.

    Args:
        scale: its standard deviation.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self._normal = Normal(0, scale, validate_args)
        self.scale = self._normal.scale
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return sbpjax.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._normal.rsample(sample_shape).abs()

    def log_prob(self, value: Any) -> Tensor:
        value = self._checked(value)
        inside = self._normal.log_prob(value) + math.log(2)
        return where(value >= 0, inside, -math.inf)

    def cdf(self, value: Any) -> Tensor:
        return 2 * self._normal.cdf(self._checked(value)) - 1

    def icdf(self, value: Any) -> Tensor:
        return self._normal.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self._normal.entropy() - math.log(2)


class MixtureSameFamily(Distribution):
    """One of several distributions of a kind, chosen at random.

    Args:
        mixture_distribution: which one.
        component_distribution: all of them, along the last batch dim.
        validate_args: whether arguments are checked.
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(component_distribution.batch_shape[:-1], component_distribution.event_shape, validate_args)

    @property
    def support(self) -> Any:  # type: ignore[override]
        return self.component_distribution.support

    def _weights(self) -> Tensor:
        probs = self.mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self.event_shape))

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - len(self.event_shape))

    @property
    def variance(self) -> Tensor:
        at = -1 - len(self.event_shape)
        inside = (self._weights() * self.component_distribution.variance).sum(at)
        apart = self.component_distribution.mean - self.mean.unsqueeze(at)
        return inside + (self._weights() * apart.square()).sum(at)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            which = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = which.reshape(*which.shape, 1, *[1] * len(self.event_shape))
            at = which.ndim
            return drawn.gather(at, index.expand(*which.shape, 1, *self.event_shape)).squeeze(at)

    def log_prob(self, value: Any) -> Tensor:
        each = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self.event_shape)))
        return (each + self.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def cdf(self, value: Any) -> Tensor:
        each = self.component_distribution.cdf(value.unsqueeze(-1 - len(self.event_shape)))
        return (each * self.mixture_distribution.probs).sum(-1)
