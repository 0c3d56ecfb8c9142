"""Shape and selection functions against torch, with negative dims, 0-d and empty tensors."""

import jax
import numpy as np
import pytest
import torch

from sbpjax._core.ops.shapes import view as vw
from sbpjax.errors import OpError, OpIndexError, OpValueError
from tests.ops.checker import BF16, F, I, case, run

X = F(2, 3, 4)


def method(name):
    return lambda x, **kw: getattr(x, name)(*kw.values())


def both(fn):
    return fn, method(fn.__name__)


CASES = [
    case(*both(vw.reshape), x, shape=s)
    for x, s in ((X, (6, 4)), (X, (-1,)), (X, (2, -1, 2)), (F(0, 3), (3, 0)), (F(), (1, 1)), (F(1), ()))
]
CASES += [case(*both(vw.flatten), X, start_dim=a, end_dim=b) for a, b in ((0, -1), (1, 2), (-2, -1), (1, 1))] + [
    case(*both(vw.flatten), F())
]
CASES += [
    case(*both(vw.ravel), X),
    case(*both(vw.unflatten), F(2, 12), dim=-1, sizes=(3, -1)),
    case(*both(vw.unflatten), F(6), dim=0, sizes=(2, 3)),
]
CASES += [case(*both(vw.permute), X, dims=d) for d in ((2, 0, 1), (-1, 0, -2), (0, 1, 2))] + [
    case(*both(vw.permute), F(), dims=())
]
CASES += [case(*both(vw.transpose), X, dim0=a, dim1=b) for a, b in ((0, 1), (-1, 0), (1, 1))] + [
    case(*both(vw.transpose), F(), dim0=0, dim1=-1)
]
CASES += [case(*both(vw.swapaxes), X, axis0=0, axis1=2)] + [case(*both(vw.t), x) for x in (F(2, 3), F(3), F())]
CASES += [
    case(*both(vw.movedim), X, source=a, destination=b)
    for a, b in ((0, 2), (-1, 0), ((0, 1), (2, 0)), ((0, 2), (-1, -2)))
]
CASES += [
    case(*both(vw.expand), x, sizes=s)
    for x, s in (
        (F(3, 1), (3, 4)),
        (F(3, 1), (2, -1, 4)),
        (F(), (2, 3)),
        (F(1), (0,)),
        (X, (2, 3, 4)),
        (F(1, 3), (5, 2, 3)),
    )
]
CASES += [case(*both(vw.broadcast_to), F(3), shape=(2, 3)), case(*both(vw.expand), F(1, 3, dtype=BF16), sizes=(2, 3))]
CASES += [case(*both(vw.squeeze), F(1, 3, 1))] + [
    case(vw.squeeze, torch.squeeze, F(1, 3, 1), dim=d) for d in (0, 1, -1, (0, 2), (0, 1), ())
]
CASES += [case(*both(vw.squeeze), F()), case(vw.squeeze, torch.squeeze, F(), dim=-1)]
CASES += [case(*both(vw.unsqueeze), x, dim=d) for x in (F(2, 3), F()) for d in (0, -1)] + [
    case(*both(vw.unsqueeze), F(2, 3), dim=2)
]
CASES += [
    case(*both(vw.narrow), F(5, 4), dim=d, start=s, length=n)
    for d, s, n in ((0, 1, 3), (-1, -3, 2), (1, 4, 0), (0, 0, 5))
]
CASES += [case(*both(vw.select), F(5, 4), dim=d, index=i) for d, i in ((0, 0), (1, -1), (-2, 3))] + [
    case(*both(vw.select), I(4), dim=0, index=2)
]
SLICES = [(None, None, 1), (1, 4, 1), (-3, None, 2), (0, 99, 3), (4, 2, 1), (None, -1, 2), (9, None, 1)]
CASES += [
    case(vw.slice_dim, lambda x, dim, start, stop, step: x[:, start:stop:step], F(2, 5), dim=1, start=a, stop=b, step=c)
    for a, b, c in SLICES
]
CASES += [
    case(*both(vw.split), F(5, 4), split_size=s, dim=d) for s, d in ((2, 0), (4, 0), (9, 0), ((1, 3), 1), ((0, 5), -2))
]
CASES += [case(*both(vw.split), F(0, 4), split_size=0, dim=0), case(*both(vw.split), F(0, 4), split_size=2, dim=0)]
CASES += [case(*both(vw.chunk), F(n, 2), chunks=c, dim=0) for n, c in ((6, 3), (7, 3), (5, 4), (2, 5), (0, 3))]
CASES += [case(*both(vw.tensor_split), F(7, 2), indices_or_sections=s, dim=0) for s in (3, (1, 4), (2, 9), 8)]
CASES += [case(*both(vw.unbind), X, dim=d) for d in (0, 1, -1)]
CASES += [
    case(*both(vw.unfold), F(7), dimension=0, size=n, step=s) for n, s in ((3, 1), (3, 2), (2, 2), (7, 1), (2, 3))
]
CASES += [case(*both(vw.unfold), F(3, 7, 2), dimension=1, size=n, step=s) for n, s in ((3, 2), (2, 2))] + [
    case(*both(vw.unfold), F(3, 5), dimension=-2, size=2, step=1)
]

test_against_torch = run(CASES)


@pytest.mark.parametrize(
    "fn, attrs", [(vw.narrow, (1, 1, 2)), (vw.transpose, (0, 2)), (vw.expand, ((2, 3, 4),)), (vw.reshape, ((6, 4),))]
)
def test_one_equation_at_most(fn, attrs):
    assert len(jax.make_jaxpr(lambda x: fn(x, *attrs))(X).eqns) <= 1


BAD = [
    (vw.reshape, X, {"shape": (5, -1)}, OpError, "24"),
    (vw.reshape, X, {"shape": (-1, -1)}, OpError, "one -1"),
    (vw.permute, X, {"dims": (0, 1)}, OpError, "once"),
    (vw.t, X, {}, OpError, "2 dims"),
    (vw.expand, X, {"sizes": (2, 3, 5)}, OpError, "must match the existing size"),
    (vw.expand, X, {"sizes": (3, 4)}, OpError, "number of sizes provided"),
    (vw.narrow, X, {"dim": 1, "start": 2, "length": 2}, OpError, "size 3"),
    (vw.select, X, {"dim": 0, "index": 2}, OpIndexError, r"\[-2, 1\]"),
    (vw.split, X, {"split_size": (1, 1), "dim": 1}, OpError, "sum exactly to 3"),
    (vw.chunk, X, {"chunks": 0}, OpValueError, "greater than 0"),
    (vw.slice_dim, X, {"dim": 0, "step": -1}, OpValueError, "greater than zero"),
    (vw.unsqueeze, X, {"dim": 4}, OpIndexError, r"\[-4, 3\]"),
    (vw.unfold, X, {"dimension": 0, "size": 3, "step": 1}, OpError, "size <= 2"),
    (vw.flatten, X, {"start_dim": 2, "end_dim": 1}, OpValueError, "after"),
]


@pytest.mark.parametrize("fn, x, attrs, error, text", BAD, ids=[f"{b[0].__name__}{b[2]}" for b in BAD])
def test_errors(fn, x, attrs, error, text):
    with pytest.raises(error, match=text):
        fn(np.asarray(x), **attrs)
