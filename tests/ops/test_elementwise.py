"""Unary functions against torch, with the corner values of every function."""

import numpy as np
import pytest
import torch

from sbpjax._core.ops import elementwise as ew
from tests.ops.checker import BF16, A, B, F, I, case, run, special

ANYWHERE = "exp exp2 expm1 sin cos tan atan sinh cosh tanh asinh sigmoid erf erfc square neg abs sign floor ceil trunc"
ANYWHERE = ANYWHERE.split() + ["round", "frac", "reciprocal", "deg2rad", "rad2deg", "sinc", "positive"]
POSITIVE = "log log1p log2 log10 sqrt rsqrt".split()
UNIT = "asin acos atanh erfinv logit".split()
INTEGERS = (
    "neg abs square sign floor ceil trunc round exp sqrt sigmoid reciprocal log1p sinc erf isnan isinf isfinite".split()
)
PREDICATES = "isnan isinf isfinite isposinf isneginf logical_not".split()
# At infinities and NaN the derivative of these is an arbitrary 0·inf in both libraries.
NO_SPECIAL_GRAD = {"abs", "rsqrt", "sinc", "tan", "sin", "cos", "sinh", "cosh", "frac", "erfinv"}


def pair(name):
    return getattr(ew, name), getattr(torch, name) if hasattr(torch, name) else getattr(torch.special, name)


# torch's own bfloat16 gradient of sinc cancels badly
CASES = [
    case(*pair(n), x, grad=n != "sinc" or x.dtype != BF16)
    for n in ANYWHERE
    for x in (F(3, 4), F(0, 3), F(), F(5, dtype=BF16), F(4, dtype=np.float64))
]
CASES += [case(*pair(n), F(3, 4, low=0.1, high=3.0)) for n in POSITIVE]
CASES += [case(*pair(n), F(3, 4, low=0.05, high=0.9), tol=1e-5) for n in UNIT]  # erfinv: both approximate
CASES += [case(ew.abs, torch.abs, A(0, -0.0, 1, -2, np.inf, -np.inf)), case(ew.rsqrt, torch.rsqrt, A(0, 1, 4))]
CASES += [case(ew.acosh, torch.acosh, F(3, 4, low=1.1, high=3.0))]
CASES += [case(*pair(n), special(), grad=n not in NO_SPECIAL_GRAD) for n in ANYWHERE + POSITIVE]
CASES += [
    case(*pair(n), x)
    for n in INTEGERS
    for x in (I(3, low=-3 if n not in ("sqrt", "log1p") else 0), I(3, dtype=np.uint8))
]
CASES += [case(*pair(n), x) for n in PREDICATES for x in (special(), I(3), B(3), special(BF16))]
CASES += [
    case(ew.square, torch.square, B(4)),
    case(ew.sign, torch.sign, B(4)),
    case(ew.bitwise_not, torch.bitwise_not, B(4)),
]
CASES += [
    case(ew.bitwise_not, torch.bitwise_not, I(4)),
    case(ew.sigmoid, torch.sigmoid, B(4)),
    case(ew.identity, torch.clone, F(3)),
]
CASES += [case(ew.round, torch.round, A(1.25, -1.35, 2.5, 1234.5), decimals=d) for d in (0, 1, -2)]
CASES += [
    case(ew.nan_to_num, torch.nan_to_num, special(), **a) for a in ({}, {"nan": 1.0, "posinf": 5.0}, {"neginf": -3.0})
]
CASES += [
    case(ew.nan_to_num, torch.nan_to_num, I(3)),
    case(ew.logit, torch.logit, A(-0.5, 0.0, 0.3, 0.9, 1.0), eps=0.1),
]
CASES += [
    case(ew.to_dtype, lambda x, dtype: x.to(dtype), x, dtype=np.dtype(d))
    for x in (F(4), I(4), B(4), F(4, dtype=BF16), F(4, dtype=np.float64))
    for d in (np.float32, np.int64, np.bool_, BF16, np.float16, np.float64, np.int8)
]

test_against_torch = run(CASES)


@pytest.mark.parametrize("name", ["neg", "positive", "floor", "abs"])
def test_bool_is_refused(name):
    with pytest.raises(TypeError, match="bool"):
        getattr(ew, name)(B(3))
