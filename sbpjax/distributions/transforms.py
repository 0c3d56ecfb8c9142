"""Invertible functions with the logarithm of their Jacobian, for `TransformedDistribution`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax.nn import functional as F
from sbpjax.tensor import Tensor


class Transform:
    """An invertible function.

    Args:
        cache_size: accepted for PyTorch's spelling.

    Attributes:
        event_dim: how many dims of a value it mixes.
    """

    event_dim = 0
    bijective = True

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no __call__")

    def inverse(self, y: Tensor) -> Tensor:
        """Return the x of a y."""
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    @property
    def inv(self) -> Transform:
        """The inverse function."""
        return _Inverse(self)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of how much the function stretches at x."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")


class _Inverse(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self._transform, self.event_dim = transform, transform.event_dim

    def __call__(self, x: Tensor) -> Tensor:
        return self._transform.inverse(x)

    def inverse(self, y: Tensor) -> Tensor:
        return self._transform(y)

    @property
    def inv(self) -> Transform:
        return self._transform

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._transform.log_abs_det_jacobian(y, x)


class AffineTransform(Transform):
    """``loc + scale * x``."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self.event_dim = loc, scale, event_dim

    def __call__(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            each = self.scale.abs().log().expand(x.shape)
        else:
            each = sbpjax.full_like(x, math.log(abs(self.scale)))
        return sum_last(each, self.event_dim)


class ExpTransform(Transform):
    """``exp(x)``."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.exp()

    def inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(Transform):
    """``1 / (1 + exp(-x))``."""

    def __call__(self, x: Tensor) -> Tensor:
        limits = sbpjax.finfo(x.dtype)
        return x.sigmoid().clamp(limits.tiny, 1 - limits.eps)

    def inverse(self, y: Tensor) -> Tensor:
        limits = sbpjax.finfo(y.dtype)
        y = y.clamp(limits.tiny, 1 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """``tanh(x)``."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanh()

    def inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class ComposeTransform(Transform):
    """Functions one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.event_dim = max([part.event_dim for part in self.parts], default=0)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total: Any = 0.0
        for part in self.parts:
            after = part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, after), self.event_dim - part.event_dim)
            x = after
        return total


def sum_last(value: Tensor, dims: int) -> Tensor:
    """Return a value summed over its last dims."""
    return value if dims == 0 else value.flatten(-dims).sum(-1)
