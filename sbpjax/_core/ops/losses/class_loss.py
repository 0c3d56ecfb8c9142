"""Classification losses with torch's reductions, class weights and ignored targets.

Worked case: `cross_entropy` of logits (N, C) and targets (N,) is ``logsumexp(x[n]) - x[n, t[n]]``: the gather reads
one logit per row, so neither a one-hot matrix nor the log-probabilities are stored. With the logits split over C each
rank reads the targets in its part and gives zero for the rest, so the picked logits and the sum of
exponentials are partial sums of size (N,), and the (N, C) logits are never gathered.

From `LARGE` logits on, cross entropy is one primitive, whose backward reads the logits and nothing else of their size
(`_core.ops.losses.cross_entropy_primitive`). A graph makes one of it and of the linear layer before it, without logits.
"""

from __future__ import annotations

import math

import numpy as np
from jax import lax

from ..dims import fail, restore_dims
from ..layers.activation import log_softmax
from ..linalg.products import linear
from ..promote import cast, compute_dtype, is_float
from ..shapes.gather import pick, take_rows
from .cross_entropy_primitive import cross_entropy as losses_of
from .cross_entropy_primitive import linear_cross_entropy as losses_of_linear
from .loss import _reduce_loss, _total

LARGE = 2**24  # logits: 64 MB in float32


def _class_dim(x, target, op: str) -> int:
    """Return the class dim of ``(C,)`` or ``(N, C, ...)`` logits, after checking the targets' shape."""
    dim = 0 if x.ndim == 1 else 1
    if x.ndim == 0 or target.shape != x.shape[:dim] + x.shape[dim + 1 :]:
        fail(
            "value",
            op,
            f"input {x.shape}, target {target.shape}",
            f"Expected input batch_size ({x.shape[0] if x.ndim > 1 else 1}) to match target batch_size "
            f"({target.shape[0] if target.ndim else 1}): the target has the input's shape without its class dim",
            "reshape the target",
        )
    if target.dtype not in (np.int64, np.int32, np.uint8):
        rule = "expected target dtype to be Long or Byte (or Int, as in OneFlow)"
        fail("type", op, f"a target of dtype {target.dtype}", rule, "target.long()")
    return dim


def _pick_targets(values, target, weight, dim: int, ignore_index: int):
    """Return (values at the targets, their weights), both 0 where the target is ignored."""
    counted, safe = _mask_targets(target, ignore_index)
    picked = pick(values, safe, dim)
    weights = _weights_of(counted, safe, weight, values.dtype)
    return lax.select_n(counted, lax.full_like(picked, 0), picked), weights, counted


def _mask_targets(target, ignore_index: int):
    """Return which targets count, and the targets with 0 in place of others."""
    target = cast(target, np.int64) if target.dtype == np.uint8 else target
    counted = lax.ne(target, np.asarray(ignore_index, target.dtype))
    return counted, lax.select_n(counted, lax.full_like(target, 0), target)


def _weights_of(counted, safe, weight, dtype):
    """Return the weights of the targets that `_mask_targets` returned, 0 of those that do not count."""
    if weight is None:
        return cast(counted, dtype)
    weights = take_rows(cast(weight, dtype), safe, 0)
    return lax.select_n(counted, lax.full_like(weights, 0), weights)


def nll_loss(x, target, weight=None, /, ignore_index: int = -100, reduction: str = "mean"):
    """Return ``-weight[t] * x[t]``, reduced; the mean divides by the sum of the weights of targets that count.

    Args:
        x: log-probabilities ``(C,)`` or ``(N, C, ...)``.
        target: class indices, of x's shape without C.
        weight: ``(C,)`` or None.
        ignore_index: a target that does not count.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The target's shape, or a number. Splits of the batch stay; a mean or sum over a split batch is a partial sum.

    Example:
        >>> x = flow.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
        >>> flow.nn.functional.nll_loss(x, flow.tensor([1, 0]), reduction="none")
        tensor([0.2877, 0.6931])
    """
    dim = _class_dim(x, target, "nll_loss")
    _check_weight(weight, x.shape[dim], "nll_loss")
    if weight is not None and weight.dtype != x.dtype:
        rule = f"expected scalar type {x.dtype} but found {weight.dtype}: the weights are of the input's dtype"
        fail("type", "nll_loss", f"a weight of dtype {weight.dtype}", rule, "weight.to(input.dtype)")
    picked, weights, _ = _pick_targets(x, target, weight, dim, ignore_index)
    loss = lax.neg(picked if weight is None else lax.mul(picked, weights))
    return _reduce_loss(loss, reduction, _total(weights) if reduction == "mean" else None)


