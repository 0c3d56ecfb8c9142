"""Cat, stack, repeat, flip, roll, pad and meshgrid against torch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.shapes import arrange as ar
from sbpjax.errors import OpError, OpNotSupportedError, OpValueError
from tests.ops.checker import BF16, B, F, I, case, run

X = F(2, 3, 4)


def listed(fn):
    return lambda *arrays, **kw: fn(arrays, **kw)


CASES = [
    case(ar.cat, listed(torch.cat), *p, dim=d)
    for p, d in (((F(2, 3), F(4, 3)), 0), ((F(2, 3), F(2, 1)), -1), ((X, X, X), 1), ((F(3),), 0))
]
CASES += [
    case(ar.cat, listed(torch.cat), *p, dim=0)
    for p in ((F(2), I(3)), (F(2, dtype=BF16), F(1)), (F(0), F(2, 3)), (I(2), B(2)), (F(0, 3), F(2, 3)), (F(0), F(0)))
]
CASES += [case(ar.stack, listed(torch.stack), F(2, 3), F(2, 3, seed=1), dim=d) for d in (0, 1, -1)] + [
    case(ar.stack, listed(torch.stack), F(), F(seed=1), dim=0)
]
for name in ("hstack", "vstack", "dstack", "column_stack"):
    CASES += [
        case(getattr(ar, name), listed(getattr(torch, name)), *p)
        for p in ((F(3), F(3)), (F(2, 3), F(2, 3)), (F(), F()))
    ]
CASES += [
    case(ar.repeat, lambda x, repeats: x.repeat(repeats), F(2, 3), repeats=r)
    for r in ((2, 1), (1, 3), (2, 2), (4, 1, 2), (0, 2), (1, 1))
]
CASES += [
    case(ar.repeat, lambda x, repeats: x.repeat(repeats), x, repeats=r)
    for x, r in ((F(), (2, 3)), (F(1, 3), (5, 2)), (I(2), (2,)))
]
CASES += [case(ar.tile, torch.tile, X, dims=d) for d in ((2,), (1, 2), (2, 1, 1, 3))]
CASES += [case(ar.repeat_interleave, torch.repeat_interleave, F(2, 3), repeats=2, dim=d) for d in (None, 0, -1)] + [
    case(ar.repeat_interleave, torch.repeat_interleave, F(3), repeats=0, dim=0)
]
CASES += [
    case(
        ar.repeat_interleave,
        lambda x, repeats, dim: x.repeat_interleave(torch.tensor(repeats), dim),
        F(3, 2),
        repeats=r,
        dim=0,
    )
    for r in ((1, 0, 2), (0, 0, 0))
]
CASES += [case(ar.flip, torch.flip, X, dims=d) for d in ((0,), (0, -1), ())] + [
    case(ar.fliplr, torch.fliplr, X),
    case(ar.flipud, torch.flipud, X),
]
CASES += [case(ar.rot90, torch.rot90, X, k=k, dims=d) for k in (0, 1, 2, 3, -1) for d in ((0, 1), (2, 0))]
CASES += [
    case(ar.roll, torch.roll, X, shifts=s, dims=d)
    for s, d in ((1, 0), (-1, 2), ((1, -2), (0, 1)), ((9,), (1,)), ((1, 1), (1, 1)))
]
CASES += [case(ar.roll, torch.roll, X, shifts=5), case(ar.roll, torch.roll, F(0, 3), shifts=2, dims=0)]
CASES += [
    case(ar.pad, tf.pad, X, pad=p) for p in ((1, 2), (0, 0, 1, 1), (-1, 1, 2, -2), (1, 0, 0, 1, 1, 1), (0, 0), (-2, -2))
]
CASES += [case(ar.pad, tf.pad, F(3), pad=(1, 1), value=v) for v in (2.5, float("-inf"))] + [
    case(ar.pad, tf.pad, I(3), pad=(1, 1), value=2),
    case(ar.pad, tf.pad, B(3), pad=(1, 1), value=True),
]
MODES = ("reflect", "replicate", "circular")
CASES += [
    case(ar.pad, tf.pad, x, pad=p, mode=m)
    for m in MODES
    for x, p in (
        (F(2, 3, 4), (2, 1)),
        (F(1, 2, 3, 4), (1, 2, 2, 1)),
        (F(1, 1, 3, 3, 4), (1, 1, 1, 0, 0, 2)),
        (F(2, 4), (0, 3)),
        (F(2, 5), (-1, 2)),
    )
]
CASES += [case(ar.meshgrid, torch.meshgrid, F(3), F(4), indexing=i) for i in ("ij", "xy")] + [
    case(ar.meshgrid, torch.meshgrid, F(2), F(3), F(), indexing=i) for i in ("ij", "xy")
]
CASES += [
    case(ar.atleast, lambda x, ndim: getattr(torch, f"atleast_{ndim}d")(x), x, ndim=n)
    for n in (1, 2, 3)
    for x in (F(), F(3), F(2, 3), X)
]

test_against_torch = run(CASES)

BAD = [
    (ar.cat, (F(2, 3), F(2, 4)), {"dim": 0}, OpError, "except in dimension 0"),
    (ar.cat, (F(), F()), {}, OpError, "at least 1 dim"),
    (ar.cat, (), {}, OpValueError, "at least one"),
    (ar.stack, (F(2), F(3)), {}, OpError, "to be equal size"),
    (ar.repeat, (F(2, 3),), {"repeats": (2,)}, OpError, "can not be smaller"),
    (ar.pad, (F(3),), {"pad": (1,)}, OpError, "divisible by 2"),
    (ar.pad, (F(3),), {"pad": (-2, -2)}, OpError, "at least 0"),
    (ar.pad, (F(1, 3),), {"pad": (3, 0), "mode": "reflect"}, OpError, "at most 2"),
    (ar.pad, (F(3),), {"pad": (1, 0), "mode": "mirror"}, OpNotSupportedError, "padding mode mirror"),
    (ar.roll, (F(3),), {"shifts": (1, 2), "dims": (0,)}, OpError, "must align"),
]


@pytest.mark.parametrize("fn, arrays, attrs, error, text", BAD, ids=[f"{b[0].__name__}{b[2]}" for b in BAD])
def test_errors(fn, arrays, attrs, error, text):
    with pytest.raises(error, match=text):
        fn(*(np.asarray(x) for x in arrays), **attrs)
