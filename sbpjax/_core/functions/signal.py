"""Short-time Fourier transforms, frequencies and windows: ``stft istft fftfreq hann_window hamming_window …``."""

from __future__ import annotations

from operator import index as as_int

import numpy as np

from sbpjax._core.ops.signals import signal
from sbpjax._core.tensor.creation.from_data import tensor as _tensor
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax.errors import OpError, OpNotSupportedError

from .complex_numbers import view_as_real


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Return the Fourier transforms of overlapping frames of a signal.

    Args:
        input: ``(samples,)`` or ``(batch, samples)``.
        n_fft: the length of a frame.
        hop_length: from frame to frame; a quarter of ``n_fft`` by default.
        win_length: the length of the window, which is padded to ``n_fft``.
        window: the window; ones by default.
        center: let frame t be centred at ``t * hop_length``, the signal padded on both sides.
        pad_mode: how it is padded then.
        normalized: scale by ``1 / sqrt(n_fft)``.
        onesided: give the first half of the frequencies only; by default for real signals.
        return_complex: give complex numbers, not pairs; required for real signals.
    """
    if input.ndim not in (1, 2):
        rule = f"Expected a 1D or 2D tensor,but got {input.ndim}D"
        raise OpNotSupportedError(
            "stft(x, ...)", f"a signal of shape {list(input.shape)}", rule, "x.reshape(-1, x.shape[-1])"
        )
    complex_input = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not complex_input:
            rule = "stft requires the return_complex parameter be given for real inputs"
            raise OpError("stft(x, ...)", f"a {input.dtype!r} signal", rule, "return_complex=True")
        return_complex = True
    out = dispatch.apply(
        signal.stft,
        input,
        window,
        n_fft=as_int(n_fft),
        hop_length=hop_length,
        win_length=win_length,
        center=center,
        pad_mode=pad_mode,
        normalized=normalized,
        onesided=not complex_input if onesided is None else bool(onesided),
    )
    if return_complex:
        return out
    return view_as_real(out)


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the inverse of `stft`: the signal of ``input``, for the same arguments."""
    if not input.dtype.is_complex:
        rule = "istft requires a complex-valued input tensor matching the output from stft with return_complex=True"
        raise OpError("istft(x, ...)", f"a {input.dtype!r} tensor", rule, "view_as_complex(x)")
    if onesided is None:
        onesided = input.shape[-2] != n_fft
    return dispatch.apply(
        signal.istft,
        input,
        window,
        n_fft=as_int(n_fft),
        hop_length=hop_length,
        win_length=win_length,
        center=center,
        normalized=normalized,
        onesided=onesided,
        length=length,
        return_complex=return_complex,
    )


def _shape_of(name: str, n: int, **options) -> np.ndarray:
    """Return a symmetric window in float64."""
    place = np.arange(n) * (2 * np.pi / max(n - 1, 1))
    if name == "cosine":
        return options["alpha"] - options["beta"] * np.cos(place)
    if name == "blackman":
        return 0.42 - 0.5 * np.cos(place) + 0.08 * np.cos(2 * place)
    if name == "bartlett":
        return 1 - np.abs(2 * np.arange(n) / max(n - 1, 1) - 1)
    return np.kaiser(n, options["beta"])


def _make_window(name, length, periodic, dtype, place, requires_grad, **options) -> Tensor:
    if length < 0:
        rule = f"window_length must be non-negative, got {length}"
        raise OpError(f"{name}_window({length})", f"{length}", rule, "a length of at least 0")
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if not dtype.is_floating_point:
        rule = "Window must be of a floating point dtype"
        raise OpError(f"{name}_window(dtype={dtype!r})", f"{dtype!r}", rule, "dtype=sbpjax.float32")
    values = np.ones(length) if length < 2 else _shape_of(name, length + bool(periodic), **options)[:length]
    device, placement, sbp = place
    values = values.astype(dtype.np)
    return _tensor(values, device=device, placement=placement, sbp=sbp, requires_grad=requires_grad)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype=None, layout=None, device=None, placement=None, sbp=None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``0.5 - 0.5 cos``, one period long, without its last point unless ``periodic`` is False."""
    place = (device, placement, sbp)
    return _make_window("cosine", window_length, periodic, dtype, place, requires_grad, alpha=0.5, beta=0.5)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype=None, layout=None,
    device=None, placement=None, sbp=None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return ``alpha - beta cos``, one period long."""
    place = (device, placement, sbp)
    return _make_window("cosine", window_length, periodic, dtype, place, requires_grad, alpha=alpha, beta=beta)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype=None, layout=None, device=None, placement=None, sbp=None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return Blackman's window."""
    return _make_window("blackman", window_length, periodic, dtype, (device, placement, sbp), requires_grad)


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype=None, layout=None, device=None, placement=None, sbp=None,
    pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return a triangle from 0 to 1 and back."""
    return _make_window("bartlett", window_length, periodic, dtype, (device, placement, sbp), requires_grad)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype=None, layout=None, device=None,
    placement=None, sbp=None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return Kaiser's window with shape parameter ``beta``."""
    place = (device, placement, sbp)
    return _make_window("kaiser", window_length, periodic, dtype, place, requires_grad, beta=beta)


def fftfreq(
    n: int, d: float = 1.0, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of the n results of `fft`, for a sample spacing ``d``."""
    return _frequencies(np.fft.fftfreq(n, d), dtype, device, placement, sbp, requires_grad)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False
) -> Tensor:
    """Return the frequencies of the ``n // 2 + 1`` results of `rfft`, for a sample spacing ``d``."""
    return _frequencies(np.fft.rfftfreq(n, d), dtype, device, placement, sbp, requires_grad)


def _frequencies(values, dtype, device, placement, sbp, requires_grad: bool) -> Tensor:
    values = values.astype(dtypes.get_default_dtype().np if dtype is None else dtypes.as_np_dtype(dtype))
    return _tensor(values, device=device, placement=placement, sbp=sbp, requires_grad=requires_grad)
