"""Comparisons, logical and bitwise functions against torch."""

import numpy as np
import pytest
import torch

from sbpjax._core.ops import compare as cp
from tests.ops.checker import BF16, B, F, I, case, run, special

PAIRS = [
    (special(), special()[::-1].copy()),
    (I(3, 4), I(4, seed=1)),
    (B(4), B(4, seed=1)),
    (I(3), 1.5),
    (F(3, 1), F(4)),
    (F(3, dtype=BF16), 0.5),
    (F(0, 2), F(2)),
]
CASES = [case(getattr(cp, n), getattr(torch, n), *p) for n in "eq ne lt le gt ge".split() for p in PAIRS]
LOGICAL = [p for p in PAIRS if isinstance(p[1], np.ndarray)]
CASES += [
    case(getattr(cp, n), getattr(torch, n), *p) for n in "logical_and logical_or logical_xor".split() for p in LOGICAL
]
BITS = [(I(3, 4, high=64), I(4, high=64)), (B(4), B(4, seed=1)), (I(4, dtype=np.int32), 3)]
CASES += [
    case(getattr(cp, n), getattr(torch, n), *p) for n in "bitwise_and bitwise_or bitwise_xor".split() for p in BITS
]
CASES += [
    case(getattr(cp, n), getattr(torch, n), I(4, low=-9, high=9), I(4))
    for n in ("bitwise_left_shift", "bitwise_right_shift")
]
CASES += [case(cp.isclose, torch.isclose, special(), np.float32(special() + 1e-6), equal_nan=e) for e in (False, True)]
CASES += [
    case(cp.isclose, torch.isclose, I(4), I(4, seed=1), atol=1.0),
    case(cp.isclose, torch.isclose, F(3, 1), F(4), rtol=0.5),
]

test_against_torch = run(CASES)


def test_bits_of_floats_are_refused():
    with pytest.raises(TypeError, match="bitwise_and"):
        cp.bitwise_and(F(3), F(3))
