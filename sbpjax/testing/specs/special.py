"""The functions of `sbpjax.special`."""

from __future__ import annotations

from sbpjax.testing import call, op, same

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
_unary("special.spherical_bessel_j0", 0.5, 4.0, grad=False)


@op("special.xlog1py", **_TOL)
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    return call(x, g.like(x, low=0.1, high=2.0))


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
