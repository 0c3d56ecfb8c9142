"""Norms and distances."""

from __future__ import annotations

from tests.op_specs.engine import op
from tests.support.generate import call


@op("dist")
def _(g):
    x = g.tensor(kinds="f", max_dim=3)
    return call(x, g.like(x), g.pick(2, 1, 3.0))


@op("cdist", double=False, tol={"float32": 2e-5})
def _(g):
    dtype = g.dtype()
    return call(g.tensor((3, 2), dtype), g.tensor((4, 2), dtype), p=g.pick(2.0, 1.0, 3.0))


@op("renorm", double=False)
def _(g):
    x = g.tensor((3, 4), "f")
    return call(x, g.pick(2, 1), g.dim(x), 1.0)


@op("norm_except_dim", double=False)
def _(g):
    return call(g.tensor((3, 4), "f", views=False), 2, g.pick(0, 1))


@op("frobenius_norm nuclear_norm", double=False, method=False)
def _(g):
    return call(g.tensor((3, 2), "f", low=0.5, high=3.0), (0, 1), *g.pick((), (True,)))
