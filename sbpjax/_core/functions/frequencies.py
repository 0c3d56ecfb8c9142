"""Sample frequencies of discrete Fourier transforms."""

from __future__ import annotations

import numpy as np

from sbpjax._core.tensor.creation.from_data import tensor
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor


def fftfreq(
    n: int, d: float = 1.0, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of the n results of `fft`, for a sample spacing ``d``."""
    return _made(np.fft.fftfreq(n, d), dtype, device, placement, sbp, requires_grad)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of the ``n // 2 + 1`` results of `rfft`, for a sample spacing ``d``."""
    return _made(np.fft.rfftfreq(n, d), dtype, device, placement, sbp, requires_grad)


def _made(values, dtype, device, placement, sbp, requires_grad: bool) -> Tensor:
    values = values.astype(dtypes.get_default_dtype().np if dtype is None else dtypes.np_of(dtype))
    return tensor(values, device=device, placement=placement, sbp=sbp, requires_grad=requires_grad)
