"""Helpers of the distributions: broadcasting of parameters, probabilities and their logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer

import sbpjax
from sbpjax.tensor import Tensor


def broadcast_all(*values: Any) -> list[Tensor]:
    """Return tensors and numbers as tensors of one shape."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = sbpjax.get_default_dtype() if like is None else like.dtype
    made = [v if isinstance(v, Tensor) else _number(v, like, dtype) for v in values]
    return list(sbpjax.broadcast_tensors(*made))


def _number(value: Any, like: Tensor | None, dtype: Any) -> Tensor:
    if like is None or not (like.is_global or like.is_meta):
        device = None if like is None else like.device
        return sbpjax.tensor(value, dtype=dtype, device=device)
    return sbpjax.full_like(like.detach(), value, dtype=dtype)


def is_known(value: Tensor) -> bool:
    """Return whether a tensor's numbers are there to be looked at: not in a trace, nor abstract."""
    array = value._fresh()._array
    return isinstance(array, jax.Array) and not isinstance(array, Tracer)


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
    """A property that is computed once."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        with sbpjax.enable_grad():
            value = self._function(instance)
        instance.__dict__[self._name] = value
        return value
