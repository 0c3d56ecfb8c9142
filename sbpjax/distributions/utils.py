"""Helpers of the distributions: broadcasting of parameters, probabilities and their logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError
from sbpjax.func import is_traced

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
]

euler_constant: Final = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Return tensors and numbers as tensors of one shape.

    Raises:
        ValueError: one is neither.
    """
    if not all(isinstance(v, Tensor | int | float) for v in values):
        rule = "Input arguments must all be instances of Number or Tensor"
        seen = ", ".join(type(v).__name__ for v in values)
        raise DistributionError("broadcast_all(...)", seen, rule, "sbpjax.tensor(x)")
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = sbpjax.get_default_dtype() if like is None else like.dtype
    made = [v if isinstance(v, Tensor) else _number(v, like, dtype) for v in values]
    return tuple(sbpjax.broadcast_tensors(*made))


def _number(value: Any, like: Tensor | None, dtype: Any) -> Tensor:
    if like is None or not (like.is_global or like.is_meta):
        device = None if like is None else like.device
        return sbpjax.tensor(value, dtype=dtype, device=device)
    return sbpjax.full_like(like.detach(), value, dtype=dtype)


def is_known(value: Tensor) -> bool:
    """Return whether a tensor's numbers are there to be looked at: not in a trace, nor abstract."""
    return not (value.is_meta or is_traced(value))


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities away from 0 and 1 by the dtype's epsilon."""
    eps = sbpjax.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the log-odds of two outcomes, or the logarithms of many."""
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the probabilities of log-odds, or of unnormalised logarithms."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def where(condition: Tensor, first: Any, second: Any) -> Tensor:
    """Return elements of `first` where a condition holds, else of `second`."""
    chosen: Any = sbpjax.where(condition, first, second)
    return chosen


class lazy_property:
    """A property that is computed once, with gradient, and is an attribute from then on."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__, self.__name__ = wrapped.__doc__, wrapped.__name__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with sbpjax.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def missing_property(name: str, text: str) -> Any:
    """Return a property that raises NotImplementedError, until a subclass has one; anything may stand in its place."""

    def get(instance: Any) -> Any:
        raise NotImplementedError(f"{type(instance).__name__} has no {name}")

    return property(get, doc=text)


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Return normal numbers of mean 0 and variance 1."""
    return sbpjax.randn(tuple(shape), dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Return a value summed over its last dims, `dim` of them."""
    return value if dim == 0 else value.reshape(*value.shape[: value.ndim - dim], -1).sum(-1)


def noise(shape: Sequence[int], like: Tensor, draw: str = "randn_like") -> Tensor:
    """Return random numbers of a shape, with a parameter's dtype and placement."""
    return getattr(sbpjax, draw)(like.detach().expand(shape) if tuple(like.shape) != tuple(shape) else like.detach())
