"""Running sums, products and extremes against torch: ties, zeros, NaN, 0-d and empty tensors."""

import numpy as np
import torch

from sbpjax._core.ops.reductions import cumulative as cu
from tests.ops.checker import BF16, A, B, F, I, case, run


def both(name):
    return getattr(cu, name), getattr(torch, name)


SUMS, EXTREMES = ("cumsum", "cumprod", "logcumsumexp"), ("cummax", "cummin")
CASES = [
    case(*both(n), x, dim=d)
    for n in (*SUMS, *EXTREMES)
    for x, d in ((F(3, 4), 0), (F(3, 4), -1), (F(2, 3, 4), 1), (F(), 0), (F(0, 3), 0), (F(5, dtype=np.float64), 0))
]
CASES += [case(*both(n), x, dim=0) for n in SUMS[:2] for x in (I(4), B(4), I(4, dtype=np.int8), F(6, dtype=BF16))]
CASES += [case(*both(n), I(4), dim=0, dtype=np.dtype(np.float32)) for n in SUMS[:2]]
CASES += [
    case(*both("cumprod"), A(2, 0, 3, 4), dim=0),
    case(*both("cumprod"), A(2, 0, 3, 0, 4), dim=0),
    case(*both("logcumsumexp"), 100 * F(5), dim=0),
]
CASES += [case(*both(n), x, dim=0) for n in EXTREMES for x in (A(1, 3, 2, 3, 3, 0, 1, 0), I(6), B(5))]
CASES += [case(*both(n), A(1, np.nan, 5, np.nan, -1), dim=0, grad=False) for n in EXTREMES]
CASES += [case(*both("diff"), F(3, 5), n=n, dim=d) for n, d in ((1, -1), (2, 1), (1, 0), (3, 0), (0, 0))] + [
    case(*both("diff"), B(5)),
    case(*both("diff"), I(5)),
]

test_against_torch = run(CASES)
