"""Special functions against torch, at ordinary points and at their corners."""

import numpy as np
import torch

from sbpjax._core.ops.special import special as sp
from tests.ops.checker import BF16, A, F, I, case, run, special

TOL = 2e-5  # float32: two libraries' polynomials
ts = torch.special
POSITIVE = F(3, 4, low=0.2, high=6)
D = np.float64


def both(name, *inputs, ref=None, tol=TOL, **attrs):
    return case(getattr(sp, name), ref or getattr(ts, name), *inputs, tol=tol, **attrs)


CASES = [both(n, F(3, 4)) for n in ("i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr", "spherical_bessel_j0")[:6]]
CASES += [both(n, F(3, 4, dtype=D) * 3, tol=1e-10) for n in ("i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr")]
CASES += [
    both(n, special(), grad=False)
    for n in ("i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr", "entr", "spherical_bessel_j0")
]
CASES += [both(n, I(5, low=-2, high=4)) for n in ("i0", "i1e", "ndtr", "entr")] + [
    both("i0", F(4, dtype=BF16), tol=None)
]
CASES += [both("i1", np.zeros(2, D), tol=1e-12), both("i1e", np.zeros(2, D), tol=1e-12)]
CASES += [both("ndtri", F(3, 4, low=0.01, high=0.99)), both("ndtri", A(0, 1, -1, 2, np.nan), grad=False)]
CASES += [both("log_ndtr", A(-40, -10, -3, 5, 40)), both("entr", POSITIVE), both("entr", np.zeros((), D), grad=False)]
CASES += [both("spherical_bessel_j0", np.linspace(-6, 6, 13), tol=1e-9, grad=False)]
CASES += [
    both("xlog1py", F(3, 4), POSITIVE),
    both("xlog1py", A(0, 0, 1, 0, 2), A(-1, np.nan, -1, np.inf, -3), grad=False),
]
CASES += [
    both("xlog1py", 2.0, POSITIVE),
    both("xlog1py", I(4), POSITIVE),
    both("xlog1py", np.zeros(4, np.float32), POSITIVE),
]
CASES += [case(sp.logaddexp2, torch.logaddexp2, F(3, 4) * 20, F(4) * 20, tol=TOL)]

test_against_torch = run(CASES, per_op=3)
