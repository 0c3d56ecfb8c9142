"""Losses of values and of pairs against torch: reductions, weights, edges, bfloat16."""

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as tf

from sbpjax._core.ops.losses import loss as ls
from sbpjax.errors import OpValueError
from tests.ops.checker import BF16, A, F, case, run

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


def test_errors():
    with pytest.raises(OpValueError, match="reduction"):
        ls.mse_loss(X, Y, reduction="avg")
    with pytest.raises(OpValueError, match="same shape"):
        ls.binary_cross_entropy(X, F(4))