def cross_entropy(
    x, target, weight=None, /, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
):
    """Return the cross entropy of logits with class indices, or with class probabilities.

    Args:
        x: logits ``(C,)`` or ``(N, C, ...)``; any sbp, also split over C.
        target: integers of x's shape without C, or probabilities of x's shape.
        weight: ``(C,)`` or None.
        ignore_index: a class index that does not count.
        reduction: ``"none"``, ``"sum"``, or ``"mean"`` over the weights of the targets that count.
        label_smoothing: share of the uniform distribution mixed into the target.

    Returns:
        The target's shape, or a number. Splits of the batch stay; a mean or sum over a split batch is a partial sum.

    Example:
        >>> x = flow.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> flow.nn.functional.cross_entropy(x, flow.tensor([0, 0]), reduction="none")
        tensor([0.1269, 1.3133])
    """
    _check_smoothing(label_smoothing, x, "cross_entropy")
    if not is_float(x.dtype):
        fail("type", "cross_entropy", f"an input of dtype {x.dtype}", "the logits are floats", "x.float()")
    wide = cast(x, compute_dtype(x.dtype))
    _check_weight(weight, x.shape[min(1, x.ndim - 1)] if x.ndim else 1, "cross_entropy")
    if target.shape == x.shape and is_float(target.dtype):
        if ignore_index >= 0:
            rule = "ignore_index is not supported for floating point target"
            fail("value", "cross_entropy", f"ignore_index={ignore_index}", rule, "leave it out, or give class indices")
        loss, weight_sum = _cross_entropy_of_probabilities(wide, target, weight, label_smoothing)
    elif _is_large(x, weight):
        dim = _class_dim(x, target, "cross_entropy")
        last = (*(d for d in range(x.ndim) if d != dim), dim)
        rows = x if x.ndim == 2 else lax.transpose(x, last)
        loss = losses_of(rows, target, smoothing=label_smoothing, ignore_index=ignore_index)
        weight_sum = _total(cast(_mask_targets(target, ignore_index)[0], loss.dtype))
    else:
        dim = _class_dim(x, target, "cross_entropy")
        loss, weight_sum = _cross_entropy_of_indices(wide, target, weight, dim, ignore_index, label_smoothing)
    return cast(_reduce_loss(loss, reduction, weight_sum), x.dtype)


def _is_large(x, weight) -> bool:
    # Of a program with free sizes the composition is exported: tokens are counted when it is traced.
    is_fixed = all(isinstance(n, int) for n in x.shape)
    return weight is None and x.ndim >= 2 and is_fixed and math.prod(x.shape) >= LARGE


