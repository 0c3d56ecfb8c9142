"""Losses of tensors; `sbpjax.ops.loss` holds the formulas.

Of `size_average` and `reduce`, which PyTorch gave up for `reduction`, any that is given decides.
"""

from __future__ import annotations

from sbpjax.functions.checks import reduced_by
from sbpjax.functions.elementwise import common_shape
from sbpjax.ops import loss as ops
from sbpjax.ops.dims import fail
from sbpjax.tensor import Tensor
from sbpjax.tensor.bounds import check_rows
from sbpjax.tensor.dispatch import apply, run
from sbpjax.tensor.oneflow_arguments import take_oneflow
from sbpjax.tensor.op import op_of


def _spread(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return both in their common shape, as the elementwise losses take them."""
    if tuple(input.shape) != tuple(target.shape):
        shape = common_shape("an elementwise loss of input and target", input, target)
        input, target = input.expand(shape), target.expand(shape)
    return input, target


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return (x - y)², reduced by ``"mean"``, ``"sum"`` or ``"none"``; a weighted mean is over the weights.

    Args:
        input: any shape, any sbp.
        target: a tensor that broadcasts with it.
        size_average: the old form of `reduction`.
        reduce: the old form of `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: factors of the elements; the mean is over them.

    Returns:
        The broadcast shape, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Example:
        >>> p = flow.placement("cpu", [0, 1])
        >>> x = flow.tensor([1.0, 3.0]).to_global(p, flow.sbp.split(0))
        >>> loss = flow.nn.functional.mse_loss(x, flow.zeros_like(x))
        >>> loss.item(), loss.sbp
        (5.0, (sbpjax.sbp.partial_sum,))
    """
    reduction = reduced_by(size_average, reduce, reduction)
    if weight is not None:
        return _weighted(apply(ops.mse_loss, _spread(input, target), (("reduction", "none"),)), weight, reduction)
    return apply(ops.mse_loss, _spread(input, target), (("reduction", reduction),))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return |x - y|, reduced; the mean of weighted ones is over the weights.

    Args:
        input: any shape, any sbp.
        target: a tensor that broadcasts with it.
        size_average: the old form of `reduction`.
        reduce: the old form of `reduction`.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: factors of the elements; the mean is over them.

    Returns:
        The broadcast shape, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Example:
        >>> flow.nn.functional.l1_loss(flow.tensor([1.0, -3.0]), flow.zeros(2))
        tensor(2.)
    """
    reduction = reduced_by(size_average, reduce, reduction)
    if weight is not None:
        return _weighted(apply(ops.l1_loss, _spread(input, target), (("reduction", "none"),)), weight, reduction)
    return apply(ops.l1_loss, _spread(input, target), (("reduction", reduction),))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return (x - y)² / (2 beta) where |x - y| < beta, else |x - y| - beta / 2, reduced.

    Args:
        input: any shape, any sbp.
        target: a tensor that broadcasts with it.
        size_average: the old form of `reduction`.
        reduce: the old form of `reduction`.
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
    reduction = reduced_by(size_average, reduce, reduction)
    if beta < 0:
        rule = "smooth_l1_loss does not support negative values for beta"
        fail("shape", f"smooth_l1_loss(beta={beta})", f"beta={beta}", rule, "beta=1.0")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    static = (("reduction", reduction), ("beta", float(beta)))
    return apply(ops.smooth_l1_loss, _spread(input, target), static)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return (x - y)² / 2 where |x - y| < delta, else delta (|x - y| - delta / 2), reduced."""
    if delta <= 0:
        rule = "huber_loss does not support non-positive values for delta"
        fail("shape", f"huber_loss(delta={delta})", f"delta={delta}", rule, "delta=1.0")
    if weight is not None:
        static = (("reduction", "none"), ("delta", float(delta)))
        return _weighted(apply(ops.huber_loss, _spread(input, target), static), weight, reduction)
    return apply(ops.huber_loss, _spread(input, target), (("reduction", reduction), ("delta", float(delta))))


def _weighted(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Return a loss per element times its weight, reduced; the mean divides by the sum of the weights."""
    weight = weight.expand(loss.shape)
    loss = loss * weight
    if reduction == "none":
        return loss
    return loss.sum() / weight.sum() if reduction == "mean" else loss.sum()


def _class_dim(input) -> int:
    return 1 if isinstance(input, Tensor) and input.ndim > 1 else 0


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of logits with class numbers, or with class probabilities.

    Args:
        input: logits `(C,)` or `(N, C, ...)`; any sbp, also split over C.
        target: integers of the input's shape without C, or probabilities of the input's shape.
        weight: `(C,)` or None.
        size_average: the old form of `reduction`.
        ignore_index: targets of this number count nothing.
        reduce: the old form of `reduction`.
        reduction: ``"none"``, ``"sum"``, or ``"mean"`` over the weights of the targets that count.
        label_smoothing: share of the uniform distribution mixed into the target.

    Returns:
        The target's shape, or a number. Splits of the batch stay; a mean or sum over a split batch is a partial sum.

    Example:
        >>> x = flow.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> flow.nn.functional.cross_entropy(x, flow.tensor([0, 0]), reduction="none")
        tensor([0.1269, 1.3133])
    """
    reduction = reduced_by(size_average, reduce, reduction)
    static = (
        ("ignore_index", ignore_index),
        ("reduction", reduction),
        ("label_smoothing", float(label_smoothing)),
    )
    check_rows("cross_entropy(input, target)", target, input, _class_dim(input), ignore_index)
    return run(op_of(ops.cross_entropy, static), (input, target, weight))


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log probability `(N, C, ...)` of class numbers `(N, ...)`, weighted and reduced.

    Args:
        input: log probabilities ``(N, C, ...)``.
        target: integers ``(N, ...)``.
        weight: ``(C,)`` or None.
        size_average: the old form of `reduction`.
        ignore_index: targets of this number count nothing.
        reduce: the old form of `reduction`.
        reduction: ``"none"``, ``"sum"``, or ``"mean"`` over the weights of the targets that count.

    Returns:
        The target's shape, or a number. Splits of the batch stay; a mean or sum over a split batch is a partial sum.

    Example:
        >>> x = flow.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
        >>> flow.nn.functional.nll_loss(x, flow.tensor([1, 0]), reduction="none")
        tensor([0.2877, 0.6931])
    """
    reduction = reduced_by(size_average, reduce, reduction)
    check_rows("nll_loss(input, target)", target, input, _class_dim(input), ignore_index)
    return apply(ops.nll_loss, (input, target, weight), (("ignore_index", ignore_index), ("reduction", reduction)))


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return target * (log target - x), reduced; ``"batchmean"`` divides the sum by the first dim.

    Args:
        input: log probabilities.
        target: probabilities of the same shape.
        size_average: the old form of `reduction`.
        reduce: the old form of `reduction`.
        reduction: ``"mean"``, ``"batchmean"``, ``"sum"`` or ``"none"``.
        log_target: whether targets are log probabilities too.

    Returns:
        The broadcast shape, or a number. Splits stay; a mean or sum of split elements is a partial sum.

    Example:
        >>> x, target = flow.tensor([[0.5, 0.5]]).log(), flow.tensor([[0.25, 0.75]])
        >>> flow.nn.functional.kl_div(x, target, reduction="batchmean")
        tensor(0.1308)
    """
    reduction = reduced_by(size_average, reduce, reduction)
    batch_mean = reduction == "batchmean"
    static = (("reduction", "sum" if batch_mean else reduction), ("log_target", log_target))
    result = apply(ops.kl_div, _spread(input, target), static)
    return result / input.shape[0] if batch_mean and input.ndim else result


take_oneflow(globals(), "nn.functional.")
