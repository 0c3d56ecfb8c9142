"""Written by `make stubs` from the live package; do not edit."""
# Discrete Fourier transforms under the names of ``torch.fft``.

import builtins
import sbpjax._core.tensor.handle.types as _types
from sbpjax._core.tensor.handle.tensor import Tensor as _Tensor
from sbpjax.sbp.placement import placement as _placement

def fft(input: _Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the Fourier transform along one dim; it is cut or padded to length ``n`` first."""
def fft2(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts = (-2, -1), norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the Fourier transform along two dims; they are cut or padded to the lengths ``s`` first."""
def fftfreq(n: builtins.int, d: builtins.float = 1.0, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return the frequencies of the n results of `fft`, for a sample spacing ``d``."""
def fftn(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts | None = None, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the Fourier transform along some dims, all by default, cut or padded to the lengths ``s`` first."""
def fftshift(input: _Tensor, dim: _types.IntOrInts | None = None) -> _Tensor:
    """Return input with the zero frequency in the middle of dims (all by default)."""
def hfft(input: _Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the real transform of half a Hermitian signal along one dim; it is cut or padded to length ``n`` first."""
def hfft2(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts = (-2, -1), norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the real transform of half a Hermitian signal along two dims; they are cut or padded to the lengths ``s`` first."""
def hfftn(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts | None = None, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the real transform of half a Hermitian signal along some dims, all by default, cut or padded to the lengths ``s`` first."""
def ifft(input: _Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse Fourier transform along one dim; it is cut or padded to length ``n`` first."""
def ifft2(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts = (-2, -1), norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse Fourier transform along two dims; they are cut or padded to the lengths ``s`` first."""
def ifftn(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts | None = None, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse Fourier transform along some dims, all by default, cut or padded to the lengths ``s`` first."""
def ifftshift(input: _Tensor, dim: _types.IntOrInts | None = None) -> _Tensor:
    """Return the inverse of `fftshift`."""
def ihfft(input: _Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse of `hfft` along one dim; it is cut or padded to length ``n`` first."""
def ihfft2(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts = (-2, -1), norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse of `hfft` along two dims; they are cut or padded to the lengths ``s`` first."""
def ihfftn(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts | None = None, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the inverse of `hfft` along some dims, all by default, cut or padded to the lengths ``s`` first."""
def irfft(input: _Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the real inverse of a half spectrum along one dim; it is cut or padded to length ``n`` first."""
def irfft2(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts = (-2, -1), norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the real inverse of a half spectrum along two dims; they are cut or padded to the lengths ``s`` first."""
def irfftn(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts | None = None, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the real inverse of a half spectrum along some dims, all by default, cut or padded to the lengths ``s`` first."""
def rfft(input: _Tensor, n: builtins.int | None = None, dim: builtins.int = -1, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the first half of the Fourier transform of real numbers along one dim; it is cut or padded to length ``n`` first."""
def rfft2(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts = (-2, -1), norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the first half of the Fourier transform of real numbers along two dims; they are cut or padded to the lengths ``s`` first."""
def rfftfreq(n: builtins.int, d: builtins.float = 1.0, *, dtype: _types.DTypeLike | None = None, device: _types.DeviceLike | None = None, placement: _placement | None = None, sbp: _types.SbpLike | None = None, requires_grad: builtins.bool = False, out: _Tensor | None = None) -> _Tensor:
    """Return the frequencies of the ``n // 2 + 1`` results of `rfft`, for a sample spacing ``d``."""
def rfftn(input: _Tensor, s: _types.IntOrInts | None = None, dim: _types.IntOrInts | None = None, norm: builtins.str | None = None, *, out: _Tensor | None = None) -> _Tensor:
    """Return the first half of the Fourier transform of real numbers along some dims, all by default, cut or padded to the lengths ``s`` first."""
