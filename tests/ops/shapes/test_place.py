"""Values put into copies, and tensors put together, against torch."""

import warnings

import numpy as np
import pytest
import torch

from sbpjax._core.ops.shapes import place as pl
from sbpjax.errors import OpError, OpIndexError
from tests.ops.checker import A, F, I, beside_torch, case, run

with warnings.catch_warnings():  # that index_reduce is in beta is said once
    warnings.simplefilter("ignore")
    torch.index_reduce(torch.ones(1), 0, torch.tensor([0]), torch.ones(1), "prod")


X, Y = F(3, 4), F(4, seed=1)


CASES = [
    beside_torch(pl.put, X, I(5, low=-12, high=12), F(5), accumulate=True),
    beside_torch(pl.put, X, np.array([3, -1, 0]), F(3), accumulate=False),
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
    beside_torch(pl.slice_scatter, F(5, 4), s, dim=d, start=a, end=b, step=k)
    for s, d, a, b, k in (
        (F(2, 4), 0, 1, None, 2),
        (F(5, 2), 1, -3, -1, 1),
        (F(5, 0), 1, 3, 1, 1),
        (F(5, 4, seed=2), 0, None, None, 1),
    )
]
CASES += [beside_torch(pl.select_scatter, F(5, 4), s, dim=d, index=i) for s, d, i in ((F(4), 0, -1), (F(5), 1, 2))]
CASES += [beside_torch(pl.diagonal_scatter, F(3, 5), F(n), offset=o) for n, o in ((3, 0), (3, 1), (2, -1))] + [
    beside_torch(pl.diagonal_scatter, F(2, 3, 4), F(2, 3), dim1=1, dim2=2)
]
CASES += [
    case(pl.fill_diagonal, lambda x, v, wrap: x.clone().fill_diagonal_(v, wrap), x, 7.0, wrap=w)
    for x in (F(3, 5), F(7, 3), F(3, 3, 3))
    for w in (False, True)
]
CASES += [
    beside_torch(pl.block_diag, F(2, 3), F(3), F(1, 1)),
    beside_torch(pl.block_diag, F(2, 2), I(2, 2)),
    beside_torch(pl.block_diag, F()),
]
CASES += [beside_torch(pl.cartesian_prod, A(1, 2), A(3, 4, 5), A(6)), beside_torch(pl.cartesian_prod, F(3))]
CASES += [beside_torch(pl.combinations, F(4), r=r, with_replacement=w) for r in (1, 2, 3) for w in (False, True)]
CASES += [beside_torch(pl.diagflat, F(2, 3), offset=o) for o in (0, 2, -1)] + [
    beside_torch(pl.vdot, F(4), F(4, seed=1))
]
CASES += [case(pl.batch_gather, lambda x, i: torch.stack([x[b, i[b]] for b in range(2)]), F(2, 5, 3), I(2, 4, high=5))]

test_against_torch = run(CASES, per_op=2)


@pytest.mark.parametrize(
    "error, call, rule",
    [
        (OpError, lambda: pl.slice_scatter(X, X, dim=0, start=1), "expected src"),
        (OpIndexError, lambda: pl.select_scatter(X, Y, dim=0, index=3), "out of range"),
        (OpIndexError, lambda: pl.put(X, I(2), F(3)), "same number"),
    ],
)
def test_misuse(error, call, rule):
    with pytest.raises(error, match=rule):
        call()
