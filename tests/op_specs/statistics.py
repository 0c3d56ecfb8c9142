"""Statistics of samples: quantiles, covariance, histograms; integrals and slopes."""

from __future__ import annotations

from tests.op_specs.engine import op
from tests.support.generate import call


@op("nanquantile")
def _(g):
    return call(g.tensor((3, 4), "f", low=-9.0, high=9.0), g.pick(0.5, 0.3), dim=g.pick(0, 1, -1))


@op("cov corrcoef", double=False, tol={"float32": 5e-5})
def _(g):
    return call(g.tensor((3, 5), "f"))


@op("histogram", grad=False, traced=False, reason="reads the range of the values")
def _(g):
    return call(g.tensor((9,), "f", low=-2.0, high=2.0, views=False), g.pick(4, 3), range=(-2.0, 2.0))


@op("histogramdd", grad=False, traced=False, reason="reads the range of the values")
def _(g):
    return call(g.tensor((9, 2), "f", low=-2.0, high=2.0, views=False), [3, 2], range=[-2.0, 2.0, -2.0, 2.0])


@op("trapezoid trapz cumulative_trapezoid", method=False)
def _(g):
    x = g.tensor(g.pick((4,), (2, 4)), "f")
    return call(x, **g.pick({}, {"dx": 0.5}, {"dim": 0}))


@op("gradient", double=False)
def _(g):
    return call(g.tensor(g.pick((5,), (4, 5)), "f"), **g.pick({}, {"spacing": 2.0}, {"edge_order": 2}))
