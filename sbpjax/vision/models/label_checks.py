"""Checks of labels and boxes on the host, before a compiled step reads them.

A compiled step has no way to raise: a label beyond the logits makes its loss NaN, and a box without an area has the
logarithm of 0. So a `Trainer` shows each batch to its model while it is on the host: `ImageModel.check_batch` and those
of the detectors call what is here.

    label 7 for a model of 3 classes   →   DataError: labels 0 to 7 … num_classes=8
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sbpjax.errors import DataError

IGNORED = -100  # the label that `cross_entropy` leaves out
PADDING = -1  # the label of a row that is no box


def batch_part(batch: Any, name: str, place: int) -> np.ndarray | None:
    """Return a part of a batch, by its name in a dict or its place in a sequence; None if it is not there."""
    if isinstance(batch, Mapping):
        found = batch.get(name)
    else:
        found = batch[place] if isinstance(batch, (list, tuple)) and len(batch) > place else None
    return None if found is None else np.asarray(found.numpy() if hasattr(found, "numpy") else found)


def check_labels(
    labels: np.ndarray, model: str, classes: int, first: int = 0, ignored: int | None = IGNORED, named: str = "labels"
) -> None:
    """Refuse labels that are no class of a model.

    Args:
        labels: whole numbers of any shape; others are left to the loss.
        model: its name, for the message.
        classes: how many numbers of classes there are, from 0 on; 0 for a model that has none.
        first: the least that a label may be.
        ignored: a number that is no class, and may be there.
        named: what they are called.

    Raises:
        DataError: one of them is none.

    Example:
        >>> import numpy as np
        >>> from sbpjax.vision.models.label_checks import check_labels
        >>> check_labels(np.array([0, 2, -100]), "ResNet", classes=3)
    """
    if not classes or labels.dtype.kind not in "iu" or not labels.size:
        return
    if ignored is not None and (labels == ignored).any():
        labels = labels[labels != ignored]
    if not labels.size or (labels.min() >= first and labels.max() < classes):
        return
    low, high = int(labels.min()), int(labels.max())
    bad = labels[(labels < first) | (labels >= classes)]
    seen = f"{named} from {low} to {high} in a batch, of which {int(bad.flat[0])} is no class"
    other = "" if ignored is None else f", or {ignored} for none"
    rule = f"{model} has num_classes={classes}, so {named} are {first} to {classes - 1}{other}"
    mend = f"{named} that begin with {first}" if low < first else f"num_classes={high + 1}, or the right {named}"
    if low >= 1 > first and high == classes:
        mend = f"{named} - 1: they begin with 0"
    raise DataError(f"{model}.loss(...)", seen, rule, mend)


def check_boxes(boxes: np.ndarray, labels: np.ndarray, model: str, size: tuple[int, int]) -> None:
    """Refuse boxes that cannot be those of objects on an image.

    Args:
        boxes: `(B, G, 4)`: left, top, right, bottom.
        labels: `(B, G)`; rows with -1 are padding.
        model: its name, for the message.
        size: height and width of the images.

    Raises:
        DataError: one is not finite, has no area, or lies outside; or all are shares of the image, not pixels.

    Example:
        >>> import numpy as np
        >>> from sbpjax.vision.models.label_checks import check_boxes
        >>> check_boxes(np.array([[[0.0, 0, 9, 9]]]), np.array([[1]]), "SSD300", (300, 300))
    """
    real = labels != PADDING
    if not real.any():
        return
    operation, (height, width) = f"{model}.loss(...)", size
    left, top, right, bottom = (boxes[..., i] for i in range(4))
    units = "boxes are left, top, right, bottom in pixels of the image"
    wrong = [
        (~np.isfinite(boxes).all(-1), "is not finite", "mend the annotations"),
        ((right <= left) | (bottom <= top), "has no area", "box_convert(boxes, 'xywh', 'xyxy'), or SanitizeBoxes()"),
        (
            (right <= 0) | (bottom <= 0) | (left >= width) | (top >= height),
            f"is outside an image of {height} × {width}",
            "resize boxes with their image: transforms.Resize of the whole sample",
        ),
    ]
    for which, detail, fix in wrong:
        which = which & real
        if which.any():
            image, row = (int(at[0]) for at in np.nonzero(which))
            seen = f"box {boxes[image, row].tolist()} of image {image} in the batch, which {detail}"
            raise DataError(operation, seen, units, fix)
    if max(right[real].max(), bottom[real].max()) <= 1 < min(size):
        seen = f"boxes up to {max(right[real].max(), bottom[real].max()):g} in a batch"
        raise DataError(operation, seen, units, f"boxes * [{width}, {height}, {width}, {height}]")
