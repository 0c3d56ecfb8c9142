"""Non-maximum suppression: `nms` and `batched_nms`.

Boxes are taken from the best score to the worst; one is dropped if a kept one overlaps it by more than a threshold.
Three boxes in a row, each overlapping its neighbour: the best drops the second, so the third stays.

How many are kept depends on values. Outside of a graph the result has just so many rows. A compiled program has static
shapes: with ``size=`` the result has so many rows, of which the first ``count`` are valid and the others are -1.

In the padded form the rule is applied to all boxes at once, again and again, until nothing changes:
``kept[j] = no i < j with kept[i] and overlap[i, j] > threshold``. After the n-th time the first n boxes are right for
good, so it ends at the same answer; as a rule after a few rounds, since chains of boxes that drop each other are short.
"""

from __future__ import annotations

from typing import overload

import jax
import jax.numpy as jnp
import numpy as np

import sbpjax as flow
from sbpjax import Tensor
from sbpjax._C import nms as _of_any_number
from sbpjax.errors import OpError, OpValueError

from .boxes import check_box_dim


@overload
def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor: ...


@overload
def nms(boxes: Tensor, scores: Tensor, iou_threshold: float, *, size: int) -> tuple[Tensor, Tensor]: ...


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float, *, size: int | None = None):
    """Return the numbers of the boxes that no better one overlaps by more than a threshold, best first.

    Args:
        boxes: ``(K, 4)``: left, top, right, bottom; with `size` also ``(..., K, 4)``.
        scores: ``(K,)``, or ``(..., K)``. A score of -inf marks padding, which is never kept where `size` is given.
        iou_threshold: of the area that two boxes share to that of both, from 0 to 1.
        size: how many numbers there are at most; makes shapes static, as `nn.Graph` needs them.

    Returns:
        ``(n,)`` int64. With `size` a pair: ``(..., size)`` int64, -1 where there is none, and ``(...)`` int64, how many
        are valid. No gradient.

    Raises:
        OpError: shapes do not fit.
        OpValueError: the threshold or the size is out of its range.

    Example:
        >>> boxes = flow.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0], [20.0, 0.0, 30.0, 10.0]])
        >>> nms(boxes, flow.tensor([0.8, 0.9, 0.3]), 0.5)
        tensor([1, 2])
        >>> nms(boxes, flow.tensor([0.8, 0.9, 0.3]), 0.5, size=3)
        (tensor([ 1,  2, -1]), tensor(2))
    """
    operation = f"nms(boxes, scores, iou_threshold={iou_threshold})"
    _check(operation, boxes, scores, iou_threshold, size)
    if size is None:
        return _of_any_number(boxes, scores, iou_threshold)
    return _PADDED(
        boxes.detach(), scores.detach(), flow.zeros_like(scores.detach(), dtype=flow.int32), iou_threshold, size
    )


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float, *, size: int | None = None):
    """Return what `nms` keeps where only boxes of one class drop each other.

    Args:
        boxes: ``(K, 4)``, with `size` ``(..., K, 4)``.
        scores: ``(K,)`` or ``(..., K)``.
        idxs: class or level of each box, shape of `scores`.
        iou_threshold: as of `nms`.
        size: as of `nms`.

    Returns:
        As `nms`.

    Raises:
        OpError: shapes do not fit.
        OpValueError: the threshold or the size is out of its range.

    Example:
        >>> boxes = flow.tensor([[0.0, 0.0, 10.0, 10.0], [1.0, 0.0, 11.0, 10.0]])
        >>> batched_nms(boxes, flow.tensor([0.8, 0.9]), flow.tensor([1, 2]), 0.5)
        tensor([1, 0])
    """
    operation = f"batched_nms(boxes, scores, idxs, iou_threshold={iou_threshold})"
    _check(operation, boxes, scores, iou_threshold, size)
    if idxs.shape != scores.shape:
        seen = f"idxs {tuple(idxs.shape)}, scores {tuple(scores.shape)}"
        raise OpError(operation, seen, "each box has one class", "idxs of the shape of scores")
    if size is not None:
        return _PADDED(boxes.detach(), scores.detach(), idxs.detach(), iou_threshold, size)
    on_host = [flow.tensor(x.detach().numpy()) for x in (boxes, scores)]
    classes = idxs.detach().numpy()
    kept = np.zeros(len(classes), bool)
    for one in np.unique(classes):
        (members,) = np.nonzero(classes == one)
        kept[members[_of_any_number(*[x[members] for x in on_host], iou_threshold).numpy()]] = True
    order = np.argsort(-on_host[1].numpy(), kind="stable")
    best = order[kept[order]]
    if boxes.is_local:
        return flow.tensor(best, device=boxes.device)
    return flow.tensor(best, placement=boxes.placement, sbp=[flow.sbp.broadcast] * len(boxes.sbp))


