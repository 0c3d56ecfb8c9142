"""Regression and pair losses with torch's reductions and weights.

Worked case: `mse_loss` of `[1, 3]` and `[0, 0]` is `(1 + 9) / 2 = 5`; with weights `[3, 1]` it is `(3 + 9) / 4 = 3`.
"""

from __future__ import annotations

import math

import numpy as np
from jax import lax

from ..arithmetic import add, between, clamp_min, difference, minimum, mul, sub, where, xlogy
from ..dims import fail, same_dtype
from ..elementwise import magnitude
from ..layers.norm import cosine_similarity, pairwise_distance
from ..promote import as_arrays, broadcast_to, cast, compute_dtype, floats, is_float, joint_shape, promote
from ..slopes import slopes


def _reduce_loss(loss, reduction: str, weight_sum=None):
    """Return the loss unreduced, summed, or divided by its number of elements (or sum of weights)."""
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        fail(
            "value",
            f"reduction={reduction!r}",
            f"a loss {loss.shape}",
            "reduction is 'none', 'mean' or 'sum'",
            "'mean'",
        )
    if not is_float(loss.dtype) and np.dtype(loss.dtype).kind != "c":
        loss = cast(loss, np.dtype(np.int64))  # sums of integers are int64
    wide = cast(loss, compute_dtype(loss.dtype))
    total = lax.reduce_sum(wide, tuple(range(wide.ndim))) if wide.ndim else wide
    if reduction == "mean":
        if not is_float(loss.dtype):
            fail("shape", "reduction='mean'", f"a loss of {loss.dtype}", "the mean is of floats", "x.float()")
        count = np.asarray(loss.size, wide.dtype) if weight_sum is None else cast(weight_sum, wide.dtype)
        total = lax.div(total, count)
    return cast(total, loss.dtype)


def _pair(x, target, op: str):
    if x.shape != target.shape:
        fail(
            "value",
            op,
            f"input {x.shape}, target {target.shape}",
            "input and target have the same shape",
            "reshape the target",
        )
    return promote(x, target)


def _weighted_mean(loss, weight, reduction: str):
    """Return a loss per element times its weight, reduced; the mean divides by the sum of the weights."""
    if weight is None:
        return _reduce_loss(loss, reduction)
    weight = broadcast_to(weight, loss.shape)
    return _reduce_loss(mul(loss, weight), reduction, _total(weight) if reduction == "mean" else None)


def _total(weights):
    return lax.reduce_sum(cast(weights, compute_dtype(weights.dtype)), tuple(range(weights.ndim)))


def mse_loss(x, target, weight=None, /, reduction: str = "mean"):
    """Return the squared differences, reduced; the mean of weighted ones is over the weights.

    Args:
        x: numbers of any shape.
        target: broadcast to x.
        weight: a factor per element, broadcast, or None.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Returns:
        The broadcast shape, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.tensor([1.0, 3.0]).to_global(p, flow.sbp.split(0))
        >>> loss = flow.nn.functional.mse_loss(x, flow.zeros_like(x))
        >>> loss.item(), loss.sbp
        (5.0, (sbpjax.sbp.partial_sum,))
    """
    return _weighted_mean(lax.square(difference(x, target)), weight, reduction)


def l1_loss(x, target, weight=None, /, reduction: str = "mean"):
    """Return the absolute differences, reduced; the gradient at 0 is 0.

    Args:
        x: numbers of any shape.
        target: a tensor that broadcasts with it.
        weight: a factor per element, broadcast, or None; the mean is over them.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Returns:
        The broadcast shape, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Example:
        >>> flow.nn.functional.l1_loss(flow.tensor([1.0, -3.0]), flow.zeros(2))
        tensor(2.)
    """
    apart = sub(x, target)
    loss = lax.abs(apart) if np.issubdtype(apart.dtype, np.complexfloating) else magnitude(apart)
    return _weighted_mean(loss, weight, reduction)


