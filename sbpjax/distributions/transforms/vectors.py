"""Transforms of vectors: softmax, stick breaking, reshape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Size, Tensor
from sbpjax.errors import DistributionError
from sbpjax.nn import functional as F

from .. import constraints
from .base import Transform, too_few_dims
from .pointwise import _Plain, clipped_sigmoid


class SoftmaxTransform(_Plain):
    """Exponentials over their sum; many x give the same y."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Any:
        too_few_dims("SoftmaxTransform", shape, 1)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        too_few_dims("SoftmaxTransform", shape, 1)
        return shape


class StickBreakingTransform(_Plain):
    """k numbers to k + 1 shares: each breaks off a part, by its sigmoid, of what is left of a stick.

    Number i is lowered by ``log(k - i)``, so that zeros give equal shares.
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        share = clipped_sigmoid(x - _log_left(x))
        left = (1 - share).cumprod(-1)
        return F.pad(share, [0, 1], value=1.0) * F.pad(left, [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        taken = y[..., :-1]
        left = (1 - taken.cumsum(-1)).clamp(min=sbpjax.finfo(y.dtype).tiny)
        return taken.log() - left.log() + _log_left(taken)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - _log_left(x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        too_few_dims("StickBreakingTransform", shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        too_few_dims("StickBreakingTransform", shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


def _log_left(x: Tensor) -> Tensor:
    """Return log k, ..., log 1 for vectors of k numbers."""
    ones = sbpjax.ones_like(x.detach())
    return (x.shape[-1] + 1 - ones.cumsum(-1)).log()


class ReshapeTransform(Transform):
    """Events of one shape as events of another.

    Args:
        in_shape: the shape of arguments.
        out_shape: the shape of values, with as many elements.
        cache_size: see `Transform`.
    """

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            rule = "in_shape, out_shape have different numbers of elements"
            seen = f"{tuple(in_shape)}, {tuple(out_shape)}"
            raise DistributionError("ReshapeTransform(...)", seen, rule, "equal products")
        super().__init__(cache_size)

    @constraints.dependent_property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        first = x.detach().reshape(*x.shape[: x.ndim - len(self.in_shape)], -1)[..., 0]
        return sbpjax.zeros_like(first)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return _exchange_shape(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return _exchange_shape(shape, self.out_shape, self.in_shape)


def _exchange_shape(shape: Sequence[int], old: Size, new: Size) -> Size:
    too_few_dims("ReshapeTransform", shape, len(old))
    cut = len(shape) - len(old)
    if tuple(shape[cut:]) != tuple(old):
        rule = f"Shape mismatch: expected {tuple(shape[cut:])} but got {tuple(old)}"
        raise DistributionError("ReshapeTransform", f"{tuple(shape)}", rule, "in_shape as the event's")
    return Size((*shape[:cut], *new))
