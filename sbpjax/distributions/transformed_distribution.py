"""`TransformedDistribution`: the distribution of a function of a random value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax import Tensor
from sbpjax.autograd import no_grad
from sbpjax.errors import DistributionError

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost


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
