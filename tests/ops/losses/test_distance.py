"""Distances and renormalising against torch."""

import numpy as np
import pytest

from sbpjax._core.ops.losses import distance as ds
from sbpjax.errors import OpError
from tests.ops.checker import F, beside_torch, run

X, Y = F(3, 4), F(4, seed=1)


CASES = [beside_torch(ds.cdist, F(2, 3, 4), F(2, 5, 4), p=p, tol=2e-5) for p in (2.0, 1.0, np.inf, 3.0, 0.0)]
CASES += [
    beside_torch(ds.cdist, F(3, 2), F(5, 2)),
    beside_torch(ds.cdist, F(1, 3, 2), F(4, 5, 2)),
    beside_torch(ds.cdist, X, X, tol=2e-5),
]
CASES += [beside_torch(ds.dist, X, Y, p=p, grad=p > 0) for p in (2.0, 1.0, np.inf, 0.0)]
CASES += [
    beside_torch(ds.renorm, F(2, 3, 4), p=p, dim=d, maxnorm=m, tol=1e-5)
    for p, d, m in ((2.0, 0, 1.0), (1.0, -1, 2.0), (np.inf, 1, 0.5))
]

test_against_torch = run(CASES, per_op=2)


@pytest.mark.parametrize(
    "error, call, rule",
    [
        (OpError, lambda: ds.cdist(X, F(3, 5)), "columns"),
        (OpError, lambda: ds.renorm(F(3), 2.0, 0, 1.0), "2 dims"),
    ],
)
def test_misuse(error, call, rule):
    with pytest.raises(error, match=rule):
        call()
