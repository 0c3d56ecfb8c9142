"""`torch.masked`: reductions of the elements that a mask chooses."""

from __future__ import annotations

from typing import Any

from sbpjax.tensor import Tensor
from sbpjax.tensor.like import ones_like

from .absent import absences


def _kept(input: Tensor, mask: Tensor | None, fill: float) -> Tensor:
    return input if mask is None else input.masked_fill(~mask.expand_as(input), fill)


def _count(input: Tensor, mask: Tensor | None, dim: Any, keepdim: bool) -> Tensor:
    ones = ones_like(input)
    return _kept(ones, mask, 0).sum(_dims(input, dim), keepdim)


def _dims(input: Tensor, dim: Any) -> Any:
    return tuple(range(input.ndim)) if dim is None else dim


def sum(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Any:
    """Return the sum of the elements where the mask is True."""
    input = input if dtype is None else input.to(dtype)
    return _kept(input, mask, 0).sum(_dims(input, dim), keepdim)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Any:
    """Return the mean of the elements where the mask is True; NaN where there is none."""
    input = input if dtype is None else input.to(dtype)
    return sum(input, dim, keepdim=keepdim, mask=mask) / _count(input, mask, dim, keepdim)


def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the variance of the elements where the mask is True, over their number less `correction` (1)."""
    input = input if dtype is None else input.to(dtype)
    less = correction if correction is not None else 0 if unbiased is False else 1
    off = input - mean(input, dim, keepdim=True, mask=mask)
    return sum(off * off, dim, keepdim=keepdim, mask=mask) / (_count(input, mask, dim, keepdim) - less)


__getattr__ = absences("torch.masked", "masked tensors are a class of PyTorch's own", "x.masked_fill(~mask, 0)")
