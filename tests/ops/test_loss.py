"""Losses against torch: reductions, weights, ignored targets, smoothing, infinities, bfloat16."""

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax.errors import OpTypeError, OpValueError
from sbpjax.ops import loss as ls
from tests.ops.checker import BF16, A, F, I, case, run

RED = ("mean", "sum", "none")
X, Y = F(4, 3), F(4, 3, seed=1)


def case_(*args, **kw):
    """A case whose weights are constant: torch has no gradient for them."""
    return case(*args, const=(2, 3), **kw)


def both(name):
    return getattr(ls, name), getattr(tf, name)


CASES = [
    case(*both(n), X, Y, reduction=r) for n in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss") for r in RED
]
CASES += [
    case(*both(n), A(1, 2, 3, 1), A(1, 0.5, 1, 2)) for n in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
]
CASES += [case(*both("smooth_l1_loss"), X, Y, beta=b) for b in (0.0, 0.3)] + [
    case(*both("huber_loss"), X, Y, delta=0.3)
]
CASES += [case(*both(n), F(3, dtype=BF16), F(3, dtype=BF16, seed=1)) for n in ("mse_loss", "l1_loss")] + [
    case(*both("mse_loss"), F(), F(seed=1)),
    case(*both("mse_loss"), F(0), F(0)),
]
PROB, TARGET = F(4, 3, low=0.05, high=0.95), F(4, 3, low=0, high=1, seed=1)


def weighted(fn):
    return lambda x, t, w=None, p=None, **kw: fn(x, t, w, **({} if p is None else {"pos_weight": p}), **kw)


bce, logits = weighted(tf.binary_cross_entropy), weighted(tf.binary_cross_entropy_with_logits)
CASES += [
    case_(ls.binary_cross_entropy, bce, PROB, TARGET, w, reduction=r) for w in (None, F(3, low=0, high=2)) for r in RED
]
# Constant targets: at 0 and 1 torch's gradient with respect to the target is an infinite logarithm.
CASES += [
    case_(
        ls.binary_cross_entropy,
        lambda x, t: tf.binary_cross_entropy(x, t.detach()),
        A(0, 1, 0, 1, 0.5),
        np.array([0, 1, 1, 0, 1.0], np.float32),
        grad=False,
    )
]
CASES += [
    case_(ls.binary_cross_entropy_with_logits, logits, x, TARGET, *w, reduction=r)
    for x in (X, 100 * X)
    for w in ((), (F(3, low=0, high=2),), (None, F(3, low=0.5, high=2)), (F(4, 1), F(3, low=0.5, high=2)))
    for r in RED[:2]
]
CASES += [case_(ls.binary_cross_entropy_with_logits, logits, A(0, 0), A(0, 1))]
LOGP = np.log(F(4, 3, low=0.1, high=1))
CASES += [case(*both("kl_div"), LOGP, TARGET, reduction=r) for r in (*RED[1:], "batchmean")] + [
    case(*both("kl_div"), LOGP, LOGP[::-1].copy(), reduction="sum", log_target=True)
]
CASES += [case(*both("kl_div"), A(-1, -2), A(0, 0.5), reduction="sum", grad=False)]


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
        *both("cross_entropy"),
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

SIGNS = np.array([1, -1, 1, -1], np.float32)
CASES += [
    case(
        ls.hinge_embedding_loss,
        lambda x, t, **k: tf.hinge_embedding_loss(x, t.detach(), **k),
        F(4),
        SIGNS.astype(np.int64),
        margin=m,
        reduction=r,
    )
    for m in (1.0, 0.3)
    for r in RED
]
CASES += [case(ls.hinge_embedding_loss, tf.hinge_embedding_loss, F(4, 1), SIGNS, reduction="none", const=(1,))]
CASES += [case(*both("margin_ranking_loss"), F(4), F(4, seed=1), SIGNS, margin=0.3, reduction=r) for r in RED] + [
    case(*both("soft_margin_loss"), F(4), SIGNS, const=(1,))
]
CASES += [case(*both("cosine_embedding_loss"), X, Y, SIGNS.astype(np.int64), margin=0.1, reduction=r) for r in RED]
CASES += [
    case(*both("triplet_margin_loss"), X, Y, F(4, 3, seed=2), margin=0.7, swap=s, reduction=r)
    for s in (False, True)
    for r in RED
]

test_against_torch = run(CASES)


@pytest.mark.parametrize("x, target", [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1.0, 1.0)])
def test_binary_cross_entropy_gradient_at_the_edges(x, target):
    t = torch.tensor([x], requires_grad=True)
    tf.binary_cross_entropy(t, torch.tensor([target])).backward()
    got = jax.grad(lambda v: ls.binary_cross_entropy(v, A(target)))(A(x))
    np.testing.assert_allclose(got, t.grad.numpy(), rtol=1e-5)


def test_cross_entropy_keeps_no_matrix_for_the_targets():
    jaxpr = jax.make_jaxpr(lambda x: ls.cross_entropy(x, IDS))(X)
    gathers = [e for e in jaxpr.eqns if e.primitive.name == "gather"]
    assert len(gathers) == 1 and gathers[0].outvars[0].aval.shape == (4,)


def test_errors():
    with pytest.raises(OpValueError, match="without its class dim"):
        ls.cross_entropy(X, I(3))
    with pytest.raises(OpTypeError, match="Long or Byte"):
        ls.nll_loss(X, F(4))
    with pytest.raises(OpValueError, match="reduction"):
        ls.mse_loss(X, Y, reduction="avg")
    with pytest.raises(OpValueError, match="label_smoothing"):
        ls.cross_entropy(X, IDS, label_smoothing=2.0)
    with pytest.raises(OpValueError, match="same shape"):
        ls.binary_cross_entropy(X, F(4))
