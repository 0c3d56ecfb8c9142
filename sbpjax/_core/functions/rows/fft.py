"""Op table: Fourier transforms (``torch.fft``, `stft`) and windows. Transformed dims are whole on every rank."""

from __future__ import annotations

from ..table.op_modules import fft
from ..table.table import FN, METHOD, custom, op

SIGNAL = "sbpjax._core.functions.signal"
READ = FN | METHOD

_KINDS = (  # name, the op, whether it has the scale of an inverse, its result
    ("fft", "c2c", False, "the Fourier transform"),
    ("ifft", "c2c", True, "the inverse Fourier transform"),
    ("rfft", "r2c", False, "the first half of the Fourier transform of real numbers"),
    ("irfft", "c2r", True, "the real inverse of a half spectrum"),
    ("hfft", "c2r", False, "the real transform of half a Hermitian signal"),
    ("ihfft", "r2c", True, "the inverse of `hfft`"),
)
_DIMS = (  # the end of the name, how the dims are given, which they are
    ("", "n=None, dim: int = -1", "one dim; it is cut or padded to length ``n`` first"),
    ("2", "s=None, dim=(-2, -1)", "two dims; they are cut or padded to the lengths ``s`` first"),
    ("n", "s=None, dim=None", "some dims, all by default, cut or padded to the lengths ``s`` first"),
)
for _kind, _op, _inverse, _result in _KINDS:
    for _end, _form, _where in _DIMS:
        op(f"fft.{_kind}{_end}(input, {_form}, norm=None)", getattr(fft, _op),
           text=f"Return {_result} along {_where}.", fixed={"inverse": _inverse, "op": f"{_kind}{_end}"})  # fmt: skip
op("fft.fftshift(input, dim=None)", fft.fftshift, out=False)
op("fft.ifftshift(input, dim=None)", fft.ifftshift, out=False)
custom("fft.fftfreq fft.rfftfreq", SIGNAL, out=True)
custom("stft", SIGNAL, READ, strict=True)
custom("istft", SIGNAL, READ)
custom("bartlett_window blackman_window hamming_window hann_window kaiser_window", SIGNAL, strict=True)
