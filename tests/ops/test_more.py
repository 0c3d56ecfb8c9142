"""Integers in pairs, distances, statistics of samples, and values put into copies, against torch."""

import warnings

import numpy as np
import pytest
import torch

from sbpjax.errors import OpError, OpIndexError, OpTypeError
from sbpjax.ops import distance as ds
from sbpjax.ops import pairs as pa
from sbpjax.ops import place as pl
from sbpjax.ops import stats as st
from tests.ops.checker import BF16, A, B, F, I, case, run, special

with warnings.catch_warnings():  # that index_reduce is in beta is said once
    warnings.simplefilter("ignore")
    torch.index_reduce(torch.ones(1), 0, torch.tensor([0]), torch.ones(1), "prod")

X, Y = F(3, 4), F(4, seed=1)
D = np.float64


def both(fn, *inputs, **attrs):
    return case(fn, getattr(torch, fn.__name__), *inputs, **attrs)


SIGNED = I(3, 4, low=-12, high=12)
CASES = [both(fn, SIGNED, I(4, low=-9, high=9)) for fn in (pa.gcd, pa.lcm)] + [
    both(pa.gcd, I(5), np.zeros(5, np.int32))
]
CASES += [
    both(pa.nextafter, special(), np.float32(2) * np.ones(1, np.float32), grad=False),
    both(pa.nextafter, X.astype(D), Y.astype(D), grad=False),
]
CASES += [both(pa.signbit, x, grad=False) for x in (special(), SIGNED, B(3), I(3, dtype=np.uint8))]
CASES += [
    both(pa.ldexp, X, I(4, high=9), tol=1e-5),
    both(pa.ldexp, X, I(4, low=-9, high=9), grad=False),
    both(pa.ldexp, I(4), I(4)),
    both(pa.ldexp, F(3, dtype=D), I(3)),
]
CASES += [both(pa.frexp, x, grad=False) for x in (F(3, 4) * 100, special(), F(4, dtype=D), F(4, dtype=BF16))]

CASES += [both(ds.cdist, F(2, 3, 4), F(2, 5, 4), p=p, tol=2e-5) for p in (2.0, 1.0, np.inf, 3.0, 0.0)]
CASES += [both(ds.cdist, F(3, 2), F(5, 2)), both(ds.cdist, F(1, 3, 2), F(4, 5, 2)), both(ds.cdist, X, X, tol=2e-5)]
CASES += [both(ds.dist, X, Y, p=p, grad=p > 0) for p in (2.0, 1.0, np.inf, 0.0)]
CASES += [
    both(ds.renorm, F(2, 3, 4), p=p, dim=d, maxnorm=m, tol=1e-5)
    for p, d, m in ((2.0, 0, 1.0), (1.0, -1, 2.0), (np.inf, 1, 0.5))
]


def torch_cov(x, f=None, a=None, correction=1):
    return torch.cov(x, correction=correction, fweights=f, aweights=a)


WEIGHTS = np.abs(F(6)) + 0.1
CASES += [case(st.cov, torch_cov, x, correction=c, tol=1e-5) for x in (F(3, 6), F(6)) for c in (0, 1)]
CASES += [
    case(st.cov, torch_cov, F(3, 6), f, a, const=(1, 2), tol=1e-5)
    for f, a in ((I(6, low=1), None), (None, WEIGHTS), (I(6, low=1), WEIGHTS))
]
CASES += [case(st.cov, torch_cov, I(3, 5)), both(st.corrcoef, F(3, 6), tol=2e-5), both(st.corrcoef, F(6), grad=False)]
INTEGRALS = (st.trapezoid, st.cumulative_trapezoid)
CASES += [
    case(fn, lambda y, fn=fn, **k: getattr(torch, fn.__name__)(y, **k), X, dx=d, dim=e)
    for fn in INTEGRALS
    for d, e in ((1.0, -1), (0.5, 0))
]
CASES += [
    both(fn, F(2, 3, 4), x, dim=d) for fn in INTEGRALS for x, d in ((F(4), 2), (F(2, 3, 4, seed=1), 1), (F(3), 1))
]
CASES += [
    case(
        st.gradient_along,
        lambda x, dim, edge_order: torch.gradient(x, dim=dim, edge_order=edge_order)[0],
        F(4, 5),
        dim=d,
        edge_order=e,
    )
    for d in (0, 1)
    for e in (1, 2)
]
CASES += [
    case(
        st.gradient_along,
        lambda x, t, dim, edge_order: torch.gradient(x, spacing=(t,), dim=dim, edge_order=edge_order)[0],
        F(4, 5),
        np.cumsum(WEIGHTS[:5]).astype(np.float32),
        const=(1,),
        dim=1,
        edge_order=e,
        tol=2e-5,
    )
    for e in (1, 2)
]
EDGES = A(-1, -0.5, 0.25, 2)
CASES += [
    case(
        st.histogram_counts,
        lambda x, e, density: torch.histogram(x, e, density=density)[0],
        F(20),
        EDGES,
        density=d,
        grad=False,
    )
    for d in (False, True)
]
CASES += [
    case(
        st.histogram_counts,
        lambda x, e, w: torch.histogram(x, e, weight=w)[0],
        np.append(F(9), 2).astype(np.float32),
        EDGES,
        np.arange(10, dtype=np.float32),
        grad=False,
    )
]
NANS = np.where(B(4, 5), np.nan, F(4, 5)).astype(np.float32)
NANS[0] = np.nan
MODES = ("linear", "lower", "higher", "midpoint", "nearest")
CASES += [
    both(st.nanquantile, NANS, q=q, dim=d, keepdim=k, interpolation=m, grad=False)
    for m in MODES
    for q, d, k in ((0.3, 1, True), (0.5, None, False), (1.0, 0, False))
]
CASES += [both(st.nanquantile, F(4, 5), q=0.3, dim=1)]

