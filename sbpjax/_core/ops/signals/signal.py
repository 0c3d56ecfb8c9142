"""Short-time Fourier transforms: a signal cut into overlapping frames, each windowed and transformed.

Worked case: 16 samples, frames of 8, hop 4, centred: the signal is padded by 4 on either side, 5 frames start at 0, 4,
8, …; the result is (5 frequencies, 5 frames).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail
from ..promote import category
from .fft import c2c, c2r, r2c


def _window(window, n_fft: int, win_length: int, dtype):
    if window is None:
        window = jnp.ones((win_length,), dtype)
    left = (n_fft - win_length) // 2
    return lax.pad(window, np.zeros((), window.dtype), [(left, n_fft - win_length - left, 0)])


def stft(
    x,
    window=None,
    /,
    n_fft: int = 0,
    hop_length: int | None = None,
    win_length: int | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool = True,
):
    """Return the transform ``(..., frequencies, frames)`` of a signal ``(samples,)`` or ``(batch, samples)``."""
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if x.ndim not in (1, 2) or category(x.dtype) < 2:
        rule = "expected a 1D or 2D tensor of floating-point or complex values"
        fail("type", "stft(x)", f"{x.dtype}{list(x.shape)}", rule, "x.float()")
    if center:
        half = n_fft // 2
        how = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[pad_mode]
        if pad_mode == "reflect" and half >= x.shape[-1]:
            rule = "Padding size should be less than the corresponding input dimension"
            fail("shape", f"stft(n_fft={n_fft})", f"{x.shape[-1]} samples", rule, 'pad_mode="constant"')
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], mode=how)
    n = x.shape[-1]
    if not 0 < n_fft <= n or hop <= 0 or not 0 < length <= n_fft or (window is not None and window.shape != (length,)):
        rule = f"expected 0 < n_fft <= {n} samples, hop_length > 0, 0 < win_length <= n_fft, a window of win_length"
        seen = f"n_fft {n_fft}, hop_length {hop}, win_length {length}, window {np.shape(window)}"
        fail("shape", "stft(...)", seen, rule, "n_fft=256, hop_length=64")
    frames = 1 + (n - n_fft) // hop
    where = np.arange(frames)[:, None] * hop + np.arange(n_fft)
    cut = x[..., where] * _window(window, n_fft, length, jnp.real(x).dtype)
    norm = "ortho" if normalized else None
    if onesided and category(cut.dtype) == 3:
        fail("shape", "stft(onesided=True)", f"{x.dtype}", "Cannot have onesided output of complex", "onesided=False")
    out = (r2c if onesided else c2c)(cut, dim=(-1,), norm=norm)
    return jnp.swapaxes(out, -1, -2)


def istft(
    x,
    window=None,
    /,
    n_fft: int = 0,
    hop_length: int | None = None,
    win_length: int | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
    length: int | None = None,
    return_complex: bool = False,
):
    """Return the signal whose `stft` is ``(..., frequencies, frames)``: frames added up, divided by the windows'."""
    hop = n_fft // 4 if hop_length is None else hop_length
    spread = n_fft if win_length is None else win_length
    frames = x.shape[-1]
    if x.shape[-2] != (n_fft // 2 + 1 if onesided else n_fft):
        rule = f"expected {n_fft // 2 + 1 if onesided else n_fft} frequencies to match n_fft={n_fft}"
        fail("shape", "istft(x)", f"x {x.shape}", rule, "onesided=...")
    real = jnp.real(x).dtype
    if window is not None:
        real = window.dtype
    shape = _window(window, n_fft, spread, real)
    x = jnp.swapaxes(x, -1, -2)
    norm = "ortho" if normalized else None
    if return_complex:
        cut = c2c(x, dim=(-1,), norm=norm, inverse=True)
    else:  # of a real signal the first half of the frequencies counts
        cut = c2r(x[..., : n_fft // 2 + 1], s=(n_fft,), dim=(-1,), norm=norm)
    total = n_fft + hop * (frames - 1)
    where = (np.arange(frames)[:, None] * hop + np.arange(n_fft)).reshape(-1)

    def add(parts):
        flat = parts.reshape(*parts.shape[:-2], frames * n_fft)
        return jnp.zeros((*flat.shape[:-1], total), flat.dtype).at[..., where].add(flat)

    out = add(cut * shape)
    weight = add(jnp.broadcast_to(shape * shape, (frames, n_fft)))
    start = n_fft // 2 if center else 0
    if length is not None:
        end = start + length
    else:
        end = total - n_fft // 2 if center else total
    stop = min(end, total)
    out = out[..., start:stop] / weight[start:stop]
    if end > total:
        out = lax.pad(out, np.zeros((), out.dtype), [(0, 0, 0)] * (out.ndim - 1) + [(0, end - total, 0)])
    return out
