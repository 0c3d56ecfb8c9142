"""The functions of `sbpjax.special`."""

from __future__ import annotations

from sbpjax._core.ops.special.polynomials import NAMES
from tests.op_specs.engine import op, same
from tests.support.generate import call

_TOL = {"tol": {"float64": 1e-7, "float32": 5e-5}, "reason": "series and rational approximations of their own"}

for _name in "erf erfc erfinv exp2 expm1 log1p sinc xlogy logsumexp digamma".split():
    same(f"special.{_name}", of=_name, method=False, inplace=False)
for _name, _of in (
    ("psi", "digamma"),
    ("gammaln", "lgamma"),
    ("expit", "sigmoid"),
    ("logit", "logit"),
    ("round", "round"),
):
    same(f"special.{_name}", of=_of, method=False, inplace=False)
for _name in ("softmax", "log_softmax"):
    same(f"special.{_name}", of=f"nn.functional.{_name}", method=False, inplace=False, out=False)


def _unary(names: str, low=None, high=None, **options) -> None:
    @op(names, **{"double": False, **_TOL, **options})
    def make(g):
        return call(g.tensor(kinds="f", low=low, high=high))


_unary("special.i0 special.i0e special.i1 special.i1e special.ndtr", -3.0, 3.0)
_unary("special.log_ndtr", -3.0, 3.0)
_unary("special.entr", 0.1, 3.0)
_unary("special.ndtri", 0.05, 0.95)
_unary("i0", -3.0, 3.0)
_unary("special.spherical_bessel_j0", 0.5, 4.0, grad=False)


@op("special.xlog1py", **_TOL)
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    return call(x, g.like(x, low=0.1, high=2.0))


@op("igamma igammac", grad=False, double=False, **_TOL)
def _(g):
    x = g.tensor(kinds="f", low=0.5, high=4.0, max_dim=3)
    return call(x, g.like(x, low=0.5, high=4.0))


@op("special.zeta", grad=False, **_TOL)
def _(g):
    x = g.tensor(kinds="f", max_dim=2, low=1.5, high=4.0)
    return call(x, g.like(x, low=0.5, high=3.0))


@op("special.gammainc special.gammaincc", grad=False, **_TOL)
def _(g):
    x = g.tensor(kinds="f", max_dim=2, low=0.5, high=4.0)
    return call(x, g.like(x, low=0.5, high=3.0))


@op("special.multigammaln", double=False, **_TOL)
def _(g):
    return call(g.tensor(kinds="f", low=2.0, high=4.0), g.pick(1, 2, 3))


@op("special.polygamma", double=False, **_TOL)
def _(g):
    return call(g.pick(0, 1, 2), g.tensor(kinds="f", low=0.5, high=4.0))


# PyTorch has no derivative of these, and its single-precision versions keep five digits.
_VALUES = {
    "grad": False,
    "double": False,
    "tol": {"float64": 1e-9, "float32": 2e-5},
    "reason": "PyTorch has no gradients of them and takes short expansions",
}
_COARSE = {**_VALUES, "tol": {"float64": 2e-6, "float32": 2e-5}, "reason": "PyTorch's j0(7.0) is off by 8e-10"}
_unary("special.bessel_j0 special.bessel_j1", -12.0, 12.0, **_COARSE)
_unary("special.bessel_y0", 0.2, 20.0, **_COARSE)
_Y1 = {"tol": {"float64": 5e-6, "float32": 2e-5}, "reason": "PyTorch's bessel_y1(5.2) is off by 7e-7, beside SciPy's"}
_unary("special.bessel_y1", 0.2, 20.0, **{**_COARSE, **_Y1})
_AIRY = {**_VALUES, "tol": {"float64": 5e-6, "float32": 2e-5}, "reason": "PyTorch's airy_ai(-2.095) is off by 3e-6"}
_unary("special.airy_ai", -12.0, 12.0, **_AIRY)
_unary("special.modified_bessel_i0 special.modified_bessel_i1", -3.0, 3.0, **_VALUES)
_unary("special.modified_bessel_k0 special.modified_bessel_k1", 0.1, 6.0, **_VALUES)
_unary("special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1", 0.1, 9.0, **_VALUES)
_unary("special.erfcx", -3.0, 12.0)


@op(" ".join(f"special.{name}" for name in NAMES), **_VALUES)
def _(g):
    x = g.tensor(kinds="f", low=-1.5, high=1.5)
    return call(x, g.pick(0, 1, 2, 5, 9, g.like(x, kinds="int64", low=-1, high=8)))


@op("mvlgamma", double=False, **_TOL)
def _(g):
    return call(g.tensor(kinds="f", low=2.0, high=4.0), g.pick(1, 2, 3))


@op("polygamma", double=False, method=False, inplace=False, **_TOL)
def _(g):
    return call(g.pick(0, 1, 2), g.tensor(kinds="f", low=0.5, high=4.0))
