"""Anchor boxes of detectors, and training targets with static shapes: padding, matching, box encoding.

A compiled program has one shape for all batches. So the boxes of an image are padded to the same number, with -1 as the
label of padding; a box that does not count has a weight of 0 and is not left out.

Shapes: B images, G boxes of the truth with padding, A anchors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import Tensor, nn
from sbpjax.errors import DataError
from sbpjax.vision.models import label_checks
from sbpjax.vision.ops import box_iou
from sbpjax.vision.transforms.tensors import like


def default_boxes(
    size: int,
    grids: Sequence[int] = (38, 19, 10, 5, 3, 1),
    steps: Sequence[int] = (8, 16, 32, 64, 100, 300),
    scales: Sequence[float] = (0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05),
    ratios: Sequence[Sequence[float]] = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,)),
) -> np.ndarray:
    """Return SSD's boxes ``(A, 4)``, left, top, right, bottom in pixels.

    Args:
        size: of the square image.
        grids: places in a row of each feature map.
        steps: pixels between places.
        scales: sides of a square box, as shares of the image; one more than maps.
        ratios: of other boxes' sides; each stands for the upright one as well.

    Example:
        >>> default_boxes(300).shape
        (8732, 4)
    """
    found = []
    for k, grid in enumerate(grids):
        sides = [(scales[k],) * 2, (math.sqrt(scales[k] * scales[k + 1]),) * 2]
        for ratio in ratios[k]:
            wide, narrow = scales[k] * math.sqrt(ratio), scales[k] / math.sqrt(ratio)
            sides += [(wide, narrow), (narrow, wide)]
        half = np.clip(np.array(sides, np.float32), 0, 1) / 2
        at = (np.arange(grid) + 0.5) / (size / steps[k])
        y, x = np.meshgrid(at, at, indexing="ij")
        centres = np.stack([x, y], -1).reshape(-1, 1, 2)
        found.append(np.concatenate([centres - half, centres + half], -1).reshape(-1, 4))
    return (np.concatenate(found) * size).astype(np.float32)


def grid_anchors(
    image: tuple[int, int],
    grids: Sequence[tuple[int, int]],
    sizes: Sequence[Sequence[float]],
    ratios: Sequence[float] = (0.5, 1.0, 2.0),
) -> list[np.ndarray]:
    """Return for each feature map its anchors ``(places * shapes, 4)`` in pixels, row by row of places.

    Args:
        image: its height and width.
        grids: height and width of each map.
        sizes: for each map, square roots of areas.
        ratios: quotients of height by width.

    Example:
        >>> [len(one) for one in grid_anchors((64, 64), [(8, 8), (4, 4)], [(32,), (64,)])]
        [192, 48]
    """
    found = []
    for (high, wide), some in zip(grids, sizes, strict=True):
        root = np.sqrt(np.array(ratios, np.float32))[:, None]
        areas = np.array(some, np.float32)[None]
        widths, heights = (areas / root).reshape(-1), (areas * root).reshape(-1)
        shapes = np.round(np.stack([-widths, -heights, widths, heights], 1) / 2)
        y, x = np.meshgrid(np.arange(high) * (image[0] // high), np.arange(wide) * (image[1] // wide), indexing="ij")
        shifts = np.stack([x, y, x, y], -1).reshape(-1, 1, 4)
        found.append((shifts + shapes).reshape(-1, 4).astype(np.float32))
    return found


def areas_by_level(first: Sequence[int] = (32, 64, 128, 256, 512)) -> list[tuple[int, ...]]:
    """Return three sizes for each level, a third of an octave apart, as RetinaNet has them.

    Example:
        >>> areas_by_level((32,))
        [(32, 40, 50)]
    """
    return [(x, int(x * 2 ** (1 / 3)), int(x * 2 ** (2 / 3))) for x in first]


PADDING = label_checks.PADDING
_MOST = math.log(1000 / 16)  # of the logarithm of a side, so that its exponential stays finite


def pad_targets(targets: Sequence[dict[str, Any]], size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes ``(B, size, 4)`` float32 and labels ``(B, size)`` int64 of a batch of samples.

    Args:
        targets: of each image a dict with ``boxes`` ``(N, 4)`` and ``labels`` ``(N,)``.
        size: the most boxes that an image has.

    Raises:
        DataError: an image has more, or a box without an area, or lengths differ.

    Example:
        >>> boxes, labels = pad_targets([{"boxes": [[0, 0, 4, 4]], "labels": [7]}], size=2)
        >>> labels.tolist()
        [[7, -1]]
    """
    boxes = np.zeros((len(targets), size, 4), np.float32)
    labels = np.full((len(targets), size), PADDING, np.int64)
    for i, target in enumerate(targets):
        mine = np.asarray(target["boxes"], np.float32).reshape(-1, 4)
        kinds = np.asarray(target["labels"], np.int64).reshape(-1)
        operation = f"pad_targets(targets, size={size})"
        if len(mine) != len(kinds) or len(mine) > size:
            seen = f"image {i} with {len(mine)} boxes and {len(kinds)} labels"
            raise DataError(
                operation, seen, f"an image has {size} boxes at most, each with a label", f"size={len(mine)}"
            )
        flat = (mine[:, 2:] <= mine[:, :2]).any(1)
        if flat.any():
            seen = f"image {i}, box {mine[flat][0].tolist()}"
            raise DataError(operation, seen, "a box has an area", "SanitizeBoxes() after the other transforms")
        boxes[i, : len(mine)], labels[i, : len(mine)] = mine, kinds
    return boxes, labels