def smooth_l1_loss(x, target, /, reduction: str = "mean", beta: float = 1.0):
    """Return d² / (2 beta) where the difference d is below beta, else |d| - beta / 2, reduced.

    Args:
        x: numbers of any shape.
        target: a tensor that broadcasts with it.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        beta: where the parabola becomes a line.

    Returns:
        The broadcast shape, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Raises:
        OpError: ``beta`` is negative.

    Example:
        >>> flow.nn.functional.smooth_l1_loss(flow.tensor([0.5, 3.0]), flow.zeros(2), reduction="none")
        tensor([0.1250, 2.5000])
    """
    if beta < 0:
        rule = f"beta must be greater than or equal to 0, but found it to be {beta:g}"
        fail("shape", f"smooth_l1_loss(beta={beta})", f"beta={beta}", rule, "beta=1.0")
    if beta == 0:
        return l1_loss(x, target, reduction=reduction)
    apart = difference(x, target)

    def slope(t, out, d):
        one = np.ones((), d.dtype)
        return lax.mul(t, between(lax.div(d, np.asarray(beta, d.dtype)), -one, one))

    @slopes(slope)
    def smooth(d):
        distance, beta_, half = lax.abs(d), np.asarray(beta, d.dtype), np.asarray(0.5, d.dtype)
        near = lax.div(lax.mul(half, lax.square(distance)), beta_)
        far = lax.sub(distance, np.asarray(0.5 * beta, d.dtype))
        return lax.select_n(lax.lt(distance, beta_), far, near)

    return _reduce_loss(smooth(apart), reduction)


def huber_loss(x, target, weight=None, /, reduction: str = "mean", delta: float = 1.0):
    """Return d² / 2 where the difference d is at most delta, else delta * (|d| - delta / 2), reduced.

    Args:
        x: numbers of any shape.
        target: a tensor that broadcasts with it.
        weight: a factor per element, broadcast, or None; the mean is over them.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        delta: where the parabola becomes a line.

    Returns:
        The broadcast shape, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Raises:
        OpError: ``delta`` is not positive.
    """
    if delta <= 0:
        rule = "huber_loss does not support non-positive values for delta"
        fail("shape", f"huber_loss(delta={delta})", f"delta={delta}", rule, "delta=1.0")
    apart = difference(x, target)

    def slope(t, out, d):
        bound = np.asarray(delta, d.dtype)
        return lax.mul(t, between(d, -bound, bound))

    @slopes(slope)
    def huber(d):
        distance, delta_, half = lax.abs(d), np.asarray(delta, d.dtype), np.asarray(0.5, d.dtype)
        far = lax.mul(delta_, lax.sub(distance, np.asarray(0.5 * delta, d.dtype)))
        near = lax.mul(half, lax.square(distance))
        return lax.select_n(lax.le(distance, delta_), far, near)

    return _weighted_mean(huber(apart), weight, reduction)


def binary_cross_entropy(x, target, weight=None, /, reduction: str = "mean"):
    """Return ``-t * log(x) - (1 - t) * log(1 - x)``, the logarithms at least -100, reduced.

    Args:
        x: probabilities in [0, 1].
        target: of x's shape, in [0, 1].
        weight: broadcast factor of the elements, or None.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The shape of ``x``, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Example:
        >>> x, target = flow.tensor([0.9, 0.2]), flow.tensor([1.0, 0.0])
        >>> flow.nn.functional.binary_cross_entropy(x, target)
        tensor(0.1643)
    """
    same_dtype("binary_cross_entropy", x, target, weight)
    x, target = _pair(x, target, "binary_cross_entropy")
    return _reduce_loss(_weight_loss(_bce(x, target), weight), reduction)


def _slope_of_bce(t, out, x, target):
    """Return t (x - target) / (x (1 - x)), whose divisor is at least 1e-12, as in torch."""
    spare = lax.sub(np.ones((), x.dtype), x)
    return lax.mul(t, lax.div(lax.sub(x, target), lax.max(lax.mul(x, spare), np.asarray(1e-12, x.dtype))))