# ------------------------------------------------------------------------------------------------ put into copies

CASES += [
    both(pl.put, X, I(5, low=-12, high=12), F(5), accumulate=True),
    both(pl.put, X, np.array([3, -1, 0]), F(3), accumulate=False),
]
CASES += [
    case(
        pl.index_reduce,
        lambda x, i, s, dim, reduce, include_self: torch.index_reduce(x, dim, i, s, reduce, include_self=include_self),
        F(3, 4),
        np.array([0, 2, 2]),
        F(3, 4, seed=1) if d == 0 else F(3, 3),
        dim=d,
        reduce=r,
        include_self=s,
        grad=d == 0,
    )
    for d in (0,)
    for r in ("prod", "mean", "amax", "amin")
    for s in (True, False)
]
CASES += [
    both(pl.slice_scatter, F(5, 4), s, dim=d, start=a, end=b, step=k)
    for s, d, a, b, k in (
        (F(2, 4), 0, 1, None, 2),
        (F(5, 2), 1, -3, -1, 1),
        (F(5, 0), 1, 3, 1, 1),
        (F(5, 4, seed=2), 0, None, None, 1),
    )
]
CASES += [both(pl.select_scatter, F(5, 4), s, dim=d, index=i) for s, d, i in ((F(4), 0, -1), (F(5), 1, 2))]
CASES += [both(pl.diagonal_scatter, F(3, 5), F(n), offset=o) for n, o in ((3, 0), (3, 1), (2, -1))] + [
    both(pl.diagonal_scatter, F(2, 3, 4), F(2, 3), dim1=1, dim2=2)
]
CASES += [
    case(pl.fill_diagonal, lambda x, v, wrap: x.clone().fill_diagonal_(v, wrap), x, 7.0, wrap=w)
    for x in (F(3, 5), F(7, 3), F(3, 3, 3))
    for w in (False, True)
]
CASES += [both(pl.block_diag, F(2, 3), F(3), F(1, 1)), both(pl.block_diag, F(2, 2), I(2, 2)), both(pl.block_diag, F())]
CASES += [both(pl.cartesian_prod, A(1, 2), A(3, 4, 5), A(6)), both(pl.cartesian_prod, F(3))]
CASES += [both(pl.combinations, F(4), r=r, with_replacement=w) for r in (1, 2, 3) for w in (False, True)]
CASES += [both(pl.diagflat, F(2, 3), offset=o) for o in (0, 2, -1)] + [both(pl.vdot, F(4), F(4, seed=1))]
CASES += [case(pl.batch_gather, lambda x, i: torch.stack([x[b, i[b]] for b in range(2)]), F(2, 5, 3), I(2, 4, high=5))]

test_against_torch = run(CASES, per_op=2)


@pytest.mark.parametrize(
    "error, call, rule",
    [
        (OpTypeError, lambda: pa.gcd(X, Y), "integers only"),
        (OpError, lambda: pa.frexp(I(3)), "floating-point"),
        (OpError, lambda: ds.cdist(X, F(3, 5)), "columns"),
        (OpError, lambda: ds.renorm(F(3), 2.0, 0, 1.0), "2 dims"),
        (OpError, lambda: st.cov(F(2, 2, 2)), "two or fewer"),
        (OpError, lambda: pl.slice_scatter(X, X, dim=0, start=1), "expected src"),
        (OpIndexError, lambda: pl.select_scatter(X, Y, dim=0, index=3), "out of range"),
        (OpError, lambda: pl.put(X, I(2), F(3)), "same number"),
    ],
)
def test_misuse(error, call, rule):
    with pytest.raises(error, match=rule):
        call()
