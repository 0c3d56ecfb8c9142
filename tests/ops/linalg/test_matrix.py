"""Triangles, diagonals and the cross product against torch."""

import numpy as np
import pytest
import torch

from sbpjax._core.ops.linalg import matrix as mx
from sbpjax.errors import OpError, OpIndexError, OpValueError
from tests.ops.checker import BF16, B, F, I, case, run


def both(fn):
    return fn, getattr(torch, fn.__name__)


CASES = [
    case(*both(fn), x, diagonal=d)
    for fn in (mx.tril, mx.triu)
    for x in (F(3, 5), F(2, 5, 3), I(4, 4), B(3, 3))
    for d in (0, 1, -2, 9, -9)
]
CASES += [case(*both(mx.tril), F(3, 3, dtype=BF16)), case(*both(mx.triu), F(0, 3))]
CASES += [case(*both(mx.diagonal), F(3, 5), offset=o) for o in (0, 1, -1, 4, 7, -3)]
CASES += [
    case(*both(mx.diagonal), F(2, 3, 4, 5), offset=o, dim1=a, dim2=b)
    for o in (0, -1, 2)
    for a, b in ((0, 1), (1, -1), (3, 1), (-2, 0))
]
CASES += [case(*both(mx.diagonal), x) for x in (B(3, 3), I(3, 4), np.full((2, 2), np.nan, np.float32), F(0, 0))]
CASES += [case(*both(mx.trace), x) for x in (F(3, 5), I(3, 3, dtype=np.int32), F(0, 0), F(4, 4, dtype=np.float64))]
CASES += [case(*both(mx.diag), x, diagonal=d) for x in (F(3), F(3, 5), I(4), B(3)) for d in (0, 2, -1)]
CASES += [
    case(*both(mx.diag_embed), F(2, 3), offset=o, dim1=a, dim2=b)
    for o in (0, 1, -2)
    for a, b in ((-2, -1), (0, 2), (2, 0), (1, 0))
]
CASES += [case(torch_cross, torch.linalg.cross, F(4, 3), F(4, 3, seed=1)) for torch_cross in (mx.cross,)]
CASES += [
    case(mx.cross, torch.linalg.cross, F(3, 4), F(3, 1), dim=0),
    case(mx.cross, torch.linalg.cross, I(2, 3), I(2, 3, seed=1)),
]

test_against_torch = run(CASES)


def test_bad_shapes():
    with pytest.raises(OpError, match="2 dims"):
        mx.tril(F(3))
    with pytest.raises(OpValueError, match="differ"):
        mx.diagonal(F(3, 3), dim1=0, dim2=-2)
    with pytest.raises(OpIndexError, match="out of range"):
        mx.diagonal(F(3, 3), dim1=0, dim2=2)
    with pytest.raises(OpError, match="must have length 3"):
        mx.cross(F(2, 4), F(2, 4))
    with pytest.raises(OpError, match="1 or 2"):
        mx.diag(F(2, 2, 2))
