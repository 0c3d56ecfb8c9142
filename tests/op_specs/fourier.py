"""Fourier transforms, windows, and complex numbers."""

from __future__ import annotations

from tests.op_specs.engine import op
from tests.support.generate import Dtype, call

_TOL = {"tol": {"float32": 2e-5, "complex64": 2e-5}, "reason": "sums over the whole dim"}
_NORMS = (None, "ortho", "forward", "backward")


def _one(names: str, kinds: str) -> None:
    @op(names, double=False, **_TOL)
    def make(g):
        x = g.tensor(g.pick((4,), (3, 5), (2, 3, 4)), kinds)
        return call(
            x,
            **({"n": g.pick(4, 6, 3)} if g.flag() else {}),
            **({"dim": g.dim(x)} if g.flag() else {}),
            norm=g.pick(*_NORMS),
        )


def _more(names: str, kinds: str, n: int | None) -> None:
    @op(names, double=False, **_TOL)
    def make(g):
        x = g.tensor(g.pick((3, 4), (2, 3, 4)), kinds)
        dims = {} if n or not g.flag() else {"dim": (-1, 0)}
        return call(x, **dims, norm=g.pick(*_NORMS))


_one("fft.fft fft.ifft", "fc")
_one("fft.rfft fft.ihfft", "f")
_one("fft.irfft fft.hfft", "c")
_more("fft.fft2 fft.ifft2", "fc", 2)
_more("fft.rfft2 fft.ihfft2", "f", 2)
_more("fft.irfft2 fft.hfft2", "c", 2)
_more("fft.fftn fft.ifftn", "fc", None)
_more("fft.rfftn fft.ihfftn", "f", None)
_more("fft.irfftn fft.hfftn", "c", None)


@op("fft.fftshift fft.ifftshift")
def _(g):
    x = g.tensor(g.pick((5,), (3, 4)), "fi")
    return call(x, **({"dim": g.dim(x)} if g.flag() else {}))


@op("fft.fftfreq fft.rfftfreq")
def _(g):
    return call(g.pick(5, 4, 1), *g.pick((), (0.5,)), **({"dtype": Dtype("float64")} if g.flag() else {}))


@op("hann_window hamming_window blackman_window bartlett_window kaiser_window")
def _(g):
    return call(g.pick(5, 4, 1), *g.pick((), (False,)), **({"dtype": Dtype("float64")} if g.flag() else {}))


@op("stft", double=False, **_TOL)
def _(g):
    window = {"window": g.tensor((4,), "float32", low=0.5, high=1.0)} if g.flag() else {}
    return call(
        g.tensor(g.pick((12,), (2, 12)), "float32"),
        4,
        **window,
        **g.maybe(hop_length=2, center=False, normalized=True),
        return_complex=True,
    )


@op("istft", double=False, **_TOL)
def _(g):
    return call(g.tensor((3, 7), "complex64"), 4, window=g.tensor((4,), "float32", low=0.5, high=1.0, views=False))


# ------------------------------------------------------------------------------------------------------ complex numbers


def _complex(names: str, kinds: str = "fc", **options) -> None:
    @op(names, **options)
    def make(g):
        return call(g.tensor(kinds=kinds))


_complex("angle conj_physical sgn", "fc", double=False)
_complex("isreal is_conj is_neg", "fic")
_complex("resolve_conj resolve_neg", "fc", aliases=True)
_complex("view_as_real", "c", aliases=True)


@op("view_as_complex", aliases=True)
def _(g):
    return call(g.tensor(g.pick((3, 2), (2, 3, 2)), "f", views=False))


@op("complex")
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    return call(x, g.tensor(x.shape, x.dtype))


@op("polar")
def _(g):
    x = g.tensor(kinds="f", max_dim=3, low=0.1, high=3.0)
    return call(x, g.tensor(x.shape, x.dtype))
