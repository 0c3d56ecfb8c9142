"""Transforms by formulas: exp, sigmoid, affine, softmax and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Size, Tensor
from sbpjax.nn import functional as F

from .. import constraints
from .base import Transform, reject_too_few_dims


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

    event_dim = property(lambda self: self._event_dim)
    domain = constraints.dependent_property(
        lambda self: constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real,
        is_discrete=False,
    )
    codomain = constraints.dependent_property(lambda self: self.domain, is_discrete=False)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform) and _is_equal(self.loc, other.loc) and _is_equal(self.scale, other.scale)
        )

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
        shapes = [tuple(getattr(parameter, "shape", ())) for parameter in (self.loc, self.scale)]
        return Size(sbpjax.broadcast_shapes(tuple(shape), *shapes))

    inverse_shape = forward_shape


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        equal: Any = one == other
        return bool(equal.all().item())
    return one == other


class SoftmaxTransform(_Plain):
    """Exponentials over their sum; many x give the same y."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(_Plain):
    """Stick breaking: k numbers to k + 1 shares; the sigmoid of each is its share of the rest of the stick.

    Number i is lowered by ``log(k - i)``, so that zeros give equal shares.
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        share = clipped_sigmoid(x - _log_remaining(x))
        left = (1 - share).cumprod(-1)
        return F.pad(share, [0, 1], value=1.0) * F.pad(left, [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        taken = y[..., :-1]
        left = (1 - taken.cumsum(-1)).clamp(min=sbpjax.finfo(y.dtype).tiny)
        return taken.log() - left.log() + _log_remaining(taken)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - _log_remaining(x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        reject_too_few_dims("StickBreakingTransform", shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        reject_too_few_dims("StickBreakingTransform", shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


def _log_remaining(x: Tensor) -> Tensor:
    """Return log k, ..., log 1 for vectors of k numbers."""
    ones = sbpjax.ones_like(x.detach())
    return (x.shape[-1] + 1 - ones.cumsum(-1)).log()


class LowerCholeskyTransform(_Plain):
    """The lower triangle, with the exponentials of the diagonal."""

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()
