"""Gathers and scatters against torch: smaller indices, 0-d, repeated places, every reduction and its gradient."""

import jax
import numpy as np
import pytest
import torch

from sbpjax._core.ops.shapes import gather as ga
from sbpjax.errors import OpBoundsError, OpError, OpTypeError, OpValueError
from tests.ops.checker import BF16, A, B, F, I, case, run

X = F(3, 4, 5)


def dim_second(fn):
    """Torch's order: dim before the index."""
    return lambda x, index, *rest, dim, **kw: fn(x, dim, index, *rest, **kw)


def perm(*shape, dim):
    """Indices without repeats along ``dim``."""
    return np.argsort(F(*shape, seed=7), axis=dim)


CASES = [
    case(ga.gather, dim_second(torch.gather), X, I(*s, high=3), dim=d)
    for s, d in (((3, 4, 5), 0), ((2, 3, 4), 1), ((3, 4, 9), -1), ((7, 4, 5), 0), ((0, 4, 5), 0))
]
CASES += [
    case(ga.gather, dim_second(torch.gather), F(), np.asarray(0), dim=0),
    case(ga.gather, dim_second(torch.gather), I(4), I(2, dtype=np.int64, high=4), dim=0),
]
CASES += [case(ga.take, torch.take, X, I(2, 3, low=-60, high=60)), case(ga.take, torch.take, F(4), np.asarray(-1))]
CASES += [
    case(ga.take_along_dim, torch.take_along_dim, F(3, 4), I(3, 2, high=4), dim=1),
    case(ga.take_along_dim, torch.take_along_dim, F(1, 4), I(3, 2, high=4), dim=1),
]
CASES += [
    case(ga.take_along_dim, torch.take_along_dim, F(3, 4), I(1, 4, high=3), dim=0),
    case(ga.take_along_dim, torch.take_along_dim, F(3, 4), I(5, high=12)),
]
CASES += [
    case(ga.index_select, dim_second(torch.index_select), X, I(n, high=3), dim=d) for n, d in ((2, 0), (6, 1), (0, -1))
]
CASES += [
    case(ga.index_select, dim_second(torch.index_select), X, np.asarray(1), dim=1),
    case(ga.index_select, dim_second(torch.index_select), F(), np.asarray([0]), dim=0),
]

scatter = dim_second(torch.scatter)
CASES += [case(ga.scatter, scatter, X, perm(3, 4, 5, dim=d), F(3, 4, 5, seed=1), dim=d) for d in (0, 1, -1)]
CASES += [
    case(ga.scatter, scatter, X, perm(2, 3, 3, dim=1), F(3, 3, 4, seed=1), dim=1, grad=False),
    case(ga.scatter, scatter, X, perm(2, 3, 3, dim=1), F(2, 3, 3, seed=1), dim=1),
    case(ga.scatter, scatter, X, I(3, 4, 2), 2.5, dim=2),
]
CASES += [
    case(ga.scatter, scatter, F(), np.asarray(0), F(seed=1), dim=0),
    case(ga.scatter, scatter, F(3), I(0), F(0), dim=0),
    case(ga.scatter, scatter, I(4), np.array([1]), 7, dim=0),
]
CASES += [
    case(
        ga.scatter,
        lambda x, i, src, dim, reduce: x.scatter_reduce(dim, i, src, {"add": "sum", "multiply": "prod"}[reduce]),
        F(3, 4),
        I(5, 4, high=3),
        F(5, 4),
        dim=0,
        reduce=r,
    )
    for r in ("add", "multiply")
]
CASES += [
    case(ga.scatter_add, dim_second(torch.scatter_add), X, I(*s, high=3), F(*s, seed=1), dim=d)
    for s, d in (((3, 4, 5), 0), ((9, 4, 5), 0), ((2, 3, 4), 1), ((3, 4, 2), -1))
]
CASES += [case(ga.scatter_add, dim_second(torch.scatter_add), I(4), I(6, high=4), I(6, seed=1), dim=0)]


def scatter_reduce(x, index, src, dim, reduce, include_self):
    return x.scatter_reduce(dim, index, src, reduce, include_self=include_self)


