"""Products against torch: all ranks and batch broadcasts of matmul, the add-products, linear."""

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.linalg import products as la
from sbpjax.errors import OpError, OpTypeError
from tests.ops.checker import BF16, A, F, I, case, run

SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4))]
SHAPES += [
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (6, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((5, 2, 3), (3,)),
]
SHAPES += [
    ((3,), (5, 3, 4)),
    ((6, 5, 2, 3), (5, 3, 4)),
    ((1, 5, 2, 3), (6, 1, 3, 4)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((1, 1, 2, 3), (1, 3, 4)),
]
SHAPES += [((2, 1), (1, 3)), ((1, 2, 3), (1, 1, 3, 4))]


def both(fn, ref=None):
    return fn, ref or getattr(torch, fn.__name__)


CASES = [case(*both(la.matmul), F(*a), F(*b, seed=1)) for a, b in SHAPES]
CASES += [case(*both(la.matmul), F(2, 3, dtype=t), F(3, 4, dtype=t)) for t in (BF16, np.float64, np.float16)]
CASES += [
    case(*both(la.matmul), I(2, 3), I(3, 4)),
    case(*both(la.mm), F(2, 3), F(3, 4)),
    case(*both(la.mv), F(2, 3), F(3)),
]
CASES += [
    case(*both(la.bmm), F(5, 2, 3), F(5, 3, 4)),
    case(*both(la.dot), F(3), F(3, seed=1)),
    case(*both(la.outer), F(3), F(4)),
]
CASES += [
    case(
        la.matmul,
        lambda x, y, a, b: (x.mT if a else x) @ (y.mT if b else y),
        F(5, *((3, 2) if a else (2, 3))),
        F(*((4, 3) if b else (3, 4))),
        transpose_a=a,
        transpose_b=b,
        ref_attrs={"a": a, "b": b},
    )
    for a in (False, True)
    for b in (False, True)
]
CASES += [
    case(la.matmul, lambda x, y, alpha: alpha * (x @ y), F(2, 3), F(3, 4), alpha=0.5),
    case(*both(la.inner), F(2, 3), F(4, 3)),
]
ADD = [{}, {"beta": 0.5, "alpha": 2}, {"beta": 0}]
CASES += [case(*both(la.addmm), F(*s), F(2, 3), F(3, 4), **a) for s in ((2, 4), (4,), (2, 1), ()) for a in ADD]
CASES += [case(*both(la.baddbmm), F(*s), F(5, 2, 3), F(5, 3, 4), **a) for s in ((5, 2, 4), (2, 4), (1,)) for a in ADD]
CASES += [case(*both(la.addbmm), F(2, 4), F(5, 2, 3), F(5, 3, 4), **a) for a in ADD] + [
    case(*both(la.addmv), F(2), F(2, 3), F(3), **a) for a in ADD
]
CASES += [case(*both(la.addr), F(2, 3), F(2), F(3), **a) for a in ADD]
CASES += [case(la.addmm, torch.addmm, np.full((2, 4), np.nan, np.float32), F(2, 3), F(3, 4), beta=0, grad=False)]
CASES += [
    case(la.linear, tf.linear, F(*s), F(4, 3), b) for s in ((3,), (2, 3), (5, 2, 3), (0, 3)) for b in (None, F(4))
]
CASES += [
    case(la.linear, tf.linear, F(2, 3), F(3)),
    case(la.linear, tf.linear, F(2, 3, dtype=BF16), F(4, 3, dtype=BF16), F(4, dtype=BF16)),
]
CASES += [
    case(la.bilinear, tf.bilinear, F(*s, 3), F(*s, 4), F(6, 3, 4), b) for s in ((), (2,), (2, 5)) for b in (None, F(6))
]
CASES += [
    case(*both(la.tensordot), F(2, 3, 4), F(3, 4, 5), dims=2),
    case(*both(la.tensordot), F(2, 3, 4), F(4, 2), dims=((0, -1), (1, 0))),
]
CASES += [case(*both(la.kron), F(2, 3), F(4, 5)), case(*both(la.kron), F(3), F(2, 3))]

test_against_torch = run(CASES)


@pytest.mark.parametrize("a, b", SHAPES, ids=str)
def test_matmul_is_one_product(a, b):
    names = [e.primitive.name for e in jax.make_jaxpr(la.matmul)(F(*a), F(*b)).eqns]
    assert names.count("dot_general") == 1 and set(names) <= {
        "dot_general",
        "transpose",
        "squeeze",
        "broadcast_in_dim",
    }, names


@pytest.mark.parametrize(
    "fn, shapes",
    [(la.matmul, ((2, 3), (4, 5))), (la.matmul, ((), (3,))), (la.mm, ((3,), (3, 2))), (la.bmm, ((2, 3, 4), (3, 4, 5)))],
)
def test_shapes_are_checked(fn, shapes):
    with pytest.raises(OpError, match=fn.__name__):
        fn(*(F(*s) for s in shapes))


def test_dtypes_and_linear_are_checked():
    with pytest.raises(OpTypeError, match="same dtype"):
        la.matmul(F(2, 2), F(2, 2, dtype=np.float64))
    with pytest.raises(OpError, match=r"\(N, K\)"):
        la.linear(A(1, 2), F(3, 4))
