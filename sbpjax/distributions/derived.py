"""Distributions derived from others: dims as one event, transformed values, mixtures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from sbpjax import Tensor
from sbpjax.autograd import no_grad
from sbpjax.errors import DistributionError

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """A distribution whose last batch dims are part of the event.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many dims.
        validate_args: whether arguments are checked.
    """

    arg_constraints: Any = {}
    base_dist: D

    def __init__(self, base_distribution: D, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        batch = tuple(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > len(batch):
            rule = "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
            rule += f"actual {reinterpreted_batch_ndims} vs {len(batch)}"
            raise DistributionError("Independent(...)", f"batch shape {batch}", rule, "fewer dims")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        cut = len(batch) - reinterpreted_batch_ndims
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    _expanded_apart = ("base_dist",)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.base_dist = self.base_dist.expand((*batch_shape, *self.event_shape[: self.reinterpreted_batch_ndims]))
        return new

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    has_enumerate_support = property(
        lambda self: self.base_dist.has_enumerate_support if self.reinterpreted_batch_ndims == 0 else False
    )

    @constraints.dependent_property
    def support(self) -> Any:  # type: ignore[override]
        inside, dims = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(inside, dims) if dims else inside

    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of a function of a random value.

    log p(y) = log p(x) - log |dy/dx|, with y = f(x)

    Args:
        base_distribution: of the value.
        transforms: the function, or a list of several one after the other.
        validate_args: whether arguments are checked.

    Example:
        >>> policy = TransformedDistribution(Normal(loc, scale), [TanhTransform(), AffineTransform(0.0, 2.0)])
    """

    arg_constraints: Any = {}
    base_dist: Any

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        parts = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(parts, list) or not all(isinstance(t, Transform) for t in parts):
            rule = "transforms must be a Transform or a list of Transforms"
            seen = f"{type(transforms).__name__}"
            raise DistributionError("TransformedDistribution(...)", seen, rule, "[ExpTransform()]")
        self.transforms: list[Transform] = parts
        whole = ComposeTransform(parts)
        takes, gives = whole.domain.event_dim, whole.codomain.event_dim
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        dims = len(base_distribution.event_shape)
        if len(shape) < takes:
            rule = f"base_distribution needs to have shape with size at least {takes}, but got {shape}."
            raise DistributionError("TransformedDistribution(...)", f"{shape}", rule, "base.expand((1,))")
        after = tuple(whole.forward_shape(shape))
        before = tuple(whole.inverse_shape(after))
        if shape != before:
            base_distribution = base_distribution.expand(before[: len(before) - dims])
        if takes > dims:
            base_distribution = Independent(base_distribution, takes - dims)
        self.base_dist = base_distribution
        cut = len(after) - max(gives, dims + gives - takes)
        super().__init__(after[:cut], after[cut:], validate_args)

    _expanded_apart = ("base_dist",)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        shape: Any = (*batch_shape, *self.event_shape)
        for part in reversed(self.transforms):
            shape = part.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(tuple(shape)[: len(shape) - len(self.base_dist.event_shape)])
        return new

    def _codomain(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        more = len(self.event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last

    support: Any = constraints.dependent_property(_codomain, is_discrete=False)
    has_rsample: Any = property(lambda self: self.base_dist.has_rsample)

    def _forward(self, value: Tensor) -> Tensor:
        for part in self.transforms:
            value = part(value)
        return value

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        y, dims = self._check_value(value), len(self.event_shape)
        total: Any = 0.0
        for part in reversed(self.transforms):
            x = part.inv(y)
            dims += part.domain.event_dim - part.codomain.event_dim
            total = total - _sum_rightmost(part.log_abs_det_jacobian(x, y), dims - part.domain.event_dim)
            y = x
        return total + _sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """Return probabilities, or one minus them where the function is decreasing."""
        sign: Any = 1
        for part in self.transforms:
            sign = sign * part.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Tensor:
        for part in reversed(self.transforms):
            value = part.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))


class MixtureSameFamily(Distribution):
    """A mixture of distributions of the same family.

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

    support = constraints.dependent_property(
        lambda self: constraints.MixtureSameFamilyConstraint(self._component_distribution.support)
    )

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

    mean = property(lambda self: (self._weights() * self.component_distribution.mean).sum(-1 - self._event_ndims))

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