def linear_cross_entropy(
    x,
    weight,
    target,
    bias=None,
    class_weight=None,
    /,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
):
    """Return the cross entropy of the logits ``x weightᵀ + bias``, of which some tokens' are in memory at a time.

    Args:
        x: ``(..., D)``; any sbp but P, and whole along D.
        weight: ``(C, D)``; may be split by classes. With ``(C, *K, D)`` of x ``(N, D)`` there are losses ``(N, *K)``.
        target: class indices ``(...)``. Probabilities ``(N, C, *K)`` too; their logits, those of K and those of weights
            with label smoothing are in memory as a whole.
        bias: ``(C,)`` or None; ``(C, *K)``.
        class_weight: ``(C,)`` or None.
        reduction: ``"none"``, ``"sum"``, or ``"mean"`` over the weights of the targets that count.
        ignore_index: a target that does not count; None is -100.
        label_smoothing: share of the uniform distribution mixed into the target.
        z_loss: factor of the squared logarithm of the sum of exponentials, which is added to each loss.

    Returns:
        The target's shape, or a number, in x's dtype. Splits of tokens stay; a mean or sum over them is a partial sum.

    Example:
        >>> x, weight = flow.tensor([[1.0, 2.0]]), flow.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> flow.nn.functional.linear_cross_entropy(x, weight, flow.tensor([0]))
        tensor(0.6931)

    Source: Liger Kernel (Hsu et al. 2024) computes loss and gradients of a chunk at once, as a graph does here.
    """
    of_logits = weight.ndim > 2 or is_float(target.dtype) or (class_weight is not None and label_smoothing)
    if of_logits and not z_loss and x.ndim in (1, 2) and weight.ndim > 1 and weight.shape[-1] == x.shape[-1]:
        how = {"reduction": reduction, "label_smoothing": label_smoothing}
        return _by_logits(x, weight, target, bias, class_weight, -100 if ignore_index is None else ignore_index, how)
    if x.ndim == 0 or weight.ndim != 2 or weight.shape[1] != x.shape[-1] or target.shape != x.shape[:-1]:
        seen = f"input {x.shape}, linear_weight {weight.shape}, target {target.shape}"
        fail(
            "value", "linear_cross_entropy", seen, "input (..., D), linear_weight (C, D), target (...)", "reshape them"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        seen = f"linear_bias {bias.shape}, linear_weight {weight.shape}"
        fail("value", "linear_cross_entropy", seen, "linear_bias (C,), linear_weight (C, D)", "reshape it")
    if not (is_float(x.dtype) and x.dtype == weight.dtype and (bias is None or bias.dtype == x.dtype)):
        seen = f"dtypes {x.dtype}, {weight.dtype}" + ("" if bias is None else f", {bias.dtype}")
        fail("type", "linear_cross_entropy", seen, "all are the same float", "cast")
    if target.dtype not in (np.int64, np.int32, np.uint8):
        fail("type", "linear_cross_entropy", f"a target of dtype {target.dtype}", "class indices", "target.long()")
    _check_smoothing(label_smoothing, x, "linear_cross_entropy")
    if class_weight is not None and label_smoothing:
        rule = "weights of classes go with label_smoothing=0.0 alone"
        fail("value", "linear_cross_entropy", "both", rule, "cross_entropy(linear(...), ...)")
    ignore_index = -100 if ignore_index is None else ignore_index
    how = {"smoothing": label_smoothing, "z_loss": z_loss, "ignore_index": ignore_index}
    loss = losses_of_linear(x, weight, bias, target, **how)
    weights = _weights_of(*_mask_targets(target, ignore_index), class_weight, loss.dtype)
    if class_weight is not None:
        loss = lax.mul(loss, weights)
    return cast(_reduce_loss(loss, reduction, _total(weights)), x.dtype)


def _by_logits(x, weight, target, bias, class_weight, ignore_index: int, how: dict):
    """Return the cross entropy of logits ``(N, C, *K)`` that are all made."""
    flat = lax.reshape(weight, (math.prod(weight.shape[:-1]), weight.shape[-1]))
    bias = None if bias is None else lax.reshape(bias, (bias.size,))
    logits = lax.reshape(linear(x, flat, bias), (*x.shape[:-1], *weight.shape[:-1]))
    return cross_entropy(logits, target, class_weight, ignore_index=ignore_index, **how)


def _check_weight(weight, classes: int, op: str) -> None:
    if weight is not None and weight.shape != (classes,):
        rule = f"weight tensor should be defined either for all {classes} classes or no classes"
        fail("value", op, f"a weight of shape {list(weight.shape)}", rule, f"weight=sbpjax.ones({classes})")


def _check_smoothing(label_smoothing: float, x, op: str) -> None:
    if not 0.0 <= label_smoothing <= 1.0:
        fail("value", f"{op}(label_smoothing={label_smoothing})", f"input {x.shape}", "it is in [0, 1]", "0.0")


def _cross_entropy_of_indices(x, target, weight, dim: int, ignore_index: int, smoothing: float):
    top = restore_dims(lax.stop_gradient(lax.reduce_max(x, (dim,))), (dim,), True)
    shifted = lax.sub(x, top)
    log_total = lax.log(lax.reduce_sum(lax.exp(shifted), (dim,)))
    picked, weights, counted = _pick_targets(shifted, target, weight, dim, ignore_index)
    loss = lax.select_n(counted, lax.full_like(picked, 0), lax.sub(log_total, picked))
    if weight is not None:
        loss = lax.mul(loss, weights)
    if smoothing:
        classes = x.shape[dim]
        if weight is None:
            spread_out = lax.sub(lax.mul(log_total, np.asarray(classes, x.dtype)), lax.reduce_sum(shifted, (dim,)))
        else:
            log_p = lax.sub(shifted, restore_dims(log_total, (dim,), True))
            shape = tuple(classes if d == dim else 1 for d in range(x.ndim))
            by_class = lax.mul(log_p, lax.broadcast_in_dim(cast(weight, x.dtype), shape, (dim,)))
            spread_out = lax.neg(lax.reduce_sum(by_class, (dim,)))
        spread_out = lax.select_n(counted, lax.full_like(spread_out, 0), spread_out)
        keep, share = np.asarray(1.0 - smoothing, x.dtype), np.asarray(smoothing / classes, x.dtype)
        loss = lax.add(lax.mul(loss, keep), lax.mul(spread_out, share))
    return loss, _total(weights)


def _cross_entropy_of_probabilities(x, target, weight, smoothing: float):
    dim = 0 if x.ndim == 1 else 1
    target = cast(target, x.dtype)
    if smoothing:
        uniform = np.asarray(smoothing / x.shape[dim], x.dtype)
        target = lax.add(lax.mul(target, np.asarray(1.0 - smoothing, x.dtype)), uniform)
    terms = lax.mul(log_softmax(x, dim=dim), target)
    if weight is not None:
        shape = tuple(x.shape[dim] if d == dim else 1 for d in range(x.ndim))
        terms = lax.mul(terms, lax.broadcast_in_dim(cast(weight, x.dtype), shape, (dim,)))
    loss = lax.neg(lax.reduce_sum(terms, (dim,)))
    return loss, np.asarray(math.prod(loss.shape), x.dtype)


def sparse_softmax_cross_entropy(x, target, /):
    """Return the cross entropy of each row: logits ``(..., C)`` with class indices ``(...)``."""
    dim = x.ndim - 1
    if target.shape != x.shape[:-1] or np.dtype(target.dtype).kind not in "iu":
        fail(
            "shape",
            "sparse_softmax_cross_entropy",
            f"logits {x.shape}, labels {target.shape} {target.dtype}",
            "labels are integers of the logits' shape without the last dim",
            "labels.long()",
        )
    wide = cast(x, compute_dtype(x.dtype))
    top = restore_dims(lax.stop_gradient(lax.reduce_max(wide, (dim,))), (dim,), True)
    shifted = lax.sub(wide, top)
    log_total = lax.log(lax.reduce_sum(lax.exp(shifted), (dim,)))
    return cast(lax.sub(log_total, pick(shifted, target, dim)), x.dtype)
