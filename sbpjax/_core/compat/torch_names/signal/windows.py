"""`torch.signal.windows`: windows of M points, symmetric or periodic (``sym=False``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax.errors import OpTypeError, OpValueError


def _points(name: str, M: int) -> np.ndarray:
    if not isinstance(M, int):
        raise OpTypeError(f"{name}({M!r})", type(M).__name__, "the window length is an integer", f"{name}(16)")
    if M < 0:
        rule = f"{name} requires non-negative window length, got M={M}"
        raise OpValueError(f"{name}({M})", str(M), rule, f"{name}(16)")
    return np.arange(M, dtype=np.float64)


def _positive(name: str, option: str, value: float, least: float | None = None) -> None:
    if not (value > 0 if least is None else value >= least):
        word = "positive" if least is None else "non-negative"
        rule = f"{option} must be {word}, got: {value} instead"
        raise OpValueError(f"{name}({option}={value})", f"{value}", rule, f"{option}=1.0")


def _tensor(name: str, values: np.ndarray, dtype: Any, layout: Any, device: Any, requires_grad: bool) -> Tensor:
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if dtype not in (dtypes.float32, dtypes.float64):
        rule = f"{name} expects float32 or float64 dtypes, got: {dtype!r}"
        raise OpValueError(f"{name}(dtype=...)", f"{dtype!r}", rule, "dtype=torch.float32")
    if layout is not None and "strided" not in str(layout):
        raise OpValueError(f"{name}(layout=...)", f"{layout}", "strided tensors alone", "leave out layout")
    return from_data.tensor(values.astype(dtype.np), device=device, requires_grad=requires_grad)


def _span(M: int, sym: bool) -> int:
    return M - 1 if sym or M < 2 else M


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``exp(-|n - center| / tau)``; the center of a symmetric window is its middle."""
    place = _points("exponential", M)
    _positive("exponential", "tau", tau)
    if sym and center is not None:
        rule = "Center must be None for symmetric windows"
        raise OpValueError("exponential(sym=True, center=...)", f"center={center}", rule, "sym=False")
    middle = _span(M, sym) / 2 if center is None else center
    return _tensor("exponential", np.exp(-np.abs(place - middle) / tau), dtype, layout, device, requires_grad)


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return half a period of a sine."""
    place = _points("cosine", M)
    values = np.sin(np.pi * (place + 0.5) / (_span(M, sym) + 1))
    return _tensor("cosine", values, dtype, layout, device, requires_grad)


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``exp(-(n - middle)² / (2 std²))``."""
    place = _points("gaussian", M)
    _positive("gaussian", "std", std)
    values = np.exp(-(((place - _span(M, sym) / 2) / std) ** 2) / 2)
    return _tensor("gaussian", values, dtype, layout, device, requires_grad)


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return Kaiser's window with shape parameter ``beta``."""
    place = _points("kaiser", M)
    _positive("kaiser", "beta", beta, 0)
    values = np.kaiser(_span(M, sym) + 1, beta)[: len(place)]
    return _tensor("kaiser", values, dtype, layout, device, requires_grad)


def general_cosine(
    M: int, *, a: Iterable, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the sum of ``(-1)^i a[i] cos(2 pi i n / span)``."""
    if not isinstance(a, Iterable):
        raise OpTypeError(
            "general_cosine(a=...)", type(a).__name__, "Coefficients must be a list/tuple", "a=[0.5, 0.5]"
        )
    weights = [float(w) for w in a]
    if not weights:
        raise OpValueError("general_cosine(a=[])", "[]", "Coefficients cannot be empty", "a=[0.5, 0.5]")
    return _cosines("general_cosine", M, weights, sym, dtype, layout, device, requires_grad)


def _cosines(name: str, M: int, weights, sym, dtype, layout, device, requires_grad) -> Tensor:
    turn = _points(name, M) * (2 * np.pi / max(_span(M, sym), 1))
    values = sum((-1) ** i * w * np.cos(i * turn) for i, w in enumerate(weights))
    return _tensor(name, values if M != 1 else np.ones(1), dtype, layout, device, requires_grad)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``alpha - (1 - alpha) cos(2 pi n / span)``."""
    return _cosines("general_hamming", M, (alpha, 1.0 - alpha), sym, dtype, layout, device, requires_grad)


def hamming(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return ``0.54 - 0.46 cos(2 pi n / span)``."""
    return _cosines("hamming", M, (0.54, 0.46), sym, dtype, layout, device, requires_grad)


def hann(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return ``0.5 - 0.5 cos(2 pi n / span)``."""
    return _cosines("hann", M, (0.5, 0.5), sym, dtype, layout, device, requires_grad)


def blackman(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return Blackman's window."""
    return _cosines("blackman", M, (0.42, 0.5, 0.08), sym, dtype, layout, device, requires_grad)


def nuttall(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return Nuttall's window of least side lobes with continuous first derivative."""
    weights = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _cosines("nuttall", M, weights, sym, dtype, layout, device, requires_grad)


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return a triangle from 0 to 1 and back."""
    place = _points("bartlett", M)
    values = 1 - np.abs(2 * place / _span(M, sym) - 1) if M > 1 else np.ones(M)
    return _tensor("bartlett", values, dtype, layout, device, requires_grad)
