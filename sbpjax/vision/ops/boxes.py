"""Box ops: conversion of formats, area, clipping, intersection over union.

A box is left, top, right, bottom (``"xyxy"``) unless an argument names another format. Worked case: (0, 0, 2, 2) and
(1, 0, 3, 2) share an area of 2 of 6 in all, so their IoU is 1/3; nothing of the box around both is empty, so the
generalised IoU is 1/3 as well; their centres are 1 apart, the diagonal around both is √13, so the distance IoU is
1/3 - 1/13.

All are sums, products and extremes of whole tensors: any sbp goes in, and the planner decides. They run in `nn.Graph`
as they are, with their gradients.
"""

from __future__ import annotations

import math

import sbpjax as flow
from sbpjax import Tensor
from sbpjax.errors import OpError, OpValueError

_FORMS = ("xyxy", "xywh", "cxcywh")


def check_box_dim(operation: str, boxes: Tensor) -> None:
    """Check that the last dim of a tensor has the four numbers of a box.

    Raises:
        OpError: it has not.
    """
    if boxes.ndim < 1 or boxes.shape[-1] != 4:
        fix = "boxes.reshape(-1, 4); a single box is box[None]"
        raise OpError(operation, f"boxes {tuple(boxes.shape)}", "the last dim of boxes has 4 elements", fix)


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Return boxes in another form.

    Args:
        boxes: ``(..., 4)``, any sbp but a split of the last dim.
        in_fmt: ``"xyxy"``: left, top, right, bottom; ``"xywh"``: left, top, width, height; ``"cxcywh"``: centre,
            width, height.
        out_fmt: the form wanted.

    Returns:
        ``(..., 4)``, dtype and sbp of `boxes`.

    Raises:
        OpValueError: there is no such form.

    Example:
        >>> box_convert(flow.tensor([[1.0, 2.0, 3.0, 6.0]]), "xyxy", "cxcywh")
        tensor([[2., 4., 2., 4.]])
    """
    operation = f"box_convert(boxes, {in_fmt!r}, {out_fmt!r})"
    for name in (in_fmt, out_fmt):
        if name not in _FORMS:
            raise OpValueError(operation, f"the form {name!r}", f"a form is one of {', '.join(_FORMS)}", "'xyxy'")
    check_box_dim(operation, boxes)
    if in_fmt == out_fmt:
        return boxes.clone()
    a, b, c, d = boxes.unbind(-1)
    if in_fmt == "xywh":
        a, b, c, d = a, b, a + c, b + d
    elif in_fmt == "cxcywh":
        a, b, c, d = a - 0.5 * c, b - 0.5 * d, a + 0.5 * c, b + 0.5 * d
    if out_fmt == "xywh":
        a, b, c, d = a, b, c - a, d - b
    elif out_fmt == "cxcywh":
        a, b, c, d = (a + c) / 2, (b + d) / 2, c - a, d - b
    return flow.stack([a, b, c, d], -1)


def box_area(boxes: Tensor) -> Tensor:
    """Return the areas ``(...)`` of boxes ``(..., 4)``.

    Example:
        >>> box_area(flow.tensor([[0.0, 0.0, 2.0, 3.0]]))
        tensor([6.])
    """
    check_box_dim("box_area(boxes)", boxes)
    boxes = _promote_dtype(boxes)
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """Return boxes cut at the border of an image.

    Args:
        boxes: ``(..., 4)``.
        size: height and width of the image.

    Example:
        >>> clip_boxes_to_image(flow.tensor([[-1.0, 2.0, 9.0, 4.0]]), (8, 6))
        tensor([[0., 2., 6., 4.]])
    """
    check_box_dim("clip_boxes_to_image(boxes, size)", boxes)
    height, width = size
    a, b, c, d = boxes.unbind(-1)
    return flow.stack([a.clamp(0, width), b.clamp(0, height), c.clamp(0, width), d.clamp(0, height)], -1)


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """Return the numbers ``(n,)`` of the boxes ``(K, 4)`` neither of whose sides is shorter than a minimum.

    How many there are depends on values: outside of `nn.Graph` only. In a graph, compare sides and keep a mask.
    """
    check_box_dim("remove_small_boxes(boxes, min_size)", boxes)
    wide, high = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    return flow.nonzero((wide >= min_size) & (high >= min_size)).squeeze(-1)


def box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Return the area that each pair of boxes shares, of the area that it covers.

    Args:
        boxes1: ``(..., N, 4)``.
        boxes2: ``(..., M, 4)``.

    Returns:
        ``(..., N, M)``, from 0 to 1.

    Example:
        >>> box_iou(flow.tensor([[0.0, 0.0, 2.0, 2.0]]), flow.tensor([[1.0, 0.0, 3.0, 2.0]]))
        tensor([[0.3333]])
    """
    shared, covered = _shared_areas(*_pairs("box_iou(boxes1, boxes2)", boxes1, boxes2))
    return shared / covered


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Return `box_iou` less the empty share of the box around each pair.

    Args:
        boxes1: ``(..., N, 4)``.
        boxes2: ``(..., M, 4)``.

    Returns:
        ``(..., N, M)``, from -1 to 1. Source: Rezatofighi et al., "Generalized Intersection over Union", 2019.
    """
    one, two = _pairs("generalized_box_iou(boxes1, boxes2)", boxes1, boxes2)
    shared, covered = _shared_areas(one, two)
    around = _enclosing_size(one, two).prod(-1)
    return shared / covered - (around - covered) / around


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """Return `box_iou` less the squared distance of the centres, of the squared diagonal around each pair.

    Args:
        boxes1: ``(..., N, 4)``.
        boxes2: ``(..., M, 4)``.
        eps: added to the squared diagonal.

    Returns:
        ``(..., N, M)``. Source: Zheng et al., "Distance-IoU Loss", 2020.
    """
    one, two = _pairs("distance_box_iou(boxes1, boxes2)", boxes1, boxes2)
    shared, covered = _shared_areas(one, two)
    return shared / covered - _center_distance(one, two, eps)


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """Return `distance_box_iou` less a term for the difference of the boxes' proportions.

    Args:
        boxes1: ``(..., N, 4)``.
        boxes2: ``(..., M, 4)``.
        eps: keeps quotients finite.

    Returns:
        ``(..., N, M)``. The weight of the term takes no gradient. Source: as `distance_box_iou`.
    """
    one, two = _pairs("complete_box_iou(boxes1, boxes2)", boxes1, boxes2)
    shared, covered = _shared_areas(one, two)
    iou = shared / covered
    return iou - _center_distance(one, two, eps) - aspect_ratio_penalty(one, two, iou, eps)


def _promote_dtype(boxes: Tensor) -> Tensor:
    """Return boxes in a dtype in which areas do not overflow."""
    if boxes.dtype in (flow.float16, flow.bfloat16):
        return boxes.float()
    return boxes if boxes.is_floating_point() or boxes.dtype in (flow.int32, flow.int64) else boxes.int()


def _pairs(operation: str, boxes1: Tensor, boxes2: Tensor) -> tuple[Tensor, Tensor]:
    for boxes in (boxes1, boxes2):
        check_box_dim(operation, boxes)
        if boxes.ndim < 2:
            raise OpError(operation, f"boxes {tuple(boxes.shape)}", "boxes are (..., N, 4)", "box[None]")
    return _promote_dtype(boxes1).unsqueeze(-2), _promote_dtype(boxes2).unsqueeze(-3)


def _shared_areas(one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
    """Return the areas that boxes share and cover, by broadcasting."""
    low = flow.maximum(one[..., :2], two[..., :2])
    high = flow.minimum(one[..., 2:], two[..., 2:])
    sides = (high - low).clamp(min=0)
    shared = sides[..., 0] * sides[..., 1]
    return shared, box_area(one) + box_area(two) - shared


def _enclosing_size(one: Tensor, two: Tensor) -> Tensor:
    """Return width and height of the box around each pair."""
    low = flow.minimum(one[..., :2], two[..., :2])
    return (flow.maximum(one[..., 2:], two[..., 2:]) - low).clamp(min=0)


def _center_distance(one: Tensor, two: Tensor, eps: float) -> Tensor:
    """Return the squared distance of the centres, of the squared diagonal around each pair."""
    diagonal = _enclosing_size(one, two).square().sum(-1) + eps
    between = (one[..., :2] + one[..., 2:]) / 2 - (two[..., :2] + two[..., 2:]) / 2
    return between.square().sum(-1) / diagonal


def aspect_ratio_penalty(one: Tensor, two: Tensor, iou: Tensor, eps: float) -> Tensor:
    """Return the weighted difference of the angles of two boxes' diagonals, by broadcasting."""
    angle_one = flow.atan((one[..., 2] - one[..., 0]) / (one[..., 3] - one[..., 1]))
    angle_two = flow.atan((two[..., 2] - two[..., 0]) / (two[..., 3] - two[..., 1]))
    v = (4 / math.pi**2) * (angle_two - angle_one).square()
    return (v / (1 - iou + v + eps)).detach() * v