class Detector(nn.Module):
    """Base of detectors, which have `num_classes`.

    Attributes:
        FIRST_LABEL: the least label of a box; 1 where 0 is the background.
    """

    FIRST_LABEL = 1
    num_classes: int

    def check_batch(self, batch: Any) -> None:
        """Refuse boxes and labels that no image has; a `Trainer` shows each batch while it is on the host.

        Args:
            batch: a dict with ``images``, ``boxes`` and ``labels``, or a sequence of them.

        Raises:
            DataError: a label is none of `FIRST_LABEL` to C - 1, or a box has no area, or is outside its image.
        """
        model = type(self).__name__
        images, boxes, labels = (
            label_checks.batch_part(batch, name, i) for i, name in enumerate(("images", "boxes", "labels"))
        )
        if images is None or boxes is None or labels is None:
            return  # the call of the loss tells what is missing
        label_checks.check_labels(labels, model, self.num_classes, self.FIRST_LABEL, PADDING)
        label_checks.check_boxes(boxes, labels, model, images.shape[-2:])


def encode(boxes: Tensor, anchors: Tensor, weights: tuple[float, float, float, float]) -> Tensor:
    """Return boxes as differences from anchors: shifts in sides of the anchor, logarithms of quotients of sides.

    Args:
        boxes: ``(..., 4)``: left, top, right, bottom.
        anchors: ``(..., 4)``, row by row.
        weights: what horizontal and vertical shifts, and the logarithms of width and height, are multiplied by.
    """
    x, y, width, height = _center_boxes(boxes)
    ax, ay, a_width, a_height = _center_boxes(anchors)
    shifts = [weights[0] * (x - ax) / a_width, weights[1] * (y - ay) / a_height]
    return flow.stack([*shifts, weights[2] * flow.log(width / a_width), weights[3] * flow.log(height / a_height)], -1)


def decode(codes: Tensor, anchors: Tensor, weights: tuple[float, float, float, float]) -> Tensor:
    """Return the boxes ``(..., 4)`` of differences from anchors; undoes `encode`."""
    ax, ay, a_width, a_height = _center_boxes(anchors)
    dx, dy, dw, dh = codes.unbind(-1)
    x, y = dx / weights[0] * a_width + ax, dy / weights[1] * a_height + ay
    half_width = 0.5 * flow.exp((dw / weights[2]).clamp(max=_MOST)) * a_width
    half_height = 0.5 * flow.exp((dh / weights[3]).clamp(max=_MOST)) * a_height
    return flow.stack([x - half_width, y - half_height, x + half_width, y + half_height], -1)


def _center_boxes(boxes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    left, top, right, bottom = boxes.unbind(-1)
    width, height = right - left, bottom - top
    return left + 0.5 * width, top + 0.5 * height, width, height


def overlaps(boxes: Tensor, labels: Tensor, anchors: Tensor) -> Tensor:
    """Return the IoU ``(B, G, A)`` of boxes ``(B, G, 4)`` and anchors ``(A, 4)`` or ``(B, A, 4)``; -1 for padding."""
    each = anchors if anchors.ndim == 3 else anchors[None]
    return flow.where((labels >= 0)[..., None], box_iou(boxes, each), -1.0)


def match(overlap: Tensor, low: float, high: float, best_too: bool) -> tuple[Tensor, Tensor]:
    """Return for each anchor the number of its box ``(B, A)``, and its kind: 1 a box, 0 background, -1 neither.

    Args:
        overlap: ``(B, G, A)``.
        low: below it an anchor is background.
        high: from it on an anchor belongs to the box that it overlaps most.
        best_too: anchors that no other anchor surpasses for some box belong to the box that they overlap most.
    """
    most, number = overlap.max(1)
    kind = flow.where(most >= high, 1, flow.where(most < low, 0, -1))
    if best_too:
        of_box = overlap.amax(2, keepdim=True)  # (B, G, 1)
        # Not "equal": a compiler may round the two differently.
        is_best = (overlap >= of_box * (1 - 1e-6)) & (of_box >= 0)
        kind = flow.where(is_best.any(1), 1, kind)
    return number, kind


def match_each(overlap: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Return what `match` does, where each box also gets the one anchor that overlaps it most.

    Of two boxes with one best anchor, the later gets it.
    """
    number, kind = match(overlap, threshold, threshold, False)
    best = flow.where(overlap.amax(2) >= 0, overlap.argmax(2), -1)  # (B, G)
    boxes, anchors = (like(overlap, np.arange(n)).long() for n in overlap.shape[1:])
    forced = flow.where(best[..., None] == anchors, boxes[:, None], -1).amax(1)  # (B, A)
    return flow.where(forced >= 0, forced, number), flow.where(forced >= 0, 1, kind)


def rows(values: Tensor, number: Tensor) -> Tensor:
    """Return rows of values ``(B, G, ...)`` by their numbers ``(B, A)``."""
    if values.ndim == 2:
        return values.gather(1, number)
    return values.gather(1, number[..., None].expand(*number.shape, values.shape[-1]))


def keep_best(boxes: Tensor, scores: Tensor, labels: Tensor, size: int) -> dict[str, Tensor]:
    """Return the detections with the best scores; see `SSD300.detect`. A score of -inf is none."""
    best, at = scores.topk(min(size, scores.shape[1]), 1)
    valid = best > -flow.inf
    return {
        "boxes": flow.where(valid[..., None], rows(boxes, at), 0.0),
        "scores": flow.where(valid, best, 0.0),
        "labels": flow.where(valid, labels.gather(1, at), PADDING),
        "count": valid.sum(1),
    }
