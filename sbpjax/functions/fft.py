"""Discrete Fourier transforms: the names of ``torch.fft``.

    >>> flow.fft.fft(flow.tensor([1.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])

The dims that are transformed are whole on every rank; all others of a global tensor may be split.
"""

from __future__ import annotations

import numpy as np

from sbpjax.ops import fft as _ops
from sbpjax.tensor import dispatch
from sbpjax.tensor import dtype as dtypes
from sbpjax.tensor.binding import hashable, into_out
from sbpjax.tensor.from_data import tensor as _tensor
from sbpjax.tensor.op import op_of
from sbpjax.tensor.tensor import Tensor
from sbpjax.tensor.wrong_call import tell as _tell


def _run(fn, input: Tensor, s, dim, norm, inverse: bool, op: str, out) -> Tensor:
    s, dim = hashable(s), hashable(dim)
    s = (s,) if isinstance(s, int) else s
    dim = (dim,) if isinstance(dim, int) else dim
    static = (("s", s), ("dim", dim), ("norm", norm), ("inverse", inverse), ("op", op))
    found = dispatch.run(op_of(fn, static), (input,))
    return found if out is None else into_out(out, found)


def _one(name: str, fn, inverse: bool, what: str):
    def transform(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out=None) -> Tensor:
        return _run(fn, input, n, dim, norm, inverse, name, out)

    transform.__doc__ = f"Return {what} along one dim; it is cut or padded to length ``n`` first."
    transform.__name__ = transform.__qualname__ = name
    return transform


def _two(name: str, fn, inverse: bool, what: str):
    def transform(input: Tensor, s=None, dim=(-2, -1), norm: str | None = None, *, out=None) -> Tensor:
        return _run(fn, input, s, dim, norm, inverse, name, out)

    transform.__doc__ = f"Return {what} along two dims; they are cut or padded to the lengths ``s`` first."
    transform.__name__ = transform.__qualname__ = name
    return transform


def _many(name: str, fn, inverse: bool, what: str):
    def transform(input: Tensor, s=None, dim=None, norm: str | None = None, *, out=None) -> Tensor:
        return _run(fn, input, s, dim, norm, inverse, name, out)

    transform.__doc__ = f"Return {what} along some dims, all by default, cut or padded to the lengths ``s`` first."
    transform.__name__ = transform.__qualname__ = name
    return transform


_FORWARD, _INVERSE = "the Fourier transform", "the inverse Fourier transform"
_HALF, _WHOLE = "the first half of the Fourier transform of real numbers", "the real inverse of a half spectrum"
_HERMITIAN, _OF_REAL = "the real transform of half a Hermitian signal", "the inverse of `hfft`"

fft = _one("fft", _ops.c2c, False, _FORWARD)
fft2 = _two("fft2", _ops.c2c, False, _FORWARD)
fftn = _many("fftn", _ops.c2c, False, _FORWARD)
ifft = _one("ifft", _ops.c2c, True, _INVERSE)
ifft2 = _two("ifft2", _ops.c2c, True, _INVERSE)
ifftn = _many("ifftn", _ops.c2c, True, _INVERSE)
rfft = _one("rfft", _ops.r2c, False, _HALF)
rfft2 = _two("rfft2", _ops.r2c, False, _HALF)
rfftn = _many("rfftn", _ops.r2c, False, _HALF)
irfft = _one("irfft", _ops.c2r, True, _WHOLE)
irfft2 = _two("irfft2", _ops.c2r, True, _WHOLE)
irfftn = _many("irfftn", _ops.c2r, True, _WHOLE)
hfft = _one("hfft", _ops.c2r, False, _HERMITIAN)
hfft2 = _two("hfft2", _ops.c2r, False, _HERMITIAN)
hfftn = _many("hfftn", _ops.c2r, False, _HERMITIAN)
ihfft = _one("ihfft", _ops.r2c, True, _OF_REAL)
ihfft2 = _two("ihfft2", _ops.r2c, True, _OF_REAL)
ihfftn = _many("ihfftn", _ops.r2c, True, _OF_REAL)


def fftshift(input: Tensor, dim=None) -> Tensor:
    """Return the tensor with the zero frequency in the middle of dims (all by default)."""
    return dispatch.run(op_of(_ops.fftshift, (("dim", hashable(dim)),)), (input,))


def ifftshift(input: Tensor, dim=None) -> Tensor:
    """Return what `fftshift` was given."""
    return dispatch.run(op_of(_ops.ifftshift, (("dim", hashable(dim)),)), (input,))


def fftfreq(
    n: int, d: float = 1.0, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False, out=None
) -> Tensor:
    """Return the frequencies of the n results of `fft`, for samples that lie ``d`` apart."""
    return _made(np.fft.fftfreq(n, d), dtype, device, placement, sbp, requires_grad, out)


def rfftfreq(
    n: int, d: float = 1.0, *, dtype=None, device=None, placement=None, sbp=None, requires_grad: bool = False, out=None
) -> Tensor:
    """Return the frequencies of the ``n // 2 + 1`` results of `rfft`, for samples that lie ``d`` apart."""
    return _made(np.fft.rfftfreq(n, d), dtype, device, placement, sbp, requires_grad, out)


def _made(values, dtype, device, placement, sbp, requires_grad: bool, out) -> Tensor:
    values = values.astype(dtypes.get_default_dtype().np if dtype is None else dtypes.np_of(dtype))
    found = _tensor(values, device=device, placement=placement, sbp=sbp, requires_grad=requires_grad)
    return found if out is None else into_out(out, found)


_tell(globals())
