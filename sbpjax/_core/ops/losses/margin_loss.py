"""Margin losses for single-label and multi-label classification.

Worked case: `multi_margin_loss` of scores `[0.1, 0.2, 0.4]` with class 2 and margin 1 is
`(max(0, 1 - 0.4 + 0.1) + max(0, 1 - 0.4 + 0.2)) / 3 = 0.5`.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail
from ..layers.activation import logsigmoid
from ..promote import broadcast_to, cast
from ..shapes.gather import check_index, pick, scatter, take_along
from .loss import _reduce_loss, _weight_loss


def _rows(x, op: str):
    """Return ``(N, C)`` scores and whether there was no batch; a number is the score of one class."""
    if x.ndim > 2:
        fail("shape", op, f"x {x.shape}", "x is (C,) or (N, C)", "x.reshape(-1, C)")
    return (x, False) if x.ndim == 2 else (lax.reshape(x, (1, x.size)), True)


def _above_zero(x):
    """Return x where it is above 0, else 0 without a gradient, also for NaN."""
    return lax.select_n(lax.gt(x, np.zeros((), x.dtype)), lax.full_like(x, 0), x)


def multi_margin_loss(x, target, weight=None, /, p: float = 1, margin: float = 1.0, reduction: str = "mean"):
    """Return the mean over the other classes of ``max(0, margin - x[target] + x[i]) ** p``, reduced.

    Args:
        x: scores `(C,)` or `(N, C)`.
        target: class numbers `()` or `(N,)`.
        p: 1 or 2.
        margin: the wanted distance.
        weight: `(C,)` or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    if p not in (1, 2):
        fail("value", f"multi_margin_loss(p={p})", f"x {x.shape}", "only p == 1 and p == 2 are supported", "p=1")
    check_index(target, "multi_margin_loss")
    x, single = _rows(x, "multi_margin_loss")
    single = single and target.ndim == 0
    target = lax.reshape(target, (x.shape[0],))
    right = pick(x, target, 1)
    below = _above_zero(margin - lax.expand_dims(right, (1,)) + x)
    below = below if p == 1 else lax.square(below)
    if weight is not None:
        below = below * lax.expand_dims(jnp.take(cast(weight, x.dtype), target), (1,))
    own = lax.eq(lax.broadcasted_iota(target.dtype, x.shape, 1), broadcast_to(lax.expand_dims(target, (1,)), x.shape))
    loss = lax.reduce_sum(lax.select_n(own, below, lax.full_like(below, 0)), (1,)) / x.shape[1]
    return _reduce_loss(lax.squeeze(loss, (0,)) if single else loss, reduction)


def multilabel_margin_loss(x, target, /, reduction: str = "mean"):
    """Return ``sum over labels j and other classes i of max(0, 1 - x[j] + x[i]) / C``, reduced.

    Args:
        x: scores ``(C,)`` or ``(N, C)``.
        target: of x's shape: each row lists its labels, and ends at the first -1.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
    if x.shape != target.shape and not (x.ndim < 2 and target.ndim < 2 and x.size == target.size):
        seen = f"x {x.shape}, target {target.shape}"
        fail("shape", "multilabel_margin_loss", seen, "input and target have the same shape", "pad it with -1")
    if target.dtype != np.int64:
        fail("shape", "multilabel_margin_loss", f"a target of {target.dtype}", "the target is int64", "target.long()")
    x, single = _rows(x, "multilabel_margin_loss")
    target = lax.reshape(target, x.shape)
    ended = lax.cummax(cast(lax.lt(target, np.zeros((), target.dtype)), np.int32), 1)
    listed = lax.eq(ended, np.int32(0))
    safe = lax.select_n(listed, lax.full_like(target, 0), target)
    hit = jnp.zeros(x.shape, np.int32)
    hit = lax.gt(scatter(hit, safe, cast(listed, np.int32), dim=1, reduce="add"), np.int32(0))
    at = take_along(x, safe, 1)  # (N, labels)
    gap = 1 - lax.expand_dims(at, (2,)) + lax.expand_dims(x, (1,))  # (N, labels, classes)
    gap = _above_zero(gap)
    counts = lax.expand_dims(listed, (2,)) & ~lax.expand_dims(hit, (1,))
    loss = lax.reduce_sum(lax.select_n(counts, lax.full_like(gap, 0), gap), (1, 2)) / x.shape[1]
    return _reduce_loss(lax.squeeze(loss, (0,)) if single else loss, reduction)


def multilabel_soft_margin_loss(x, target, weight=None, /, reduction: str = "mean"):
    """Return the mean over the last dim of the binary cross entropy of logits, reduced.

    Args:
        x: logits ``(N, C)``.
        target: of x's shape, 0 or 1.
        weight: broadcast factor, or None.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
    loss = -(target * logsigmoid(x) + (1 - target) * logsigmoid(-x))
    loss = _weight_loss(loss, weight)
    return _reduce_loss(lax.reduce_sum(loss, (loss.ndim - 1,)) / x.shape[-1], reduction)


def combined_margin_loss(x, target, /, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0):
    """Return cosines ``(N, C)`` with the target's replaced by ``cos(m1 * acos(x) + m2) - m3``.

    Source:
        Deng et al., ArcFace, https://arxiv.org/abs/1801.07698
    """
    own = lax.eq(lax.broadcasted_iota(target.dtype, x.shape, 1), broadcast_to(lax.expand_dims(target, (1,)), x.shape))
    if (m1, m2) == (1.0, 0.0):
        return lax.select_n(own, x, x - m3)
    # Of the target alone: an arc cosine of all classes would cost more than the product that they come from.
    right = lax.reduce_sum(lax.select_n(own, lax.full_like(x, 0), x), (1,))
    moved = lax.cos(lax.acos(right) * m1 + m2) - m3
    return lax.select_n(own, x, broadcast_to(lax.expand_dims(moved, (1,)), x.shape))
