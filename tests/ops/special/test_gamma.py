"""The gamma function's relatives against torch: on both sides of zero, at poles and at infinity."""

import numpy as np
import pytest
import torch

from sbpjax._core.ops.special import gamma as sp
from sbpjax.errors import OpError
from tests.ops.checker import A, F, I, case, run

TOL = 2e-5  # float32: two libraries' polynomials
ts = torch.special
POSITIVE = F(3, 4, low=0.2, high=6)
BOTH_SIDES = np.array([-0.3, -1.7, -2.5, -10.2, -100.3, -1e-8, 1e-8, 0.5, 7.0])
CORNERS = A(0.0, -0.0, np.inf, -np.inf, np.nan)
D = np.float64


def both(name, *inputs, ref=None, tol=TOL, **attrs):
    return case(getattr(sp, name), ref or getattr(ts, name), *inputs, tol=tol, **attrs)


def polygamma(x, n):
    return torch.polygamma(n, x)


CASES = [case(sp.polygamma, polygamma, POSITIVE.astype(D), n=n, tol=1e-8) for n in (0, 1, 2, 5)]
CASES += [case(sp.polygamma, polygamma, I(4, low=1), n=1, tol=TOL)]
CASES += [both("zeta", x, q, const=(0,), tol=1e-9) for x, q in ((POSITIVE.astype(D) + 1.1, POSITIVE.astype(D)),)]
CASES += [both("zeta", 2.0, POSITIVE), both("zeta", A(1, 0.5, 2, 3), A(1, 2, 0, -1), grad=False)]
CASES += [case(sp.mvlgamma, torch.mvlgamma, POSITIVE + 2, p=p, tol=TOL) for p in (1, 2, 4)]
CASES += [
    case(getattr(sp, n), getattr(torch, n), POSITIVE, F(3, 4, low=0, high=6), const=(0,), tol=TOL)
    for n in ("igamma", "igammac")
]

# 1e-7: torch's own digamma and trigamma have eight digits
CASES += [case(sp.polygamma, polygamma, x[None], n=n, tol=1e-7) for x in BOTH_SIDES for n in range(5)]
CASES += [case(sp.polygamma, polygamma, CORNERS, n=n, grad=False) for n in range(4)]
CASES += [case(sp.lgamma, torch.lgamma, F(3, 4, low=0.1, high=3.0), tol=TOL)]
CASES += [case(sp.digamma, torch.digamma, F(3, 4, low=0.1, high=3.0), tol=TOL)]
CASES += [
    both(name, x[None], ref=ref, tol=1e-7)
    for name, ref in (("lgamma", torch.lgamma), ("digamma", torch.digamma))
    for x in BOTH_SIDES
]
CASES += [both("zeta", s, BOTH_SIDES, tol=1e-9, grad=False) for s in (-1.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 8.0)]
CASES += [both("zeta", s, A(0, -1, -2, np.nan), grad=False) for s in (1.0, 1.5, 2.0, 3.0)]

test_against_torch = run(CASES, per_op=12)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_derivatives_of_negative_numbers_are_the_next_polygamma(n):
    x = torch.tensor(BOTH_SIDES, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.polygamma(n, x).sum(), x)
    np.testing.assert_allclose(sp.polygamma(BOTH_SIDES, n=n + 1), slope, rtol=1e-7)


def test_misuse():
    with pytest.raises(OpError, match="negative n"):
        sp.polygamma(POSITIVE, n=-1)
    with pytest.raises(OpError, match="greater than or equal to 1"):
        sp.mvlgamma(POSITIVE, p=0)
