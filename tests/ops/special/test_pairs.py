"""Numbers in pairs, such as the greatest common divisor, against torch."""

import numpy as np
import pytest

from sbpjax._core.ops.special import pairs as pa
from sbpjax.errors import OpError, OpTypeError
from tests.ops.checker import BF16, B, F, I, beside_torch, run, special

X, Y = F(3, 4), F(4, seed=1)
D = np.float64


SIGNED = I(3, 4, low=-12, high=12)
CASES = [beside_torch(fn, SIGNED, I(4, low=-9, high=9)) for fn in (pa.gcd, pa.lcm)] + [
    beside_torch(pa.gcd, I(5), np.zeros(5, np.int32))
]
CASES += [
    beside_torch(pa.nextafter, special(), np.float32(2) * np.ones(1, np.float32), grad=False),
    beside_torch(pa.nextafter, X.astype(D), Y.astype(D), grad=False),
]
CASES += [beside_torch(pa.signbit, x, grad=False) for x in (special(), SIGNED, B(3), I(3, dtype=np.uint8))]
CASES += [
    beside_torch(pa.ldexp, X, I(4, high=9), tol=1e-5),
    beside_torch(pa.ldexp, X, I(4, low=-9, high=9), grad=False),
    beside_torch(pa.ldexp, I(4), I(4)),
    beside_torch(pa.ldexp, F(3, dtype=D), I(3)),
]
CASES += [beside_torch(pa.frexp, x, grad=False) for x in (F(3, 4) * 100, special(), F(4, dtype=D), F(4, dtype=BF16))]

test_against_torch = run(CASES, per_op=2)


@pytest.mark.parametrize(
    "error, call, rule",
    [
        (OpTypeError, lambda: pa.gcd(X, Y), "integers only"),
        (OpError, lambda: pa.frexp(I(3)), "floating-point"),
    ],
)
def test_misuse(error, call, rule):
    with pytest.raises(error, match=rule):
        call()