def suppress_padded(boxes, scores, classes, iou_threshold: float, size: int):
    """Return, of arrays of JAX, the numbers of the boxes that are kept, ``(..., size)``, and their count ``(...)``."""
    front, k = scores.shape[:-1], scores.shape[-1]
    boxes, scores, classes = boxes.reshape(-1, k, 4), scores.reshape(-1, k), classes.reshape(-1, k)
    order = jnp.argsort(-scores, -1, stable=True)  # (B, K)
    boxes = jnp.take_along_axis(boxes.astype(jnp.promote_types(boxes.dtype, jnp.float32)), order[..., None], 1)
    real = jnp.take_along_axis(scores, order, 1) > -jnp.inf
    classes = jnp.take_along_axis(classes, order, 1)
    area = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    low = jnp.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
    high = jnp.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
    sides = jnp.maximum(high - low, 0)
    shared = sides[..., 0] * sides[..., 1]
    over = shared / (area[:, :, None] + area[:, None] - shared) > iou_threshold
    rank = jnp.arange(k)
    drops = over & (classes[:, :, None] == classes[:, None]) & (rank[:, None] < rank)

    def suppress_once(state):
        kept, _ = state
        new = real & ~jnp.any(drops & kept[:, :, None], 1)
        return new, jnp.any(new != kept)  # one answer for all images: a loop has one end

    kept, _ = jax.lax.while_loop(lambda state: state[1], suppress_once, (real, jnp.bool_(True)))
    # The kept ones in front, in their order; then as many as asked for.
    first = jnp.argsort(~kept, -1, stable=True)[:, :size]
    count = jnp.minimum(kept.sum(-1), size)
    found = jnp.take_along_axis(order, first, 1)
    found = jnp.pad(found, ((0, 0), (0, max(0, size - k))), constant_values=-1)
    found = jnp.where(jnp.arange(size) < count[:, None], found, -1).astype(jnp.int64)
    return found.reshape(*front, size), count.reshape(front).astype(jnp.int64)


_PADDED = flow.wrap_jax(suppress_padded, name="nms")


def _check(operation: str, boxes: Tensor, scores: Tensor, iou_threshold: float, size: int | None) -> None:
    check_box_dim(operation, boxes)
    if tuple(scores.shape) != tuple(boxes.shape[:-1]) or (size is None and boxes.ndim != 2):
        seen = f"boxes {tuple(boxes.shape)}, scores {tuple(scores.shape)}"
        rule = "boxes are (K, 4) and scores (K,); with size= both may have dims in front"
        raise OpError(operation, seen, rule, "scores of the shape of boxes[..., 0]")
    if not 0 <= iou_threshold <= 1:
        raise OpValueError(operation, f"iou_threshold={iou_threshold}", "a share of an area is from 0 to 1", "0.5")
    if size is not None and size < 1:
        raise OpValueError(operation, f"size={size}", "a result has one row at least", "size=100")