@slopes(_slope_of_bce, lambda t, out, x, target: lax.mul(t, lax.sub(lax.log1p(lax.neg(x)), lax.log(x))))
def _bce(x, target):
    low = np.asarray(-100, x.dtype)
    hit, miss = lax.max(lax.log(x), low), lax.max(lax.log1p(lax.neg(x)), low)
    return lax.sub(lax.mul(lax.sub(target, np.ones((), x.dtype)), miss), lax.mul(target, hit))


def _weight_loss(loss, weight):
    if weight is None:
        return loss
    return lax.mul(loss, broadcast_to(cast(weight, loss.dtype), joint_shape(loss.shape, weight.shape)))


def binary_cross_entropy_with_logits(x, target, weight=None, pos_weight=None, /, reduction: str = "mean"):
    """Return the binary cross entropy of logits, weighted and reduced.

    Args:
        x: logits of any shape.
        target: probabilities of the same shape.
        weight: a weight per element, broadcast.
        pos_weight: the old form of `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: a weight of positive examples, broadcast.

    Returns:
        The shape of ``x``, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.tensor([2.0, -1.0]).to_global(p, flow.sbp.split(0))
        >>> target = flow.tensor([1.0, 0.0]).to_global(p, flow.sbp.split(0))
        >>> loss = flow.nn.functional.binary_cross_entropy_with_logits(x, target)
        >>> round(loss.item(), 4), loss.sbp
        (0.2201, (sbpjax.sbp.partial_sum,))
    """
    x, target = _pair(x, target, "binary_cross_entropy_with_logits")
    one_ = np.ones((), x.dtype)
    # log(1 + e**-x) = max(-x, 0) + log(1 + e**-|x|), with the derivative at 0 shared evenly
    negative = lax.neg(x)
    softplus = lax.add(lax.max(negative, np.zeros((), x.dtype)), lax.log1p(lax.exp(lax.neg(magnitude(x)))))
    if pos_weight is not None:
        pos_weight = broadcast_to(cast(pos_weight, x.dtype), x.shape)
        softplus = lax.mul(softplus, lax.add(one_, lax.mul(lax.sub(pos_weight, one_), target)))
    return _reduce_loss(_weight_loss(lax.add(lax.mul(lax.sub(one_, target), x), softplus), weight), reduction)


def kl_div(x, target, /, reduction: str = "mean", log_target: bool = False):
    """Return ``target * (log(target) - x)`` reduced; ``"batchmean"`` divides by the first dim's size.

    Args:
        x: log-probabilities.
        target: probabilities, or log-probabilities with ``log_target``.
        reduction: ``"none"``, ``"mean"``, ``"sum"`` or ``"batchmean"``.
        log_target: whether the target is given as logarithms.

    Returns:
        The broadcast shape, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Example:
        >>> x, target = flow.tensor([[0.5, 0.5]]).log(), flow.tensor([[0.25, 0.75]])
        >>> flow.nn.functional.kl_div(x, target, reduction="batchmean")
        tensor(0.1308)
    """
    x, target = promote(x, target)
    if not is_float(x.dtype):
        fail("shape", "kl_div(x, target)", f"tensors of {x.dtype}", "Integral inputs not supported", "x.float()")
    if log_target:
        loss = lax.mul(lax.exp(target), sub(target, x))
    else:
        loss = sub(xlogy(target, target), lax.mul(target, x))
    if reduction == "batchmean":
        return lax.div(_reduce_loss(loss, "sum"), np.asarray(x.shape[0] if x.ndim else 1, loss.dtype))
    return _reduce_loss(loss, reduction)


