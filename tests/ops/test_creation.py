"""Creation functions against torch: inferred dtypes, lengths and rounding of arange and linspace."""

import jax
import numpy as np
import pytest
import torch

from sbpjax._core.ops import creation as cr
from sbpjax.errors import OpError, OpValueError
from tests.ops.checker import BF16, case, run


def shaped(name):
    return lambda shape, **kw: getattr(torch, name)(shape, **kw)


f32, f64, i64, bf16 = (np.dtype(d) for d in (np.float32, np.float64, np.int64, BF16))
CASES = [
    case(getattr(cr, n), shaped(n), shape=s, dtype=d)
    for n in ("zeros", "ones")
    for s in ((2, 3), (), (0, 2))
    for d in (f32, i64, bf16, np.dtype(bool))
]
CASES += [
    case(cr.full, lambda shape, fill_value, **kw: torch.full(shape, fill_value, **kw), shape=(2,), fill_value=v)
    for v in (True, 3, 2.5, 1j, float("nan"))
]
CASES += [
    case(
        cr.full,
        shaped("full"),
        shape=(2,),
        fill_value=2.7,
        dtype=d,
        ref_attrs={"shape": (2,), "fill_value": 2.7, "dtype": d},
    )
    for d in (i64, f64, bf16)
]


def arange(start=0, end=None, step=1, dtype=None):
    return torch.arange(start, end, step, dtype=dtype)


SPANS = [
    (0, 5, 1),
    (2, 9, 3),
    (5, -3, -2),
    (0, 1, 0.1),
    (0.5, 3.2, 0.7),
    (1.0, -1.0, -0.25),
    (3, 3, 1),
    (0, 2**40, 2**38),
    (0, 1, 1e-2),
    (-3.0, 3.0, 1),
]
CASES += [case(cr.arange, arange, start=a, end=b, step=c) for a, b, c in SPANS]
CASES += [case(cr.arange, arange, end=4, dtype=d) for d in (f32, bf16, f64)] + [
    case(cr.arange, arange, start=0.5, end=4.5, dtype=i64),
    case(cr.arange, arange, end=4),
]
LINES = [(0, 1, 5), (-2.5, 7, 8), (3, 3, 4), (1, 0, 1), (0, 1, 0), (10, -10, 101)]
CASES += [
    case(cr.linspace, lambda start, end, steps, **kw: torch.linspace(start, end, steps, **kw), start=a, end=b, steps=n)
    for a, b, n in LINES
]
CASES += [
    case(
        cr.linspace,
        lambda start, end, steps, **kw: torch.linspace(start, end, steps, **kw),
        start=0,
        end=1,
        steps=7,
        dtype=d,
    )
    for d in (f64, bf16)
]
CASES += [
    case(
        cr.logspace,
        lambda start, end, steps, **kw: torch.logspace(start, end, steps, **kw),
        start=-2,
        end=2,
        steps=5,
        base=b,
    )
    for b in (10.0, 2.0)
]
CASES += [
    case(cr.eye, lambda n, m=None, **kw: torch.eye(n, n if m is None else m, **kw), n=n, m=m, dtype=d)
    for n, m in ((3, None), (2, 4), (3, 0))
    for d in (f32, i64)
]
CASES += [
    case(getattr(cr, n), lambda row, col, offset, n=n: getattr(torch, n)(row, col, offset), row=3, col=4, offset=o)
    for n in ("tril_indices", "triu_indices")
    for o in (0, 1, -1, 9, -9)
]

test_against_torch = run(CASES)


def test_nothing_is_a_constant_of_full_size():
    for program in (
        lambda: cr.arange(end=1000, dtype=f32),
        lambda: cr.eye(n=99),
        lambda: cr.linspace(start=0, end=1, steps=99),
        lambda: cr.full(shape=(99,), fill_value=2),
    ):
        assert all(np.size(c) <= 1 for c in jax.make_jaxpr(program)().consts)


def test_errors():
    with pytest.raises(OpValueError, match="leads from start to end"):
        cr.arange(start=0, end=5, step=-1)
    with pytest.raises(OpValueError, match="nonzero"):
        cr.arange(start=0, end=5, step=0)
    with pytest.raises(OpError, match="at least 0"):
        cr.zeros(shape=(-1,))
    with pytest.raises(OpValueError, match="at least 0"):
        cr.linspace(start=0, end=1, steps=-1)
