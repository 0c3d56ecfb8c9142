"""Pooling against torch: indices, ties, padding, ceil_mode, divisors, adaptive sizes."""

import jax
import numpy as np
import pytest
import torch.nn.functional as tf

from sbpjax._core.ops.conv import pool as po
from sbpjax.errors import OpError, OpValueError
from tests.ops.checker import BF16, F, I, case, run


def both(name, *inputs, **kw):
    return case(getattr(po, name), getattr(tf, name), *inputs, **kw)


X1, X2, X3 = F(2, 3, 9), F(2, 3, 7, 8), F(1, 2, 5, 6, 4)
TIED = I(2, 3, 8, 8, high=3).astype(np.float32)
MAX = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "stride": 1, "dilation": 2},
]
MAX += [
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 3, "padding": 1, "ceil_mode": True},
]
CASES = [
    both(f"max_pool{n}d", x, return_indices=r, **o)
    for n, x in ((1, X1), (2, X2), (3, X3))
    for o in MAX
    for r in (False, True)
]
CASES += [
    both("max_pool2d", x, kernel_size=(2, 3), stride=(1, 2), padding=(1, 0), return_indices=True)
    for x in (X2, TIED, F(3, 7, 8), F(2, 3, 7, 8, dtype=np.float64))
]
CASES += [
    both("max_pool2d", TIED, kernel_size=3, stride=1, return_indices=True),
    both("max_pool2d", F(2, 3, 4, 4, dtype=BF16), kernel_size=2),
    both("max_pool1d", F(3, 9), kernel_size=3),
]
NANS = np.where(F(1, 2, 6, 6) > 1, np.nan, F(1, 2, 6, 6)).astype(np.float32)
CASES += [
    both("max_pool2d", NANS, kernel_size=2, return_indices=True, grad=False),
    both("max_pool2d", NANS, kernel_size=3, stride=1, grad=False),
]
AVG = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
]
AVG += [
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
]
AVG += [{"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}]
CASES += [both(f"avg_pool{n}d", x, **o) for n, x in ((1, X1), (2, X2), (3, X3)) for o in AVG]
CASES += [
    both("avg_pool2d", F(2, 3, 8, 8), kernel_size=2),
    both("avg_pool2d", X2, kernel_size=(2, 3), divisor_override=5),
    both("avg_pool2d", F(3, 7, 8), kernel_size=3),
]
CASES += [
    both("avg_pool3d", X3, kernel_size=2, divisor_override=3),
    both("avg_pool2d", F(2, 3, 8, 8, dtype=BF16), kernel_size=2),
    both("avg_pool2d", X2, kernel_size=(7, 8)),
]
WIDE = {"kernel_size": 10**6, "padding": 500_000}  # the windows are nearly all padding
CASES += [both("max_pool1d", X1, **WIDE, return_indices=r) for r in (False, True)] + [
    both("avg_pool1d", X1, **WIDE, count_include_pad=c) for c in (False, True)
]
CASES += [both("max_pool1d", X1, kernel_size=4, stride=1, padding=2, dilation=d, return_indices=True) for d in (2, 3)]
for kind in ("avg", "max"):
    CASES += [both(f"adaptive_{kind}_pool1d", X1, output_size=s) for s in (1, 3, 4, 9)]
    CASES += [
        both(f"adaptive_{kind}_pool2d", x, output_size=s)
        for x in (X2, F(3, 6, 4))
        for s in (1, (3, 2), (None, 3), 5)
        if x.ndim == 4 or s != 5
    ]
    CASES += [both(f"adaptive_{kind}_pool3d", X3, output_size=s) for s in (1, (2, 3, 4), 3)]
CASES += [both("adaptive_max_pool2d", x, output_size=(3, 4), return_indices=True) for x in (X2, TIED)] + [
    both("adaptive_max_pool1d", X1, output_size=4, return_indices=True)
]

test_against_torch = run(CASES)


def test_only_elementwise_and_slices():
    names = {e.primitive.name for e in jax.make_jaxpr(lambda x: po.max_pool2d(x, 3, 2, 1))(X2).eqns}
    assert names <= {"pad", "slice", "gt", "ne", "or", "select_n"}


def test_errors():
    with pytest.raises(OpValueError, match="half"):
        po.max_pool2d(X2, kernel_size=2, padding=2)
    with pytest.raises(OpError, match="at least one"):
        po.avg_pool1d(X1, kernel_size=10)
    with pytest.raises(OpError, match="4 dims"):
        po.max_pool2d(F(3, 4), kernel_size=2)
    with pytest.raises(OpValueError, match="not zero"):
        po.avg_pool2d(X2, kernel_size=2, divisor_override=0)
    with pytest.raises(OpError, match="integer out of range"):
        po.max_pool1d(X1, kernel_size=2**48, padding=2**31)