def poisson_nll_loss(
    x, target, /, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
):
    """Return the negative log likelihood of counts under a Poisson distribution, reduced.

    Args:
        x: the expected counts, or with `log_input` their logarithms.
        target: the counts.
        log_input: the loss is ``exp(x) - target * x``, otherwise ``x - target * log(x + eps)``.
        full: add Stirling's term for targets above 1.
        eps: keeps the logarithm finite.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    x, target = promote(floats(x), target)
    loss = lax.exp(x) - target * x if log_input else x - target * lax.log(x + eps)
    if full:
        large = lax.gt(target, np.ones((), target.dtype))
        safe = lax.select_n(large, lax.full_like(target, 1), target)
        stirling = safe * lax.log(safe) - safe + 0.5 * lax.log(2 * math.pi * safe)
        loss = loss + lax.select_n(large, lax.full_like(target, 0), stirling)
    return _reduce_loss(loss, reduction)


def gaussian_nll_loss(x, target, var, /, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
    """Return the negative log likelihood under normal distributions with the given variances, reduced.

    Args:
        x: expectations.
        target: samples.
        var: variances, of x's shape, or with a last dim of 1 or none; at least `eps` counts, without a gradient.
        full: add the constant term.
        eps: the smallest variance.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
    """
    if var.shape != x.shape:
        if var.shape == x.shape[:-1]:
            var = lax.expand_dims(var, (var.ndim,))
        elif var.ndim != x.ndim or any(a not in (b, 1) for a, b in zip(var.shape, x.shape)):
            fail("value", "gaussian_nll_loss", f"x {x.shape}, var {var.shape}", "var is of incorrect size", "x's shape")
    limited = var + lax.stop_gradient(lax.max(var, np.asarray(eps, var.dtype)) - var)
    loss = 0.5 * (lax.log(limited) + lax.square(x - target) / limited)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce_loss(loss, reduction)


def hinge_embedding_loss(x, target, /, margin: float = 1.0, reduction: str = "mean"):
    """Return x where the target is 1, max(0, margin - x) where it is -1, reduced; x and target broadcast."""
    (x, target), nothing = as_arrays(x, target), np.zeros((), x.dtype)
    below = clamp_min(sub(margin, x), 0.0)
    negative = where(lax.ne(target, cast(1, target.dtype)), below, nothing)
    return _reduce_loss(add(negative, where(lax.ne(target, cast(-1, target.dtype)), x, nothing)), reduction)


def margin_ranking_loss(x, y, target, /, margin: float = 0.0, reduction: str = "mean"):
    """Return max(0, margin - target * (x - y)), reduced."""
    x, y, target = promote(x, y, target)
    return _reduce_loss(clamp_min(sub(np.asarray(margin, x.dtype), lax.mul(target, lax.sub(x, y))), 0.0), reduction)


def soft_margin_loss(x, target, /, reduction: str = "mean"):
    """Return log(1 + e**(-target * x)), reduced."""
    x, target = promote(x, target)
    return _reduce_loss(lax.log1p(lax.exp(lax.neg(lax.mul(target, x)))), reduction)


def cosine_embedding_loss(x, y, target, /, margin: float = 0.0, reduction: str = "mean"):
    """Return 1 - cos(x, y) where the target is 1, max(0, cos(x, y) - margin) where it is -1, else 0, reduced."""
    if x.ndim != y.ndim or target.ndim != x.ndim - 1:
        seen = f"x {x.shape}, y {y.shape}, target {target.shape}"
        fail("shape", "cosine_embedding_loss", seen, "x and y (N, D) with target (N,), or (D,) with ()", "reshape them")
    cosine = cosine_similarity(x, y, dim=-1)
    positive = lax.sub(np.ones((), cosine.dtype), cosine)
    negative = clamp_min(sub(cosine, margin), 0.0)
    sign = cast(target, cosine.dtype)
    one_ = np.ones((), cosine.dtype)
    negative = where(lax.eq(sign, -one_), negative, np.zeros((), cosine.dtype))
    return _reduce_loss(where(lax.eq(sign, one_), positive, negative), reduction)


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    /,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
):
    """Return max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced.

    Args:
        anchor: `(..., D)`.
        positive: like the anchor.
        negative: like the anchor.
        margin: the wanted difference of distances.
        p: the norm of the distance.
        eps: added to the differences.
        swap: take the smaller of the negative's distances to anchor and positive.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
    """
    near = pairwise_distance(anchor, positive, p=p, eps=eps)
    far = pairwise_distance(anchor, negative, p=p, eps=eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p=p, eps=eps))
    return _reduce_loss(clamp_min(add(sub(near, far), margin), 0.0), reduction)
