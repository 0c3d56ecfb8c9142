"""Sorting and order statistics against torch: stability, NaN, ties, 0-d and empty tensors."""

import numpy as np
import pytest
import torch

from sbpjax._core.ops.reductions import sort as so
from sbpjax.errors import OpError, OpIndexError, OpValueError
from tests.ops.checker import BF16, A, B, F, I, case, run

NAN = np.nan
X = np.argsort(F(3, 4, 5), axis=None).reshape(3, 4, 5).astype(np.float32)  # all different: one right answer


def both(name):
    return getattr(so, name), getattr(torch, name)


def stable(x, dim=-1, descending=False):
    return torch.sort(x, dim=dim, descending=descending, stable=True)


NANS = A(2, NAN, -1, NAN, np.inf, -np.inf, 0.0, -0.0)
CASES = [
    case(so.sort, stable, x, dim=d, descending=e)
    for x, d in ((X, 0), (X, -1), (I(9), 0), (NANS[:4], 0), (F(), 0), (F(0, 3), 0), (B(6), 0), (F(3, 0), 1))
    for e in (False, True)
]
CASES += [
    case(so.sort, stable, x, descending=e)
    for x in (F(9, dtype=BF16), I(9, dtype=np.uint8), NANS)
    for e in (False, True)
]
CASES += [
    case(so.argsort, lambda x, **k: torch.argsort(x, stable=True, **k), I(4, 6), dim=d, descending=e)
    for d in (0, 1)
    for e in (False, True)
]
CASES += [case(*both("msort"), X), case(so.sort, lambda x: torch.sort(x, stable=True), I(3, 9))]
CASES += [
    case(*both("topk"), X, k=k, dim=d, largest=e)
    for k, d in ((1, 0), (3, 1), (2, -1), (0, 0), (5, 2))
    for e in (True, False)
]
CASES += [
    case(*both("topk"), x, k=2)
    for x in (A(2, NAN, -1), A(3, -np.inf, np.inf), np.array([5, -3, 9]), np.array([2.0, 1.0, 7.0], BF16))
]
CASES += [
    case(*both("topk"), A(2, NAN, -1, 0), k=2, largest=False),
    case(*both("topk"), F(), k=1),
    case(*both("topk"), A(NAN, 2, 5, -1), k=3),
]
CASES += [
    case(*both("kthvalue"), X, k=k, dim=d, keepdim=e) for k, d in ((1, 0), (3, 1), (5, -1)) for e in (False, True)
] + [case(*both("kthvalue"), F(), k=1)]
MEDIANS = ("median", "nanmedian")
CASES += [case(*both(n), X, dim=d, keepdim=e) for n in MEDIANS for d in (0, 1, -1) for e in (False, True)]
CASES += [case(*both(n), x) for n in MEDIANS for x in (X, A(1, 2, 2, 3, 2), I(5), F(), F(4, dtype=BF16))]
CASES += [case(*both(n), A(1, NAN, 3), grad=False) for n in MEDIANS]
CASES += [case(*both(n), np.array([[1, NAN, 3, 5], [4, 2, 1, 3]], np.float32), dim=1) for n in MEDIANS] + [
    case(*both("median"), F(), dim=0)
]
CASES += [
    case(*both("mode"), x, dim=d, keepdim=k)
    for x in (I(4, 9, high=4), I(5, 6, high=3).astype(np.float32))
    for d in (0, 1)
    for k in (False, True)
]
CASES += [case(*both("mode"), x, dim=0) for x in (F(), A(3, 1, 2), F(1))]
CASES += [
    case(*both("quantile"), X, q=q, dim=d, keepdim=k, interpolation=i)
    for q in (0.0, 0.3, 1.0)
    for d, k in ((None, False), (1, True))
    for i in so._INTERPOLATIONS
]
CASES += [
    case(so.quantile, lambda x, q, dim: torch.quantile(x, torch.tensor(q), dim=dim), X, q=(0.25, 0.5), dim=0),
    case(*both("quantile"), A(1, NAN, 2), q=0.5, grad=False),
]

test_against_torch = run(CASES)


def test_errors():
    with pytest.raises(OpError, match=r"\[0, 5\]"):
        so.topk(X, k=6)
    with pytest.raises(OpError, match=r"\[1, 3\]"):
        so.kthvalue(X, k=0, dim=0)
    with pytest.raises(OpIndexError, match="at least one"):
        so.median(F(3, 0), dim=1)
    with pytest.raises(OpValueError, match="interpolation"):
        so.quantile(X, q=0.5, interpolation="cubic")
