"""Image display: grids, boxes drawn on an image, and image files."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import Tensor
from sbpjax.errors import DataError
from sbpjax.vision.transforms.kinds import pillow

_COLOURS = ("red", "lime", "blue", "yellow", "magenta", "cyan", "orange", "white")


def make_grid(images: Tensor | Sequence[Tensor], nrow: int = 8, padding: int = 2, normalize: bool = False) -> Tensor:
    """Return images beside each other, as one.

    Args:
        images: ``(B, C, H, W)``, or a list of ``(C, H, W)``; one channel is shown as grey.
        nrow: how many in a row.
        padding: black pixels between them and around.
        normalize: bring the least value to 0 and the largest to 1.

    Returns:
        ``(3, H', W')``, or of more channels.

    Raises:
        DataError: images are of another shape.

    Example:
        >>> make_grid(flow.ones(5, 3, 8, 8), nrow=4).shape
        sbpjax.Size([3, 22, 42])
    """
    batch = images if isinstance(images, Tensor) else flow.stack(list(images))
    batch = batch[None] if batch.ndim == 3 else batch
    if batch.ndim != 4 or nrow < 1:
        seen, rule = f"images {tuple(batch.shape)}, nrow={nrow}", "images are (B, C, H, W), nrow is 1 or more"
        raise DataError("make_grid(images)", seen, rule, "images[:, None] for (B, H, W)")
    values = batch.detach().numpy()
    values = np.repeat(values, 3, 1) if values.shape[1] == 1 else values
    if normalize:
        low, high = values.min(), values.max()
        values = (values - low) / max(high - low, 1e-5)
    count, channels, height, width = values.shape
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    high, wide = height + padding, width + padding
    grid = np.zeros((channels, rows * high + padding, columns * wide + padding), values.dtype)
    for i, image in enumerate(values):
        top, left = i // columns * high + padding, i % columns * wide + padding
        grid[:, top : top + height, left : left + width] = image
    return flow.tensor(grid)


def save_image(images: Tensor | Sequence[Tensor], path: str | os.PathLike, **options: Any) -> None:
    """Write images into a file, as a grid if they are several.

    Args:
        images: floats from 0 to 1, or uint8; as of `make_grid`.
        path: of the file; its ending selects the format.
        **options: as of `make_grid`.

    Raises:
        DataError: images are of another shape.
    """
    single = isinstance(images, Tensor) and (images.ndim == 3 or images.shape[0] == 1)
    grid = make_grid(images, **({"padding": 0, **options} if single else options)).numpy()
    if grid.dtype != np.uint8:
        grid = (grid * 255 + 0.5).clip(0, 255).astype(np.uint8)
    pillow().fromarray(grid.transpose(1, 2, 0)).save(path)


def draw_bounding_boxes(
    image: Tensor, boxes: Any, labels: Sequence[str] | None = None, colors: Sequence[str] | None = None, width: int = 1
) -> Tensor:
    """Return an image with boxes, and what they are, drawn on it.

    Args:
        image: ``(C, H, W)``, uint8 or floats from 0 to 1, of one or three channels.
        boxes: ``(N, 4)``: left, top, right, bottom.
        labels: a text for each.
        colors: a colour for each, names or ``"#rrggbb"``.
        width: of the lines, in pixels.

    Returns:
        ``(3, H, W)`` uint8.

    Raises:
        DataError: shapes or lengths do not fit.

    Example:
        >>> draw_bounding_boxes(flow.zeros(3, 8, 8, dtype=flow.uint8), [[1, 1, 6, 6]], colors=["red"])[0, 1]
        tensor([  0, 255, 255, 255, 255, 255, 255,   0], dtype=sbpjax.uint8)
    """
    places = np.asarray(boxes.numpy() if isinstance(boxes, Tensor) else boxes, np.float64).reshape(-1, 4)
    operation = "draw_bounding_boxes(image, boxes)"
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        raise DataError(operation, f"image {tuple(image.shape)}", "an image is (C, H, W), C 1 or 3", "images[0]")
    flat = (places[:, 2:] < places[:, :2]).any(1)
    if flat.any():
        rule = "boxes are left, top, right, bottom, in this order"
        raise DataError(operation, f"box {places[flat][0].tolist()}", rule, "ops.box_convert(boxes, 'xywh', 'xyxy')")
    for name, one in (("labels", labels), ("colors", colors)):
        if one is not None and len(one) != len(places):
            rule = f"there is one of {name} for each box"
            raise DataError(operation, f"{len(one)} {name}, {len(places)} boxes", rule, f"{name}=None")
    values = image.detach().numpy()
    if values.dtype != np.uint8:
        values = (values * 255 + 0.5).clip(0, 255).astype(np.uint8)
    values = np.repeat(values, 3, 0) if values.shape[0] == 1 else values
    picture = pillow().fromarray(np.ascontiguousarray(values.transpose(1, 2, 0)))
    pen = pillow("ImageDraw").Draw(picture)
    for i, box in enumerate(places):
        colour = colors[i] if colors is not None else _COLOURS[i % len(_COLOURS)]
        pen.rectangle(box.tolist(), outline=colour, width=width)
        if labels is not None:
            pen.text((box[0] + width + 1, box[1] + width), labels[i], fill=colour)
    return flow.tensor(np.asarray(picture).transpose(2, 0, 1).copy())
