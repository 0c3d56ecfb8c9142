"""Statistics of samples, integrals and slopes against torch."""

import numpy as np
import pytest
import torch

from sbpjax._core.ops.reductions import stats as st
from sbpjax.errors import OpError
from tests.ops.checker import A, B, F, I, beside_torch, case, run

X = F(3, 4)


def torch_cov(x, f=None, a=None, correction=1):
    return torch.cov(x, correction=correction, fweights=f, aweights=a)


WEIGHTS = np.abs(F(6)) + 0.1
CASES = [case(st.cov, torch_cov, x, correction=c, tol=1e-5) for x in (F(3, 6), F(6)) for c in (0, 1)]
CASES += [
    case(st.cov, torch_cov, F(3, 6), f, a, const=(1, 2), tol=1e-5)
    for f, a in ((I(6, low=1), None), (None, WEIGHTS), (I(6, low=1), WEIGHTS))
]
CASES += [
    case(st.cov, torch_cov, I(3, 5)),
    beside_torch(st.corrcoef, F(3, 6), tol=2e-5),
    beside_torch(st.corrcoef, F(6), grad=False),
]
INTEGRALS = (st.trapezoid, st.cumulative_trapezoid)
CASES += [
    case(fn, lambda y, fn=fn, **k: getattr(torch, fn.__name__)(y, **k), X, dx=d, dim=e)
    for fn in INTEGRALS
    for d, e in ((1.0, -1), (0.5, 0))
]
CASES += [
    beside_torch(fn, F(2, 3, 4), x, dim=d)
    for fn in INTEGRALS
    for x, d in ((F(4), 2), (F(2, 3, 4, seed=1), 1), (F(3), 1))
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
    beside_torch(st.nanquantile, NANS, q=q, dim=d, keepdim=k, interpolation=m, grad=False)
    for m in MODES
    for q, d, k in ((0.3, 1, True), (0.5, None, False), (1.0, 0, False))
]
CASES += [beside_torch(st.nanquantile, F(4, 5), q=0.3, dim=1)]

test_against_torch = run(CASES, per_op=2)


@pytest.mark.parametrize(
    "error, call, rule",
    [
        (OpError, lambda: st.cov(F(2, 2, 2)), "two or fewer"),
    ],
)
def test_misuse(error, call, rule):
    with pytest.raises(error, match=rule):
        call()
