"""Binary and ternary arithmetic against torch: promotion, broadcasting, rounding modes, ties and bounds."""

import numpy as np
import pytest
import torch

from sbpjax._core.ops import arithmetic as ar
from sbpjax._core.ops import powers
from tests.ops.checker import BF16, A, B, F, I, case, run, special

INF, NAN = np.inf, np.nan
PAIRS = [
    (F(3, 4), F(4, seed=1)),
    (F(3, 1), F(1, 4, seed=1)),
    (F(0, 4), F(4)),
    (F(), F(3)),
    (F(3), 2.5),
    (2, F(3)),
    (I(3, high=9), 2),
    (I(3, high=9), 1.5),
    (I(3, dtype=np.int32), I(3, low=1, seed=1)),
    (I(3, dtype=np.uint8), F(3, dtype=np.float16, low=0.5, high=2)),
    (F(3, dtype=BF16), F(3, seed=1)),
    (F(3, dtype=np.float64), F(3, seed=1)),
    (F(3), F(dtype=np.float64)),
    (F(3, dtype=BF16), 0.5),
]
BINARY = "add sub mul div maximum minimum fmax fmin".split()
CASES = [case(getattr(ar, n), getattr(torch, n), a, b) for n in BINARY[:4] for a, b in PAIRS]
TENSORS = [(a, b) for a, b in PAIRS if isinstance(a, np.ndarray) and isinstance(b, np.ndarray)]
TIES = (A(1, 2, 3, 0.0), A(1, 3, 2, -0.0))
NANS = (A(1, NAN, NAN, INF), A(NAN, 1, NAN, INF))
CASES += [case(getattr(ar, n), getattr(torch, n), *p) for n in BINARY[4:] for p in [*TENSORS, TIES]]
CASES += [case(getattr(ar, n), getattr(torch, n), *NANS, grad=False) for n in BINARY[4:]]
CASES += [
    case(ar.add, torch.add, B(4), B(4, seed=1)),
    case(ar.mul, torch.mul, B(4), B(4, seed=1)),
    case(ar.add, torch.add, B(4), 1),
]
CASES += [case(ar.add, torch.add, F(3, 4), F(4), alpha=2), case(ar.sub, torch.sub, I(3), I(3, seed=1), alpha=-3)]
CASES += [case(ar.rsub, torch.rsub, F(3), F(3, seed=1), alpha=0.5), case(ar.div, torch.div, B(3), I(3, low=1))]

HARD = (A(7, -7, 7, -7, 0.3, 6.0, 1, -1, 0, 5), A(2, 2, -2, -2, 0.1, 0.1, 0.0, 0.0, 0.0, INF))
INTS = (A(7, -7, 7, -7, 0, 6, dtype=np.int64), A(2, 2, -2, -2, 3, -3, dtype=np.int64))
for rounding in ("floor", "trunc"):
    CASES += [
        case(ar.div, torch.div, *p, rounding_mode=rounding)
        for p in (HARD, INTS, (F(3, 4), F(4)), (I(3), 2.0), (F(3), 0.3))
    ]
for n in ("remainder", "fmod"):
    CASES += [
        case(getattr(ar, n), getattr(torch, n), *p) for p in (INTS, (F(3, 4), F(4)), (I(3, low=-9), 4), (F(3), -0.3))
    ]
    CASES += [case(getattr(ar, n), getattr(torch, n), A(7, -7, 5, -5, 1), A(2, 2, INF, INF, 0), grad=False)]
CASES += [
    case(ar.floor_divide, torch.floor_divide, *p, grad=False)
    for p in (HARD, INTS, (I(3, dtype=np.uint8), 2), (-7, I(3, low=1)))
]

CASES += [
    case(powers.pow, torch.pow, *p)
    for p in ((F(3, low=0.2, high=2), F(3)), (A(0, 0, 2, -2), A(0, 2, 0, 2)), (F(3), I(3)))
]
CASES += [
    case(powers.pow, torch.pow, 2.0, F(3)),
    case(powers.pow, torch.pow, I(4), I(4, seed=1)),
    case(powers.pow, torch.pow, 2, I(3)),
]
CASES += [
    case(powers.pow, torch.pow, A(1, -1, 2, -1, 3, dtype=np.int64), A(-1, -2, -1, -3, 4, dtype=np.int64)),
]
CASES += [
    case(powers.pow_scalar, torch.pow, x, exponent=e)
    for x in (A(0.0, 1.5, -2.0, 3.0), F(3, dtype=BF16, low=0.5, high=2))
    for e in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, 2.0, 7)
]
CASES += [case(powers.pow_scalar, torch.pow, I(4), exponent=e) for e in (0, 1, 3, 2.5, 0.5)]
CASES += [
    case(powers.rpow_scalar, lambda x, base: torch.pow(base, x), x, base=b) for x in (F(3), I(3)) for b in (2, 0.5)
]
CASES += [
    case(powers.float_power, torch.float_power, I(3), F(3)),
    case(powers.float_power, torch.float_power, F(3, low=0.1, high=2), 2),
]

