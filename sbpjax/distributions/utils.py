"""Helpers of the distributions: broadcasting of parameters, probabilities and their logits, triangles as vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError
from sbpjax.func import is_traced
from sbpjax.nn import functional as F

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
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


def lacking(name: str, text: str) -> Any:
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


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangles of matrices as vectors, row by row.

    Args:
        mat: `(..., n, n)`.
        diag: the last diagonal of them: 0 is the main one, -1 the one below.

    Raises:
        ValueError: there is no such diagonal.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        rule = f"diag ({diag}) provided is outside [{-n}, {n - 1}]."
        raise DistributionError("tril_matrix_to_vec(mat, diag)", f"{tuple(mat.shape)}", rule, "diag=0")
    return sbpjax.cat([mat[..., row, : max(0, min(n, row + diag + 1))] for row in range(n)], -1)


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return matrices whose lower triangles, row by row, are vectors, and zeros elsewhere.

    Args:
        vec: `(..., m)`.
        diag: the last diagonal of them: 0 is the main one, -1 the one below.

    Raises:
        ValueError: no square matrix has so many elements there.
    """
    m = vec.shape[-1]
    # the size n solves n² + (1 + 2 diag) n - |diag| (diag + 1) = 2 m
    odd = 1 + 2 * diag
    n = round((-odd + (odd**2 + 8 * m + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    counts = [max(0, min(n, row + diag + 1)) for row in range(n)]
    if sum(counts) != m:
        rule = f"The size of last dimension is {m} which cannot be expressed as the lower triangular part of a square "
        rule += "D x D matrix."
        raise DistributionError("vec_to_tril_matrix(vec, diag)", f"{tuple(vec.shape)}", rule, "1, 3, 6, 10")
    at, rows = 0, []
    for count in counts:
        rows.append(F.pad(vec[..., at : at + count], [0, n - count]))
        at += count
    return sbpjax.stack(rows, -2)
