"""Elementwise transforms: exp, sigmoid, affine, power and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Size, Tensor
from sbpjax.nn import functional as F

from .. import constraints
from ..utils import broadcast_all, lazy_property
from .base import Transform


class _Plain(Transform):
    """Base of the functions without parameters: two of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))


class ExpTransform(_Plain):
    """``exp(x)``."""

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, +1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class SigmoidTransform(_Plain):
    """``1 / (1 + exp(-x))``, kept away from 0 and 1."""

    domain, codomain = constraints.real, constraints.unit_interval
    bijective, sign = True, +1

    def _call(self, x: Tensor) -> Tensor:
        return clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = sbpjax.finfo(y.dtype)
        y = y.clamp(limits.tiny, 1 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x) - F.softplus(x)


def clipped_sigmoid(x: Tensor) -> Tensor:
    """Return the sigmoid, above 0 and below 1."""
    limits = sbpjax.finfo(x.dtype)
    return x.sigmoid().clamp(limits.tiny, 1 - limits.eps)


class SoftplusTransform(_Plain):
    """``log(1 + exp(x))``."""

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, +1

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x)


class TanhTransform(_Plain):
    """``tanh(x)``; its inverse is infinite at -1 and 1, where a cache of size 1 helps."""

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)
    bijective, sign = True, +1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(_Plain):
    """``|x|``, which has no inverse; the positive one stands for it."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """``x ** exponent``.

    Args:
        exponent: the exponent.
        cache_size: see `Transform`.
    """

    domain, codomain = constraints.positive, constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @lazy_property
    def sign(self) -> Tensor:  # type: ignore[override]
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return _broadcast(shape, self.exponent)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return _broadcast(shape, self.exponent)


class AffineTransform(Transform):
    """``loc + scale * x``.

    Args:
        loc: what is added.
        scale: the factor.
        event_dim: how many dims are one event.
        cache_size: see `Transform`.
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return self.domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    @property
    def sign(self) -> Any:  # type: ignore[override]
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not isinstance(self.scale, Tensor):
            each = sbpjax.full_like(x, math.log(abs(self.scale)))
        else:
            each = self.scale.abs().log()
        shape = x.shape
        if self.event_dim:
            each = each.reshape(*each.shape[: each.ndim - self.event_dim], -1).sum(-1)
            shape = shape[: x.ndim - self.event_dim]
        return each.expand(shape)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return _broadcast(shape, self.loc, self.scale)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return _broadcast(shape, self.loc, self.scale)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        equal: Any = one == other
        return bool(equal.all().item())
    return one == other


def _broadcast(shape: Sequence[int], *parameters: Any) -> Size:
    shapes = [tuple(getattr(parameter, "shape", ())) for parameter in parameters]
    return Size(sbpjax.broadcast_shapes(tuple(shape), *shapes))


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution.

    Args:
        distribution: the distribution.
        cache_size: see `Transform`.

    Example:
        >>> copula = TransformedDistribution(normal_vectors, [CumulativeDistributionTransform(Normal(0.0, 1.0))])
    """

    codomain = constraints.unit_interval
    bijective, sign = True, +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