WHERE = [
    (B(3, 4), F(3, 4), F(4)),
    (B(4), F(3, 1), 0.0),
    (B(3), 1.0, 2.0),
    (B(3), I(3), 1.5),
    (B(), F(3), F(3, seed=1)),
    (B(3), 1, F(3, dtype=BF16)),
]
CASES += [case(ar.where, torch.where, *p) for p in WHERE]
X = A(-2, -1, -0.5, 0, 1, 2, NAN)
BOUNDS = [
    (-1.0, 1.0),
    (None, 0.5),
    (0, None),
    (1.0, -1.0),
    (A(-1, -1, -1, -1, -1, 3, 0), A(1, 1, -0.5, 0, 0, 2, 1)),
    (None, A(1, 0, 1, 1, -1, 1, 1)),
]
CASES += [case(ar.clamp, torch.clamp, X[:6], *((b[:6] if isinstance(b, np.ndarray) else b) for b in p)) for p in BOUNDS]
CASES += [
    case(ar.clamp, torch.clamp, X, -1.0, 1.0, grad=False),
    case(ar.clamp, torch.clamp, F(2), None, A(1, NAN), grad=False),
    case(ar.xlogy, torch.xlogy, A(0), A(0), grad=False),
    case(ar.clamp, torch.clamp, I(4), 0.5, None),
    case(ar.clamp, torch.clamp, I(4), 1, 3),
]
CASES += [
    case(ar.clamp, torch.clamp, F(3, 1), F(4, low=-1, high=0), None),
    case(ar.clamp_min, torch.clamp_min, F(5), 0.1),
    case(ar.clamp_max, torch.clamp_max, F(5), 0),
]
CASES += [
    case(ar.lerp, torch.lerp, F(3, 4), F(3, 4, seed=1), w)
    for w in (0.3, 0.8, F(3, 4, low=-1, high=2), F(4, low=0, high=1))
]
CASES += [case(ar.addcmul, torch.addcmul, F(3, 4), F(4), F(3, 1), value=v) for v in (1, 0.5)]
CASES += [case(ar.addcdiv, torch.addcdiv, F(3, 4), F(4), F(3, 1, low=1, high=2), value=v) for v in (1, 0.5)]
CASES += [
    case(ar.addcmul, torch.addcmul, I(3), I(3), I(3), value=2),
    case(ar.atan2, torch.atan2, F(3, 4), F(4)),
    case(ar.atan2, torch.atan2, I(3), I(3, seed=1)),
]
CASES += [
    case(ar.atan2, torch.atan2, special()[:4], special()[[1, 0, 2, 3]], grad=False),
    case(ar.hypot, torch.hypot, F(3, 4), F(4)),
]
CASES += [
    case(ar.logaddexp, torch.logaddexp, F(3, 4), F(4)),
    case(ar.logaddexp, torch.logaddexp, A(0, 1, 100, -INF, 2), A(0, -1, -100, 1, 2)),
]
CASES += [case(ar.logaddexp, torch.logaddexp, A(INF, -INF, NAN, INF), A(INF, -INF, 1, 0), grad=False)]
CASES += [
    case(ar.xlogy, torch.xlogy, A(0, 0, 1, 2, 0, 1), A(2, 1, 2, 0.5, -1, 3)),
    case(ar.xlogy, torch.xlogy, A(0.0, 1), A(NAN, NAN), grad=False),
]
CASES += [
    case(ar.copysign, torch.copysign, F(4), A(1, -1, 0.0, -0.0)),
    case(ar.heaviside, torch.heaviside, A(-1, 0, 2, NAN), A(0.5, 0.5, 1, 1), grad=False),
]

test_against_torch = run(CASES)


def test_sub_of_bools_is_refused():
    with pytest.raises(TypeError, match="bool"):
        ar.sub(B(3), B(3))


def test_wrong_rounding_mode():
    with pytest.raises(ValueError, match="rounding_mode"):
        ar.div(F(3), 2, rounding_mode="up")


def test_integer_to_negative_power():
    with pytest.raises(RuntimeError, match="negative"):
        powers.pow_scalar(I(3), exponent=-1)
