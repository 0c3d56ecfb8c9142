"""Geometric functions with given parameters: crop, resize, flip, pad and affine maps of images, boxes, masks.

A move of an image has three parts: of pixels, by the kind of image; of boxes ``(N, 4)``, left, top, right, bottom in
pixels; and of masks, ``(..., H, W)`` of any kind, which take the nearest pixel, so that no new value arises.

Affine moves are given by six numbers a to f that lead from a place in the new image to one in the old:
``x_old = a x + b y + c`` and ``y_old = d x + e y + f``; the centre of the first pixel is at (0.5, 0.5).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sbpjax.errors import DataError
from sbpjax.vision.ops.boxes import clip_boxes_to_image

from . import tensors
from .kinds import FILTERS, is_pil, is_tensor, pillow, size_of

Matrix = tuple[float, float, float, float, float, float]


def crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    """Return a part of an image; where it reaches over the border there are zeros."""
    if is_pil(image):
        return image.crop((left, top, left + width, top + height))
    high, wide = size_of(image)
    around = (max(0, -left), max(0, -top), max(0, left + width - wide), max(0, top + height - high))
    if any(around):
        image = pad(image, around)
        top, left = max(top, 0), max(left, 0)
    rows, columns = slice(top, top + height), slice(left, left + width)
    return image[..., rows, columns] if is_tensor(image) else image[rows, columns]


def pad(image: Any, around: tuple[int, int, int, int], fill: float = 0) -> Any:
    """Return an image with a border of so many pixels at its left, top, right and bottom."""
    left, top, right, bottom = around
    if is_pil(image):
        colour = int(fill) if len(image.getbands()) == 1 else (int(fill),) * len(image.getbands())
        return pillow("ImageOps").expand(image, around, colour)
    if is_tensor(image):
        return tensors.pad(image, around, fill)
    return np.pad(image, ((top, bottom), (left, right), (0, 0))[: image.ndim], constant_values=fill)


def mirrored(image: Any) -> Any:
    """Return an image with left and right exchanged."""
    if is_pil(image):
        return image.transpose(pillow().Transpose.FLIP_LEFT_RIGHT)
    return tensors.flip_image(image, -1) if is_tensor(image) else np.ascontiguousarray(image[:, ::-1])


def turned_over(image: Any) -> Any:
    """Return an image with top and bottom exchanged."""
    if is_pil(image):
        return image.transpose(pillow().Transpose.FLIP_TOP_BOTTOM)
    return tensors.flip_image(image, -2) if is_tensor(image) else np.ascontiguousarray(image[::-1])


def resize_image(image: Any, height: int, width: int, interpolation: str = "bilinear", antialias: bool = True) -> Any:
    """Return an image of another size.

    Args:
        image: of any kind.
        height: the new one.
        width: the new one.
        interpolation: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``; for images of Pillow and arrays ``"box"``,
            ``"hamming"`` and ``"lanczos"`` as well.
        antialias: of tensors: average over what a new pixel covers. Pillow always does.
    """
    if (height, width) == size_of(image):
        return image
    if is_pil(image):
        return image.resize((width, height), pillow().Resampling(FILTERS[interpolation]))
    if is_tensor(image):
        return tensors.resize_image(image, height, width, interpolation, antialias)
    if image.dtype == np.uint8 and (image.ndim == 2 or image.shape[2] == 3):
        return np.asarray(resize_image(pillow().fromarray(image), height, width, interpolation))
    planes = image.reshape(*image.shape[:2], -1).astype(np.float32)
    small = [resize_image(pillow().fromarray(np.ascontiguousarray(planes[..., i])), height, width, interpolation)
             for i in range(planes.shape[2])]  # fmt: skip
    found = np.stack([np.asarray(one) for one in small], -1).reshape(height, width, *image.shape[2:])
    if image.dtype.kind in "ui":
        limits = np.iinfo(image.dtype)
        found = found.round().clip(limits.min, limits.max)
    return found.astype(image.dtype)


def move_image(image: Any, matrix: Matrix, interpolation: str = "nearest", fill: float = 0) -> Any:
    """Return an image of the same size under an affine move; `fill` where nothing was."""
    if is_pil(image):
        colour = int(fill) if len(image.getbands()) == 1 else (int(fill),) * len(image.getbands())
        library = pillow()
        resampling = library.Resampling(FILTERS[interpolation])
        return image.transform(image.size, library.Transform.AFFINE, matrix, resampling, fillcolor=colour)
    if is_tensor(image):
        return tensors.move_image(image, matrix, interpolation, fill)
    if image.dtype == np.uint8 and (image.ndim == 2 or image.shape[2] == 3):
        return np.asarray(move_image(pillow().fromarray(image), matrix, interpolation, fill))
    planes = np.moveaxis(np.atleast_3d(image), -1, 0)
    return np.moveaxis(moved_masks(planes, matrix, fill), 0, -1).reshape(image.shape)


def affine(
    height: int,
    width: int,
    *,
    angle: float = 0.0,
    translate: tuple[float, float] = (0.0, 0.0),
    shear: tuple[float, float] = (0.0, 0.0),
    centre: tuple[float, float] | None = None,
) -> Matrix:
    """Return the six numbers of a turn, a shear and a shift.

    Args:
        height: of the image.
        width: of the image.
        angle: degrees, clockwise.
        translate: pixels to the right and down.
        shear: degrees, along x and along y.
        centre: what stays in its place, x and y; the middle by default.
    """
    x, y = (width / 2, height / 2) if centre is None else centre
    turn, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(turn - sy) / math.cos(sy)
    b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    # a to d lead forwards, and have the determinant 1
    back = (d, -b, -c, a)
    shift = [-(x + translate[0]), -(y + translate[1])]
    return (
        back[0], back[1], back[0] * shift[0] + back[1] * shift[1] + x,
        back[2], back[3], back[2] * shift[0] + back[3] * shift[1] + y,
    )  # fmt: skip


def check_boxes(boxes: Any, height: int, width: int) -> None:
    """Check boxes of an image.

    Raises:
        DataError: they are not ``(N, 4)``, or one lies outside of the image or is turned around.
    """
    operation = "a transform of a sample with boxes"
    values = np.asarray(boxes.numpy() if is_tensor(boxes) and hasattr(boxes, "numpy") else boxes)
    if values.ndim != 2 or values.shape[1] != 4:
        fix = "boxes.reshape(-1, 4); no box is np.zeros((0, 4))"
        raise DataError(operation, f"boxes {values.shape}", "boxes are (N, 4): left, top, right, bottom", fix)
    slack = 1e-3 * max(height, width)  # files round
    wrong = (values[:, :2] < -slack).any(1) | (values[:, 2] > width + slack) | (values[:, 3] > height + slack)
    wrong |= (values[:, 2:] < values[:, :2]).any(1)
    if wrong.any():
        at = int(np.argmax(wrong))
        seen = f"box {at}, {values[at].tolist()}, in an image {height} high and {width} wide"
        fix = (
            "ops.clip_boxes_to_image(boxes, (height, width)); ops.box_convert(boxes, 'xywh', 'xyxy') if they have sizes"
        )
        raise DataError(operation, seen, "a box is left, top, right, bottom, in pixels of its image", fix)


def shifted_boxes(boxes: Any, top: int, left: int, height: int, width: int) -> Any:
    """Return boxes as a part of the image sees them, cut at its border."""
    limits = np.array([width, height, width, height], np.float32)
    if is_tensor(boxes):
        return clip_boxes_to_image(boxes - tensors.like(boxes, [left, top, left, top]), (height, width))
    return np.clip(np.asarray(boxes, np.float32) - np.array([left, top, left, top], np.float32), 0, limits)


def scaled_boxes(boxes: Any, by_height: float, by_width: float) -> Any:
    """Return boxes of a resized image."""
    factors = [by_width, by_height, by_width, by_height]
    return boxes * (tensors.like(boxes, factors) if is_tensor(boxes) else np.array(factors, np.float32))


def mirrored_boxes(boxes: Any, width: int) -> Any:
    """Return boxes of a mirrored image."""
    left, top, right, bottom = (boxes[:, i] for i in range(4))
    stack = tensors.stack if is_tensor(boxes) else np.stack
    return stack([width - right, top, width - left, bottom], 1)


def turned_over_boxes(boxes: Any, height: int) -> Any:
    """Return boxes of an image with top and bottom exchanged."""
    left, top, right, bottom = (boxes[:, i] for i in range(4))
    stack = tensors.stack if is_tensor(boxes) else np.stack
    return stack([left, height - bottom, right, height - top], 1)


def planes(masks: Any) -> Any:
    """Return masks as they are moved: an image of Pillow as an array."""
    return np.asarray(masks) if is_pil(masks) else masks


def flipped_masks(masks: Any, dim: int) -> Any:
    """Return masks with the order of a dim turned around."""
    masks = planes(masks)
    return tensors.flip_image(masks, dim) if is_tensor(masks) else np.flip(masks, dim)


def cropped_masks(masks: Any, top: int, left: int, height: int, width: int) -> Any:
    """Return masks ``(..., H, W)`` of a part of the image; 0 over the border."""
    masks = planes(masks)
    if is_tensor(masks):
        return crop(masks, top, left, height, width)
    high, wide = masks.shape[-2:]
    rows = (max(0, -top), max(0, top + height - high))
    columns = (max(0, -left), max(0, left + width - wide))
    masks = np.pad(masks, [(0, 0)] * (masks.ndim - 2) + [rows, columns])
    top, left = max(top, 0), max(left, 0)
    return masks[..., top : top + height, left : left + width]


def resized_masks(masks: Any, height: int, width: int) -> Any:
    """Return masks of another size, each pixel the nearest one, centre to centre, as images are resized."""
    masks = planes(masks)
    if is_tensor(masks):
        return tensors.resize_image(masks, height, width, "nearest-exact", False)
    rows = ((np.arange(height) + 0.5) * (masks.shape[-2] / height)).astype(np.int64)
    columns = ((np.arange(width) + 0.5) * (masks.shape[-1] / width)).astype(np.int64)
    return masks[..., rows[:, None], columns]


def moved_masks(masks: Any, matrix: Matrix, fill: float = 0) -> Any:
    """Return masks under an affine move, each pixel the nearest one."""
    masks = planes(masks)
    if is_tensor(masks):
        return tensors.move_image(masks, matrix, "nearest", fill)
    height, width = masks.shape[-2:]
    y, x = np.mgrid[:height, :width] + 0.5
    a, b, c, d, e, f = matrix
    column, row = np.floor(a * x + b * y + c).astype(int), np.floor(d * x + e * y + f).astype(int)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    found = masks[..., row.clip(0, height - 1), column.clip(0, width - 1)]
    return np.where(inside, found, np.asarray(fill, masks.dtype))


def moved_boxes(boxes: Any, matrix: Matrix, height: int, width: int) -> Any:
    """Return the boxes around the moved corners, cut at the image's border."""
    a, b, c, d, e, f = matrix
    whole = a * e - b * d
    left, top, right, bottom = (boxes[:, i] for i in range(4))
    stack = tensors.stack if is_tensor(boxes) else np.stack
    x = stack([left, right, left, right], 1) - c
    y = stack([top, top, bottom, bottom], 1) - f
    new_x, new_y = (e * x - b * y) / whole, (a * y - d * x) / whole
    low, high = (tensors.low, tensors.high) if is_tensor(boxes) else (np.min, np.max)
    found = stack([low(new_x, 1), low(new_y, 1), high(new_x, 1), high(new_y, 1)], 1)
    return shifted_boxes(found, 0, 0, height, width)
