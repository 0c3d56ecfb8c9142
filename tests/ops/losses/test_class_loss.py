"""Losses of classes against torch: reductions, weights, ignored targets, smoothing, infinities, bfloat16."""

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.losses import class_loss as ls
from sbpjax.errors import OpTypeError, OpValueError
from tests.ops.checker import BF16, A, F, I, case, run

RED = ("mean", "sum", "none")
X, TARGET = F(4, 3), F(4, 3, low=0, high=1, seed=1)


def case_(*args, **kw):
    """A case whose weights are constant: torch has no gradient for them."""
    return case(*args, const=(2, 3), **kw)


def index_loss(name):
    ref = getattr(tf, name)  # torch has no int32 targets
    return getattr(ls, name), lambda x, t, *w, **kw: ref(x, t.long() if t.dtype == torch.int32 else t, *w, **kw)


IDS = np.array([0, 2, -100, 1])
WEIGHT = A(0.5, 1, 2)
CLASSES = [
    (X, IDS),
    (F(4, 3, 2), I(4, 2, high=3)),
    (F(4, 3, 2, 2), I(4, 2, 2, high=3)),
    (F(3), np.asarray(1)),
    (X, IDS.astype(np.int32)),
]
CASES = []
for name in ("nll_loss", "cross_entropy"):
    CASES += [case_(*index_loss(name), x, t, w, reduction=r) for x, t in CLASSES for w in (None, WEIGHT) for r in RED]
    CASES += [case_(*index_loss(name), X, np.array([0, 2, 1, 1]), ignore_index=i) for i in (1, 5, -1)]
CASES += [
    case_(*index_loss("cross_entropy"), x, t, w, reduction=r, label_smoothing=0.2)
    for x, t in CLASSES[:2]
    for w in (None, WEIGHT)
    for r in RED
]
CASES += [
    case(
        ls.cross_entropy,
        tf.cross_entropy,
        x,
        TARGET if x.ndim == 2 else F(4, 3, 2, low=0, high=1),
        w,
        reduction=r,
        label_smoothing=e,
    )
    for x in (X, F(4, 3, 2))
    for w in (None, WEIGHT)
    for r in RED
    for e in (0.0, 0.1)
]
CASES += [
    case_(*index_loss("cross_entropy"), 1e4 * X, IDS),
    case_(*index_loss("cross_entropy"), F(4, 3, dtype=BF16), IDS),
    case_(*index_loss("cross_entropy"), F(4, 3, dtype=np.float64), IDS),
]
CASES += [
    case_(*index_loss("cross_entropy"), X, np.full(4, -100), reduction="mean", grad=False),
    case_(*index_loss("cross_entropy"), np.array([[-np.inf, 0, 1]], np.float32), np.array([1])),
]
CASES += [
    case(
        ls.sparse_softmax_cross_entropy,
        lambda x, t: tf.cross_entropy(x.flatten(0, -2), t.flatten(), reduction="none").view(t.shape),
        F(2, 4, 3),
        I(2, 4, high=3),
    )
]

test_against_torch = run(CASES)


def test_cross_entropy_keeps_no_matrix_for_the_targets():
    jaxpr = jax.make_jaxpr(lambda x: ls.cross_entropy(x, IDS))(X)
    gathers = [e for e in jaxpr.eqns if e.primitive.name == "gather"]
    assert len(gathers) == 1 and gathers[0].outvars[0].aval.shape == (4,)


def test_errors():
    with pytest.raises(OpValueError, match="without its class dim"):
        ls.cross_entropy(X, I(3))
    with pytest.raises(OpTypeError, match="Long or Byte"):
        ls.nll_loss(X, F(4))
    with pytest.raises(OpValueError, match="label_smoothing"):
        ls.cross_entropy(X, IDS, label_smoothing=2.0)
