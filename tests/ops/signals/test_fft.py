"""Fourier transforms against torch: every name, norm modes, lengths, dims, complex gradients; frames and windows."""

import functools

import numpy as np
import pytest
import torch

from sbpjax._core.ops import complex as cx
from sbpjax._core.ops.signals import fft as ff
from sbpjax._core.ops.signals import signal as sg
from sbpjax.errors import OpError
from tests.ops.checker import F, I, case, run, special

FFT_TOL = 1e-5  # float32: two libraries' orders of sums


def C(*shape, dtype=np.complex64):
    """Return complex numbers."""
    return (F(*shape) + 1j * F(*shape, seed=1)).astype(dtype)


def _op(name, fn, inverse):
    def transform(x, n=None, dim=-1, norm=None):
        if name.endswith(("2", "n")):
            return fn(x, s=n, dim=dim, norm=norm, inverse=inverse, op=name)
        return fn(x, s=None if n is None else (n,), dim=(dim,), norm=norm, inverse=inverse, op=name)

    transform.__name__ = name
    return transform


KINDS = {"fft": (ff.c2c, False), "ifft": (ff.c2c, True), "rfft": (ff.r2c, False), "ihfft": (ff.r2c, True)}
KINDS |= {"irfft": (ff.c2r, True), "hfft": (ff.c2r, False)}
OPS = {name + end: _op(name + end, *kind) for name, kind in KINDS.items() for end in ("", "2", "n")}


@functools.cache
def reference(name):
    """Return torch's function in the same call form."""
    fn = getattr(torch.fft, name)

    def call(x, n=None, dim=-1, norm=None):
        return fn(x, n, dim, norm)

    return call


def one(name, x, **attrs):
    return case(OPS[name], reference(name), x, tol=FFT_TOL if x.dtype.itemsize <= 8 else None, **attrs)


CASES = []
for NAME, (FN, _) in KINDS.items():
    REAL = FN is ff.r2c
    X = F(3, 4, 6) if REAL else C(3, 4, 6)
    CASES += [one(NAME, X, norm=m, dim=d) for m, d in ((None, -1), ("ortho", 1), ("forward", 0), ("backward", -1))]
    CASES += [one(NAME, X, n=n, dim=1) for n in (2, 3, 7)]
    CASES += [one(NAME + "2", X, n=n, dim=d, norm=m) for n, d, m in ((None, (-2, -1), "ortho"), ((5, 3), (0, 2), None))]
    CASES += [
        one(NAME + "n", X, n=n, dim=d, norm=m)
        for n, d, m in ((None, None, "forward"), ((-1, 4), None, "ortho"), ((2, 3), (2, 0), None))
    ]
CASES += [one(n, I(4)) for n in ("fft", "rfft", "irfft", "ihfft")] + [
    one(n, F(5, dtype=np.float64)) for n in ("fft", "ifft", "hfft", "ihfft")
]
CASES += [one("fftn", C(2, 2, 3, 2, 2), dim=None), one("fft", C(4, dtype=np.complex128))]
CASES += [
    case(fn, getattr(torch.fft, fn.__name__), x, dim=d)
    for fn in (ff.fftshift, ff.ifftshift)
    for x, d in ((F(5), None), (F(4, 3), None), (F(4, 5), (1,)), (C(3, 4), (0,)), (F(1, 0), None))
]


# --------------------------------------------------------------------------------------------------- frames of a signal


def torch_stft(x, window=None, onesided=True, **how):
    window = torch.ones(how.get("win_length", how["n_fft"]), dtype=x.dtype) if window is None else window
    return torch.stft(x, window=window, onesided=onesided, return_complex=True, **how)


HOW = [{"n_fft": 8}, {"n_fft": 8, "hop_length": 3, "center": False}, {"n_fft": 7, "hop_length": 2, "normalized": True}]
HOW += [{"n_fft": 8, "pad_mode": "constant", "onesided": False}]
WINDOW = np.hanning(10)[1:9].astype(np.float32)
CASES += [case(sg.stft, torch_stft, x, tol=FFT_TOL, **how) for x in (F(20), F(2, 17)) for how in HOW]
CASES += [
    case(sg.stft, torch_stft, F(2, 30), WINDOW, tol=FFT_TOL, n_fft=n, hop_length=2, win_length=8) for n in (8, 12)
]


def round_trip(x, window, **how):
    """Return a signal by way of its transform."""
    return sg.istft(sg.stft(x, window, **{k: v for k, v in how.items() if k != "length"}), window, **how)


def torch_round_trip(x, window, **how):
    there = torch.stft(x, window=window, return_complex=True, **{k: v for k, v in how.items() if k != "length"})
    return torch.istft(there, window=window, **how)


CASES += [
    case(round_trip, torch_round_trip, F(2, 32), WINDOW, tol=1e-4, const=(1,), n_fft=8, hop_length=2, **how)
    for how in ({}, {"normalized": True}, {"length": 30}, {"onesided": False})
]

# ------------------------------------------------------------------------------------------------------ complex numbers

Z = np.array([1 + 2j, -1 + 0j, 0j, -0.5 - 0.1j, 3j], np.complex64)
CASES += [case(cx.angle, torch.angle, x) for x in (F(3, 4), Z[:2], Z[3:], I(4, low=-3, high=3))]
CASES += [case(cx.angle, torch.angle, x, grad=False) for x in (special(), Z)]
CASES += [case(cx.sgn, torch.sgn, x) for x in (Z, I(4, low=-2, high=2))] + [
    case(cx.sgn, torch.sgn, special(), grad=False)
]
CASES += [case(cx.complex, torch.complex, F(3, 4), F(4)), case(cx.polar, torch.polar, np.abs(F(3, 4)), F(3, 4, seed=1))]
CASES += [case(cx.isreal, torch.isreal, x) for x in (Z, F(3))] + [case(cx.conj, lambda x: x.conj(), C(3))]

test_against_torch = run(CASES, per_op=2)


@pytest.mark.parametrize(
    "call, rule",
    [
        (lambda: OPS["fft"](F(4), norm="none"), "normalization"),
        (lambda: OPS["fft"](F(4), n=0), r"data points \(0\)"),
        (lambda: OPS["rfft"](C(4)), "real input"),
        (lambda: OPS["fftn"](F(4, 3), n=(2,), dim=(0, 1)), "same length"),
        (lambda: OPS["fftn"](F(4, 3), dim=(0, 0)), "unique"),
        (lambda: sg.stft(F(4), n_fft=8, center=False), "n_fft"),
        (lambda: sg.stft(F(4), n_fft=8), "Padding size"),
        (lambda: cx.polar(F(2), F(2, dtype=np.float64)), "one dtype"),
    ],
)
def test_misuse(call, rule):
    with pytest.raises(OpError, match=rule):
        call()
