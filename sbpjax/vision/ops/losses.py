"""Detection losses: focal loss, and losses of boxes by intersection over union.

The losses of boxes compare row by row: ``(..., 4)`` predicted with ``(..., 4)`` wanted give ``(...)``.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax import Tensor
from sbpjax.errors import OpValueError
from sbpjax.nn import functional as F

from .boxes import _center_distance, _enclosing_size, _promote_dtype, _shared_areas, aspect_ratio_penalty, check_box_dim


def sigmoid_focal_loss(
    inputs: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2, reduction: str = "none"
) -> Tensor:
    """Return the binary cross entropy, of which sure answers count less: ``α (1 - p)^γ (-log p)``, p that of the truth.

    Args:
        inputs: logits of any shape.
        targets: 0 or 1, of that shape and of a floating dtype.
        alpha: the weight of ones, that of zeros is the rest of 1; negative for none.
        gamma: how much less.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    Returns:
        The loss of each logit, or their mean or sum. Source: Lin et al., "Focal Loss for Dense Object Detection", 2017.

    Raises:
        OpValueError: `alpha` is above 1, or there is no such reduction.

    Example:
        >>> sigmoid_focal_loss(flow.tensor([0.0, 1.0]), flow.tensor([1.0, 1.0]))
        tensor([0.0433, 0.0057])
    """
    if alpha > 1:
        operation = f"sigmoid_focal_loss(inputs, targets, alpha={alpha})"
        raise OpValueError(operation, f"alpha={alpha}", "alpha is from 0 to 1, or negative for none", "alpha=0.25")
    p = flow.sigmoid(inputs)
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none")
    loss = loss * (1 - (p * targets + (1 - p) * (1 - targets))) ** gamma
    if alpha >= 0:
        loss = loss * (alpha * targets + (1 - alpha) * (1 - targets))
    return _reduce_loss(loss, reduction, "sigmoid_focal_loss")


def generalized_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """Return 1 less the generalised IoU of each pair of rows.

    Args:
        boxes1: ``(..., 4)``: left, top, right, bottom.
        boxes2: likewise, row by row.
        reduction: ``"none"``, ``"mean"`` or ``"sum"``.
        eps: keeps quotients finite.

    Example:
        >>> box = flow.tensor([[0.0, 0.0, 2.0, 2.0]])
        >>> generalized_box_iou_loss(box, box + 2, reduction="sum")
        tensor(1.5000)
    """
    one, two = _rows("generalized_box_iou_loss", boxes1, boxes2)
    shared, covered = _shared_areas(one, two)
    around = _enclosing_size(one, two).prod(-1)
    return _reduce_loss(
        1 - shared / (covered + eps) + (around - covered) / (around + eps), reduction, "generalized_box_iou_loss"
    )


def distance_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """Return 1 less the distance IoU of each pair of rows; arguments as of `generalized_box_iou_loss`."""
    one, two = _rows("distance_box_iou_loss", boxes1, boxes2)
    shared, covered = _shared_areas(one, two)
    return _reduce_loss(
        1 - shared / (covered + eps) + _center_distance(one, two, eps), reduction, "distance_box_iou_loss"
    )


def complete_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """Return 1 less the complete IoU of each pair of rows; arguments as of `generalized_box_iou_loss`."""
    one, two = _rows("complete_box_iou_loss", boxes1, boxes2)
    shared, covered = _shared_areas(one, two)
    iou = shared / (covered + eps)
    loss = 1 - iou + _center_distance(one, two, eps) + aspect_ratio_penalty(one, two, iou, eps)
    return _reduce_loss(loss, reduction, "complete_box_iou_loss")


def _rows(name: str, boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    for boxes in (boxes1, boxes2):
        check_box_dim(f"{name}(boxes1, boxes2)", boxes)
    return _promote_dtype(boxes1), _promote_dtype(boxes2)


def _reduce_loss(loss: Tensor, reduction: str, name: str) -> Tensor:
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        operation, rule = f"{name}(..., reduction={reduction!r})", "a reduction is 'none', 'mean' or 'sum'"
        raise OpValueError(operation, f"reduction={reduction!r}", rule, "reduction='mean'")
    if reduction == "mean" and not loss.numel():
        return 0.0 * loss.sum()  # no box in a batch is no error
    return loss.mean() if reduction == "mean" else loss.sum()
