"""Reductions against torch: dims, result dtypes, empty and 0-d tensors, ties, NaN, zeros."""

import numpy as np
import pytest
import torch

from sbpjax._core.ops.reductions import reduce as rd
from sbpjax.errors import OpError, OpIndexError, OpTypeError, OpValueError
from tests.ops.checker import BF16, A, B, F, I, case, run

INF, NAN = np.inf, np.nan
TIES = np.array([[1, 3, 3, 0], [2, 2, 2, 2], [0, -1, -1, 5]], np.float32)
DIMS = [None, 0, -1, (0, 2), (-1, 1), ()]


def pair(name):
    return getattr(rd, name), getattr(torch, name)


CASES = [
    case(*pair(n), F(2, 3, 4), dim=d, keepdim=k)
    for n in ("sum", "mean", "nansum", "amax", "amin")
    for d in DIMS
    for k in (False, True)
]
for n in ("sum", "mean", "nansum", "prod", "logsumexp", "amax", "amin", "norm"):
    CASES += [case(*pair(n), F(3, 4, dtype=t), dim=1) for t in (BF16, np.float64)]
    CASES += [case(*pair(n), F(), dim=0), case(*pair(n), F(0, 3), dim=1)]
CASES += [
    case(*pair(n), x)
    for n in ("sum", "prod")
    for x in (I(3, 4), B(4), I(3, dtype=np.uint8), F(0, 2), F(), F(5, dtype=np.float16))
]
CASES += [case(*pair(n), I(3, 4), dim=0, dtype=np.dtype(np.float32)) for n in ("sum", "mean", "prod", "nansum")]
CASES += [case(*pair(n), F(3, 4), dim=1, dtype=np.dtype(np.float64)) for n in ("sum", "mean", "prod")]
CASES += [case(*pair("mean"), x) for x in (F(3, 4), F(0), F(), F(3, dtype=BF16))]
CASES += [case(*pair(n), A(1, NAN, 3, NAN)) for n in ("nansum", "nanmean")] + [
    case(*pair("nanmean"), F(3, 4), dim=0, keepdim=True)
]
ZEROS = np.array([[1, 0, 3], [0, 0, 2], [1, 2, 3]], np.float32)
CASES += [case(*pair("prod"), F(3, 4), dim=d, keepdim=k) for d in (0, 1, -2) for k in (False, True)]
CASES += [case(*pair("prod"), ZEROS, dim=1), case(*pair("prod"), A(2, 0, 3)), case(*pair("prod"), F(2, 3))]

CASES += [
    case(*pair(n), TIES, dim=d, keepdim=k)
    for n in ("amax", "amin", "max", "min")
    for d in (0, 1, -1)
    for k in (False, True)
]
CASES += [
    case(*pair(n), x) for n in ("max", "min") for x in (TIES, I(3, 4), B(4), F(), F(4, dtype=BF16), A(1, INF, -INF))
]
CASES += [case(*pair(n), x) for n in ("amax", "amin", "aminmax") for x in (I(5), B(5))] + [
    case(*pair("aminmax"), F(3, 4), dim=1)
]
CASES += [case(*pair(n), A(1, NAN, 3, NAN), dim=0, grad=False) for n in ("max", "min", "amax", "argmax", "argmin")]
CASES += [case(*pair(n), x, dim=0) for n in ("max", "min") for x in (F(), I(4), F(3, 0, 2), B(4))]
CASES += [
    case(*pair(n), x, dim=d) for n in ("argmax", "argmin") for x in (F(3, 4), TIES, I(3, 4)) for d in (None, 0, -1)
]
CASES += [case(*pair(n), F(2, 3, 4), dim=1, keepdim=True) for n in ("argmax", "argmin")] + [case(*pair("argmax"), F())]
CASES += [
    case(*pair(n), x) for n in ("all", "any") for x in (B(4), F(3, 4), I(4, dtype=np.uint8), F(0, 2), F(), A(NAN))
]
CASES += [
    case(*pair(n), B(2, 3, 4), dim=d, keepdim=k) for n in ("all", "any") for d in (0, (1, -1)) for k in (False, True)
]
CASES += [case(*pair("count_nonzero"), x, dim=d) for x in (I(3, 4, high=2), A(0, 1, NAN)) for d in (None, 0)]

SPREAD = ("var", "std", "var_mean", "std_mean")
CASES += [
    case(*pair(n), F(2, 3, 4), dim=d, keepdim=k, correction=c)
    for n in SPREAD
    for d, k, c in ((None, False, 1), (1, True, 0), ((0, -1), False, 2))
]
CASES += [case(*pair(n), F(5, dtype=BF16)) for n in SPREAD] + [case(*pair(n), A(2, 2, 2)) for n in SPREAD]

CASES += [case(*pair("logsumexp"), x, dim=d) for x in (F(3, 4), 50 * F(3, 4)) for d in (0, (0, 1))]
CASES += [case(*pair("logsumexp"), I(3), dim=0), case(*pair("logsumexp"), F(2, 3), dim=1, keepdim=True)]
CASES += [case(*pair("logsumexp"), np.stack([A(-INF, 0, 1), A(INF, 0, 1), A(-INF, -INF, -INF)]), dim=1, grad=False)]
CASES += [case(*pair("logsumexp"), A(-INF, 0, 1), dim=0)]
NORMED = np.array([[0, 0, 0, 0], [3, -4, 0, 1], [1, -1, 1, -1]], np.float32)
PS = [2, 1, INF, -INF, 0, 3, 0.5, 1.5, "fro", -1]
CASES += [
    case(rd.norm, lambda x, p, dim: torch.linalg.vector_norm(x, 2 if p == "fro" else p, dim), NORMED[1:], p=p, dim=1)
    for p in PS
]
CASES += [case(*pair("norm"), NORMED, p=p, dim=1) for p in (2, 1, INF, 3, 1.5)] + [
    case(*pair("norm"), F(2, 3, 4), dim=(0, 2), keepdim=True)
]
CASES += [case(*pair("norm"), x) for x in (F(2, 3), F(4, dtype=BF16), F(0))]

test_against_torch = run(CASES)


@pytest.mark.parametrize("name", ["mean", "var", "norm"])
def test_integers_are_refused(name):
    with pytest.raises(OpTypeError, match="floating"):
        getattr(rd, name)(I(3))


def test_variance_without_freedom_is_nan():
    assert np.isnan(rd.var(F(1))) and np.isnan(rd.std(F(0)))


def test_bad_dims():
    with pytest.raises(OpIndexError, match=r"\[-2, 1\], but got 2"):
        rd.sum(F(2, 3), dim=2)
    with pytest.raises(OpValueError, match="appears multiple times"):
        rd.sum(F(2, 3), dim=(0, -2))
    with pytest.raises(OpIndexError, match="at least one"):
        rd.max(F(2, 0), dim=1)
    with pytest.raises(OpError, match="at least one"):
        rd.max(F(0))
    with pytest.raises(OpValueError, match="'fro'"):
        rd.norm(F(3), p="nuc")
