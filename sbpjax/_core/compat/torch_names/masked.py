"""`torch.masked`: reductions and normalisations over the elements chosen by a mask; True keeps an element.

Excluded elements count as the neutral element of an operation: 0 in a sum, 1 in a product, infinity in a minimum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbpjax._core import functions
from sbpjax._core.functions import nn as F
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.like import ones_like
from sbpjax.errors import OpValueError

from .absent import make_absent_getattr


def _cast(input: Tensor, dtype: Any) -> Tensor:
    return input if dtype is None else input.to(dtype)


def _fill_masked(input: Tensor, mask: Tensor | None, fill: float) -> Tensor:
    return input if mask is None else input.masked_fill(~mask.expand_as(input), fill)


def _count(input: Tensor, mask: Tensor | None, dim: Any, keepdim: bool) -> Tensor:
    ones = ones_like(input)
    return _fill_masked(ones, mask, 0).sum(_dims(input, dim), keepdim)


def _dims(input: Tensor, dim: Any) -> Any:
    return tuple(range(input.ndim)) if dim is None else dim


def _extreme_value(input: Tensor, sign: int) -> Any:
    """Return the largest number of a dtype, or with sign -1 the least."""
    if input.is_floating_point():
        return sign * float("inf")
    info = np.iinfo(input.dtype.np)
    return int(info.max if sign > 0 else info.min)


def sum(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Any:
    """Return the sum of the elements where the mask is True."""
    input = _cast(input, dtype)
    return _fill_masked(input, mask, 0).sum(_dims(input, dim), keepdim)


def prod(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Any:
    """Return the product of the elements where the mask is True."""
    result = _fill_masked(_cast(input, dtype), mask, 1)
    dims = _dims(input, dim)
    for d in sorted((d % max(input.ndim, 1) for d in ((dims,) if isinstance(dims, int) else dims)), reverse=True):
        result = result.prod(d, keepdim)
    return result if input.ndim else result.prod()


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the running sum of the elements where the mask is True."""
    return _fill_masked(_cast(input, dtype), mask, 0).cumsum(dim)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the running product of the elements where the mask is True."""
    return _fill_masked(_cast(input, dtype), mask, 1).cumprod(dim)


def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Any:
    """Return the largest of the elements where the mask is True; the least number where there is none."""
    input = _cast(input, dtype)
    return _fill_masked(input, mask, _extreme_value(input, -1)).amax(_dims(input, dim), keepdim)


def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Any:
    """Return the least of the elements where the mask is True; the largest number where there is none."""
    input = _cast(input, dtype)
    return _fill_masked(input, mask, _extreme_value(input, 1)).amin(_dims(input, dim), keepdim)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Any:
    """Return the index of the largest element with a True mask, in the dtype of the input, as PyTorch does."""
    input = _cast(input, dtype)
    return _fill_masked(input, mask, _extreme_value(input, -1)).argmax(dim, keepdim).to(input.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Any:
    """Return the index of the least element with a True mask, in the dtype of the input, as PyTorch does."""
    input = _cast(input, dtype)
    return _fill_masked(input, mask, _extreme_value(input, 1)).argmin(dim, keepdim).to(input.dtype)


def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Any:
    """Return the mean of the elements where the mask is True; NaN where there is none."""
    input = _cast(input, dtype)
    return sum(input, dim, keepdim=keepdim, mask=mask) / _count(input, mask, dim, keepdim)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the lower median of the elements where the mask is True; NaN where there is none."""
    input = _cast(input, dtype)
    if not input.is_floating_point():
        rule = f"input must be a floating-point tensor but got {input.dtype}"
        raise OpValueError("torch.masked.median(input)", f"{input.dtype.name}", rule, "input.float()")
    return _fill_masked(input, mask, float("nan")).nanmedian(dim, keepdim).values


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
    input = _cast(input, dtype)
    input = input if input.is_floating_point() or input.is_complex() else input.float()
    less = correction if correction is not None else 0 if unbiased is False else 1
    off = input - mean(input, dim, keepdim=True, mask=mask)
    square = off.real * off.real + off.imag * off.imag if input.is_complex() else off * off
    left = _count(square, mask, dim, keepdim) - less
    return (sum(square, dim, keepdim=keepdim, mask=mask) / left.clamp(min=0)).to(input.dtype)


def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the root of `var`."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the logarithm of the sum of exponentials of the elements where the mask is True."""
    input = _cast(input, dtype)
    wide = input if input.is_floating_point() or input.is_complex() else input.float()
    return functions.logsumexp(_fill_masked(wide, mask, -float("inf")), _dims(input, dim), keepdim).to(input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the vector norm of the elements where the mask is True."""
    ord = 2.0 if ord is None else float(ord)
    fill = float("inf") if ord == -float("inf") else 0.0
    return functions.table.table.find_function("linalg", "vector_norm")(
        _fill_masked(_cast(input, dtype), mask, fill), ord, _dims(input, dim), keepdim
    )


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return `softmax` over the elements where the mask is True; NaN where there is none."""
    return F.softmax(_fill_masked(_cast(input, dtype), mask, -float("inf")), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return `log_softmax` over the elements where the mask is True; NaN where there is none."""
    return F.log_softmax(_fill_masked(_cast(input, dtype), mask, -float("inf")), dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return `softmin` over the elements where the mask is True; NaN where there is none."""
    return F.softmin(_fill_masked(_cast(input, dtype), mask, float("inf")), dim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the elements where the mask is True over their norm, which is at least `eps`; 0 elsewhere."""
    input = _cast(input, dtype)
    size = norm(input, ord, dim, keepdim=True, mask=mask).clamp(min=eps)
    return _fill_masked(input, mask, 0) / size


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return the logarithm of the sum of two exponentials, of each where its mask is True."""
    least = -float("inf")
    left, right = (_fill_masked(_cast(x, dtype), m, least) for x, m in ((input, input_mask), (other, other_mask)))
    return functions.logaddexp(left, right)


__getattr__ = make_absent_getattr(
    "torch.masked", "masked tensors are a class of PyTorch's own", "x.masked_fill(~mask, 0)"
)
