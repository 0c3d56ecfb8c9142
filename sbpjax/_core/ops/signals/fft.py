"""Discrete Fourier transforms over some dims; all other dims, and all dims of the batch, may be split.

One function does all: it cuts or pads the dims to their lengths, brings them to the end, transforms up to three at a
time, XLA's limit, scales, and brings them back. Worked case: ``rfft2`` of (5, 6, 8) transforms dims (1, 2):
8 real numbers become 5 complex ones, then 6 stay 6, so the result is (5, 6, 5).

A Hermitian transform is the inverse one of the conjugate: ``hfft(x) = irfft(conj(x))`` with the scale of the forward.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail, one, several
from ..promote import DEFAULT_FLOAT, cast, category

_NORMS = ("forward", "backward", "ortho")


def _scale(norm: str | None, count: int, inverse: bool, op: str) -> float:
    norm = "backward" if norm is None else norm
    if norm not in _NORMS:
        fail("shape", f"fft.{op}(norm={norm!r})", f"norm={norm!r}", f"Invalid normalization mode: {_NORMS}", "ortho")
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if (norm == "backward") == inverse else 1.0


def _resize_dims(x, dims, sizes):
    """Cut or pad dims of x with zeros to sizes."""
    for d, n in zip(dims, sizes, strict=True):
        if x.shape[d] > n:
            x = lax.slice_in_dim(x, 0, n, axis=d)
    if any(x.shape[d] != n for d, n in zip(dims, sizes, strict=True)):
        pads = [(0, dict(zip(dims, sizes, strict=True)).get(d, m) - m, 0) for d, m in enumerate(x.shape)]
        x = lax.pad(x, np.zeros((), x.dtype), pads)
    return x


def _at_end(x, dims):
    order = [d for d in range(x.ndim) if d not in dims] + list(dims)
    return x if order == list(range(x.ndim)) else lax.transpose(x, order)


def _back(x, dims):
    order = [d for d in range(x.ndim) if d not in dims] + list(dims)
    return x if order == list(range(x.ndim)) else lax.transpose(x, np.argsort(order))


def _complex(x):
    return x if category(x.dtype) == 3 else lax.complex(x, jnp.zeros_like(x))


def _check_transform(x, s, dim, op: str):
    """Return x as floats, its dims to transform, and the lengths given for them (None for their own)."""
    s, dim = ((n,) if isinstance(n, int) else n for n in (s, dim))
    if category(x.dtype) < 2:
        x = cast(x, DEFAULT_FLOAT)
    if x.dtype.itemsize < 4:
        fail("shape", f"fft.{op}(x)", f"x of {x.dtype}", "Unsupported dtype: floats have 32 or 64 bits", "x.float()")
    if s is not None and dim is None:
        if len(s) > x.ndim:
            fail("shape", f"fft.{op}(s={s})", f"x {x.shape}", "Got shape with more values than input dims", "give dim")
        dims = tuple(range(x.ndim - len(s), x.ndim))
    elif dim is None:
        dims = tuple(range(x.ndim))
    else:
        dims = tuple(one(d, x.ndim, f"fft.{op}") for d in dim)
        if len(set(dims)) < len(dims):
            fail("shape", f"fft.{op}(dim={dim})", f"x {x.shape}", "FFT dims must be unique", "name each once")
    if s is None:
        return x, dims, (None,) * len(dims)
    if len(s) != len(dims):
        rule = "When given, dim and shape arguments must have the same length"
        fail("shape", f"fft.{op}(s={s}, dim={dim})", f"x {x.shape}", rule, "one length for each dim")
    return x, dims, tuple(None if n == -1 else n for n in s)


def _transform_lengths(x, dims, given, op: str, last: int | None = None):
    sizes = [x.shape[d] if n is None else n for d, n in zip(dims, given, strict=True)]
    if last is not None and sizes and given[-1] is None:
        sizes[-1] = last
    for n in sizes:
        if n < 1:
            rule = f"Invalid number of data points ({n}) specified"
            fail("shape", f"fft.{op}(...)", f"x {x.shape}", rule, "a length of at least 1")
    return tuple(sizes)


def _transform(x, dims, inverse: bool):
    """Transform complex dims, unscaled; the inverse transform of XLA divides, which is taken back."""
    kind = lax.FftType.IFFT if inverse else lax.FftType.FFT
    for k in range(0, len(dims), 3):
        some = dims[k : k + 3]
        sizes = tuple(x.shape[d] for d in some)
        x = _back(lax.fft(_at_end(x, some), kind, sizes), some)
        if inverse:
            x = x * np.asarray(math.prod(sizes), x.real.dtype)
    return x


def _scale_result(x, factor: float):
    return x if factor == 1.0 else x * np.asarray(factor, jnp.real(x).dtype)


def c2c(x, /, s=None, dim=None, norm: str | None = None, inverse=False, op="fftn", n: int | None = None):
    """Return the transform of complex (or real) numbers."""
    x, dims, given = _check_transform(x, s if n is None else n, dim, op)
    sizes = _transform_lengths(x, dims, given, op)
    if not dims:
        return _complex(x)
    out = _transform(_resize_dims(_complex(x), dims, sizes), dims, inverse)
    return _scale_result(out, _scale(norm, math.prod(sizes), inverse, op))


def r2c(
    x, /, s=None, dim=None, norm: str | None = None, inverse: bool = False, op: str = "rfftn", n: int | None = None
):
    """Return the non-redundant half of the transform of real numbers, along the last dim named."""
    if category(x.dtype) == 3:
        fail("shape", f"fft.{op}(x)", f"x of {x.dtype}", "expects a real input tensor", "fft.fft(x)")
    x, dims, given = _check_transform(x, s if n is None else n, dim, op)
    sizes = _transform_lengths(x, dims, given, op)
    if not dims:
        fail("shape", f"fft.{op}(dim={dim})", f"x {x.shape}", "must transform at least one axis", "dim=(-1,)")
    x = _resize_dims(x, dims, sizes)
    last = dims[-1:]
    out = _back(lax.fft(_at_end(x, last), lax.FftType.RFFT, sizes[-1:]), last)
    out = _transform(out, dims[:-1], False)
    out = lax.conj(out) if inverse else out  # of real numbers, the inverse is the conjugate
    return _scale_result(out, _scale(norm, math.prod(sizes), inverse, op))


def c2r(
    x, /, s=None, dim=None, norm: str | None = None, inverse: bool = True, op: str = "irfftn", n: int | None = None
):
    """Return the real transform of the half of a Hermitian spectrum, along the last dim named."""
    x, dims, given = _check_transform(x, s if n is None else n, dim, op)
    if not dims:
        fail("shape", f"fft.{op}(dim={dim})", f"x {x.shape}", "must transform at least one axis", "dim=(-1,)")
    sizes = _transform_lengths(x, dims, given, op, last=2 * (x.shape[dims[-1]] - 1))
    x = _complex(x) if inverse else lax.conj(_complex(x))
    x = _resize_dims(x, dims, (*sizes[:-1], sizes[-1] // 2 + 1))
    x = _transform(x, dims[:-1], True)
    last = dims[-1:]
    out = _back(lax.fft(_at_end(x, last), lax.FftType.IRFFT, sizes[-1:]), last)
    out = out * np.asarray(sizes[-1], out.dtype)
    return _scale_result(out, _scale(norm, math.prod(sizes), inverse, op))


def fftshift(x, /, dim=None):
    """Return x with the zero frequency in the middle of dims (all by default)."""
    return _shift_dims(x, dim, 1)


def ifftshift(x, /, dim=None):
    """Return the inverse of `fftshift`."""
    return _shift_dims(x, dim, -1)


def _shift_dims(x, dim, sign: int):
    for d in several(dim, x.ndim, "fftshift"):
        n = x.shape[d]
        by = (n - n // 2) if sign > 0 else n // 2
        if 0 < by < n:
            parts = [lax.slice_in_dim(x, by, n, axis=d), lax.slice_in_dim(x, 0, by, axis=d)]
            x = lax.concatenate(parts, d)
    return x