SOURCES = [F(6, 4, seed=1), np.array([[0, 1, 2, 2], [3, 0, 2, 1], [3, 1, 0, 0]], np.float32)]
REDUCE = ("sum", "mean", "prod", "amax", "amin")
CASES += [
    case(ga.scatter_reduce, scatter_reduce, F(3, 4), I(*s.shape, high=3), s, dim=0, reduce=r, include_self=k)
    for r in REDUCE
    for s in SOURCES
    for k in (True, False)
]
TIED = np.array([[3, 0, 2, 2], [1, 1, 0, 3]], np.float32)
CASES += [
    case(ga.scatter_reduce, scatter_reduce, TIED, I(3, 4, high=2), SOURCES[1], dim=0, reduce=r, include_self=True)
    for r in REDUCE
]
CASES += [
    case(ga.scatter_reduce, scatter_reduce, I(5, low=-9), I(7), I(7, low=-9, seed=1), dim=0, reduce=r, include_self=k)
    for r in REDUCE
    for k in (True, False)
]

CASES += [
    case(ga.index_add, dim_second(torch.index_add), X, I(n, high=3), F(*s), dim=d, alpha=a)
    for n, s, d, a in ((2, (2, 4, 5), 0, 1), (6, (3, 6, 5), 1, 0.5), (2, (3, 4, 2), -1, 2))
]
CASES += [
    case(ga.index_copy, dim_second(torch.index_copy), X, np.array([2, 0]), F(2, 4, 5), dim=0),
    case(ga.index_copy, dim_second(torch.index_copy), X, np.array([1]), F(3, 4, 1), dim=-1),
]
CASES += [case(ga.index_fill, dim_second(torch.index_fill), X, I(2, high=3), v, dim=1) for v in (2.5, F())] + [
    case(ga.index_fill, dim_second(torch.index_fill), I(4), I(2, high=4), 3, dim=0)
]
CASES += [
    case(ga.masked_fill, torch.masked_fill, F(3, 4), m, v)
    for m in (B(3, 4), B(4), B(3, 1), B(2, 3, 4), B())
    for v in (-1e9, F())
]
CASES += [case(ga.masked_fill, torch.masked_fill, x, B(3), float("-inf")) for x in (F(3), F(3, dtype=BF16))] + [
    case(ga.masked_fill, torch.masked_fill, I(3), B(3), 2)
]
CASES += [case(ga.masked_scatter, torch.masked_scatter, F(3, 4), m, F(12, seed=1)) for m in (B(3, 4), B(4))]

test_against_torch = run(CASES)


@pytest.mark.parametrize(
    "fn, arrays", [(ga.gather, (X, I(3, 4, 5, high=3))), (ga.scatter_add, (X, I(3, 4, 5, high=3), X))]
)
def test_one_gather_without_grids(fn, arrays):
    names = [e.primitive.name for e in jax.make_jaxpr(lambda *a: fn(*a, dim=0))(*arrays).eqns]
    assert len(names) <= 2 and names[-1] in ("gather", "scatter-add")


def test_outside_reads_nan_and_writes_nothing():
    assert np.isnan(ga.gather(A(1, 2), np.array([2, -1]), dim=0)).all()
    np.testing.assert_array_equal(ga.scatter_add(A(1, 2), np.array([2, -1]), A(5, 5), dim=0), [1, 2])
    np.testing.assert_array_equal(ga.scatter(A(1, 2), np.array([2, -1]), A(5, 5), dim=0), [1, 2])


def test_errors():
    with pytest.raises(OpError, match="equally many dims"):
        ga.gather(X, I(3), dim=0)
    with pytest.raises(OpTypeError, match="int32 or int64"):
        ga.gather(X, F(3, 4, 5), dim=0)
    with pytest.raises(OpError, match="to be smaller than self"):
        ga.gather(X, I(4, 9, 5), dim=0)
    with pytest.raises(OpError, match="not larger than src"):
        ga.scatter(X, I(3, 4, 5), F(2, 4, 5), dim=0)
    with pytest.raises(OpValueError, match="reduce"):
        ga.scatter_reduce(X, I(3, 4, 5), X, dim=0, reduce="max")
    with pytest.raises(OpTypeError, match="bool"):
        ga.masked_fill(X, F(5), 0)
    with pytest.raises(OpTypeError, match="same dtype"):
        ga.scatter_add(X > 0, I(3, 4, 5), X, dim=0)
    with pytest.raises(OpTypeError, match="same dtype"):
        ga.index_add(X > 0, I(3), X, dim=0)
    with pytest.raises(OpBoundsError, match="Index is supposed to be a vector"):
        ga.index_select(X, I(2, 2), dim=0)
