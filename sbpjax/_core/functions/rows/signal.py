"""Op table: short-time Fourier transforms and window functions."""

from __future__ import annotations

from ..table.table import FN, METHOD, written

SIGNAL = "sbpjax._core.functions.signal"
READ = FN | METHOD

written("stft", SIGNAL, READ, strict=True)
written("istft", SIGNAL, READ)
written("bartlett_window blackman_window hamming_window hann_window kaiser_window", SIGNAL, strict=True)
