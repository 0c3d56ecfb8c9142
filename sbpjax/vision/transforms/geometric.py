"""Geometric transforms of images, boxes and masks: resizing, crops, flips, rotation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sbpjax.errors import DataError

from . import geometry
from .base import Transform, probability
from .kinds import FILTERS, size_of
from .random_numbers import random_crop_box


def _two(name: str, size: int | tuple[int, int]) -> tuple[int, int]:
    found = (size, size) if isinstance(size, int) else tuple(size)
    if len(found) != 2 or any(not isinstance(side, int) or side < 1 for side in found):
        raise DataError(
            f"{name}(size={size})", f"{size}", "a size is a number or (height, width), 1 or more", "size=224"
        )
    return found


def _filter(name: str, interpolation: str) -> str:
    if interpolation not in FILTERS:
        rule = f"an interpolation is one of {', '.join(FILTERS)}"
        raise DataError(f"{name}(interpolation={interpolation!r})", f"{interpolation!r}", rule, "'bilinear'")
    return interpolation


class Resize(Transform):
    """Resize images to a given size.

    Args:
        size: ``(height, width)``; or a number, which the shorter side gets, and the proportions stay.
        interpolation: ``"bilinear"``, ``"bicubic"``, ``"nearest"``; for Pillow and arrays ``"lanczos"``, ``"box"``,
            ``"hamming"`` too. Masks take the nearest pixel always.
        max_size: with a number as size: what the longer side has at most.
        antialias: of tensors; Pillow always does.

    Raises:
        DataError: the size or the interpolation is none.

    Example:
        >>> Resize(4)(np.zeros((8, 16, 3), np.uint8)).shape
        (4, 8, 3)
    """

    moves = True

    def __init__(
        self,
        size: int | tuple[int, int],
        interpolation: str = "bilinear",
        max_size: int | None = None,
        antialias: bool = True,
    ) -> None:
        _two("Resize", size)
        if max_size is not None and not isinstance(size, int):
            raise DataError("Resize(size, max_size)", f"size={size}", "max_size is for a single number", "Resize(224)")
        self.size, self.max_size, self.antialias = size, max_size, antialias
        self.interpolation = _filter("Resize", interpolation)

    def draw(self, random: np.random.Generator, height: int, width: int) -> tuple[int, int, float, float]:
        """Return the new height and width, and the factors to them."""
        if not isinstance(self.size, int):
            new = self.size
        else:
            short, long = min(height, width), max(height, width)
            low, high = self.size, int(self.size * long / short)
            if self.max_size is not None and high > self.max_size:
                low, high = int(self.max_size * low / high), self.max_size
            new = (high, low) if height > width else (low, high)
        return new[0], new[1], new[0] / height, new[1] / width

    def transform_image(self, image: Any, drawn: Any) -> Any:
        """Return the image, resized."""
        return geometry.resize_image(image, *drawn[:2], self.interpolation, self.antialias)

    def transform_boxes(self, boxes: Any, drawn: Any, height: int, width: int) -> Any:
        """Return boxes of the new size."""
        return geometry.scaled_boxes(boxes, *drawn[2:])

    def transform_masks(self, masks: Any, drawn: Any) -> Any:
        """Return masks of the new size."""
        return geometry.resized_masks(masks, *drawn[:2])


class _Part(Transform):
    """Base of transforms that cut out a part: `draw` gives top, left, height, width."""

    moves = True

    def transform_image(self, image: Any, drawn: Any) -> Any:
        """Return the part."""
        return geometry.crop(image, *drawn)

    def transform_boxes(self, boxes: Any, drawn: Any, height: int, width: int) -> Any:
        """Return boxes, cut at the part's border; some may have no area left, see `SanitizeBoxes`."""
        return geometry.shifted_boxes(boxes, *drawn)

    def transform_masks(self, masks: Any, drawn: Any) -> Any:
        """Return masks of the part."""
        return geometry.cropped_masks(masks, *drawn)


class CenterCrop(_Part):
    """Crop the centre; smaller images are padded with zeros.

    Args:
        size: ``(height, width)``, or a number for both.

    Raises:
        DataError: the size is none.
    """

    def __init__(self, size: int | tuple[int, int]) -> None:
        self.size = _two("CenterCrop", size)

    def draw(self, random: np.random.Generator, height: int, width: int) -> tuple[int, int, int, int]:
        """Return top, left, height, width."""
        place = [round((old - new) / 2) if old >= new else -((new - old) // 2)
                 for old, new in zip((height, width), self.size, strict=True)]  # fmt: skip
        return place[0], place[1], *self.size


class RandomCrop(_Part):
    """Crop a part of fixed size at a random position.

    Args:
        size: ``(height, width)``, or a number for both.
        padding: zeros at each side first, of which a part may have some.
        pad_if_needed: let smaller images have zeros around them, in place of an error.

    Raises:
        DataError: the size is none; at a call: an image is smaller.
    """

    draws = True

    def __init__(self, size: int | tuple[int, int], padding: int = 0, pad_if_needed: bool = False) -> None:
        self.size, self.padding, self.pad_if_needed = _two("RandomCrop", size), padding, pad_if_needed

    def draw(self, random: np.random.Generator, height: int, width: int) -> tuple[int, int, int, int]:
        """Return top, left, height, width, as the unpadded image sees them."""
        place = []
        for old, new in zip((height, width), self.size, strict=True):
            more = self.padding
            if self.pad_if_needed and old + 2 * more < new:
                more = new - old
            if old + 2 * more < new:
                seen = f"an image {height} high and {width} wide, padding {self.padding}"
                rule = f"a part is not larger than the image: {new} > {old + 2 * more}"
                raise DataError(f"RandomCrop({self.size})", seen, rule, "pad_if_needed=True")
            place.append(int(random.integers(old + 2 * more - new + 1)) - more)
        return place[0], place[1], *self.size


class RandomResizedCrop(_Part):
    """Crop a random part of the area, and resize it to a given size.

    Args:
        size: ``(height, width)``, or a number for both.
        scale: the least and the largest share of the area.
        ratio: the least and the largest quotient of width by height.
        interpolation: as of `Resize`.
        antialias: as of `Resize`.

    Raises:
        DataError: size, scale, ratio or interpolation are none.

    Example:
        >>> RandomResizedCrop(8)(np.zeros((20, 30, 3), np.uint8), number=1).shape
        (8, 8, 3)
    """

    draws = True

    def __init__(
        self,
        size: int | tuple[int, int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        antialias: bool = True,
    ) -> None:
        for name, (low, high) in (("scale", scale), ("ratio", ratio)):
            if not 0 < low <= high:
                seen = f"{name}=({low}, {high})"
                raise DataError(
                    "RandomResizedCrop(size)", seen, f"{name} is the least, then the largest", "(0.08, 1.0)"
                )
        self.size, self.scale, self.ratio = _two("RandomResizedCrop", size), scale, ratio
        self.interpolation, self.antialias = _filter("RandomResizedCrop", interpolation), antialias

    def draw(self, random: np.random.Generator, height: int, width: int) -> tuple[int, int, int, int]:
        """Return top, left, height, width."""
        return random_crop_box(height, width, random, self.scale, self.ratio)

    def transform_image(self, image: Any, drawn: Any) -> Any:
        """Return the part, resized."""
        return geometry.resize_image(geometry.crop(image, *drawn), *self.size, self.interpolation, self.antialias)

    def transform_boxes(self, boxes: Any, drawn: Any, height: int, width: int) -> Any:
        """Return boxes of the part."""
        cut = geometry.shifted_boxes(boxes, *drawn)
        return geometry.scaled_boxes(cut, self.size[0] / drawn[2], self.size[1] / drawn[3])

    def transform_masks(self, masks: Any, drawn: Any) -> Any:
        """Return masks of the part."""
        return geometry.resized_masks(geometry.cropped_masks(masks, *drawn), *self.size)


class _Flip(Transform):
    moves = draws = True

    def __init__(self, p: float = 0.5) -> None:
        self.p = probability(type(self).__name__, p)

    def draw(self, random: np.random.Generator, height: int, width: int) -> bool:
        """Return whether."""
        return bool(random.random() < self.p)


class RandomHorizontalFlip(_Flip):
    """Flip images horizontally at random.

    Args:
        p: the probability.
        pairs: of keypoints, numbers that change places, such as those of the left and the right eye.
    """

    def __init__(self, p: float = 0.5, pairs: Sequence[tuple[int, int]] = ()) -> None:
        super().__init__(p)
        self.pairs = tuple(pairs)

    def transform_image(self, image: Any, drawn: bool) -> Any:
        """Return the image, mirrored or not."""
        return geometry.mirrored(image) if drawn else image

    def transform_boxes(self, boxes: Any, drawn: bool, height: int, width: int) -> Any:
        """Return the boxes."""
        return geometry.mirrored_boxes(boxes, width) if drawn else boxes

    def transform_masks(self, masks: Any, drawn: bool) -> Any:
        """Return the masks."""
        return geometry.flipped_masks(masks, -1) if drawn else masks

    def transform_keypoints(self, points: Any, drawn: bool, height: int, width: int, new: tuple[int, int]) -> Any:
        """Return the points, those of the left and the right exchanged."""
        if not drawn:
            return points
        found = super().transform_keypoints(points, drawn, height, width, new)
        order = np.arange(found.shape[1])
        for left, right in self.pairs:
            order[[left, right]] = right, left
        return found[:, order]


class RandomVerticalFlip(_Flip):
    """Flip images vertically at random.

    Args:
        p: the probability.
    """

    def transform_image(self, image: Any, drawn: bool) -> Any:
        """Return the image, turned over or not."""
        return geometry.turned_over(image) if drawn else image

    def transform_boxes(self, boxes: Any, drawn: bool, height: int, width: int) -> Any:
        """Return the boxes."""
        return geometry.turned_over_boxes(boxes, height) if drawn else boxes

    def transform_masks(self, masks: Any, drawn: bool) -> Any:
        """Return the masks."""
        return geometry.flipped_masks(masks, -2) if drawn else masks


class RandomRotation(Transform):
    """Rotate images around their centre.

    Args:
        degrees: at most so far either way.
        interpolation: ``"nearest"`` or ``"bilinear"``.
        fill: the value of pixels where nothing was.
    """

    moves = draws = True

    def __init__(self, degrees: float, interpolation: str = "nearest", fill: float = 0) -> None:
        self.degrees, self.interpolation, self.fill = degrees, _filter("RandomRotation", interpolation), fill

    def draw(self, random: np.random.Generator, height: int, width: int) -> geometry.Matrix:
        """Return the six numbers of the move."""
        return geometry.affine(height, width, angle=random.uniform(-self.degrees, self.degrees))

    def transform_image(self, image: Any, drawn: geometry.Matrix) -> Any:
        """Return the image, turned."""
        return geometry.move_image(image, drawn, self.interpolation, self.fill)

    def transform_boxes(self, boxes: Any, drawn: geometry.Matrix, height: int, width: int) -> Any:
        """Return the boxes around the turned ones."""
        return geometry.moved_boxes(boxes, drawn, height, width)

    def transform_masks(self, masks: Any, drawn: geometry.Matrix) -> Any:
        """Return the masks, turned."""
        return geometry.moved_masks(masks, drawn)


class SanitizeBoxes(Transform):
    """Drop boxes without area, with their labels and masks.

    Args:
        min_size: the shortest side of a box that stays.
        keys: what else of a sample has a row per box.

    Example:
        >>> sample = {"image": np.zeros((8, 8)), "boxes": np.array([[0, 0, 0, 4], [1, 1, 5, 5.0]]), "labels": [7, 9]}
        >>> SanitizeBoxes()(sample)["labels"]
        array([9])
    """

    def __init__(self, min_size: float = 1.0, keys: tuple[str, ...] = ("labels", "masks", "keypoints")) -> None:
        self.min_size, self.keys = min_size, keys

    def run(self, sample: Any, random: np.random.Generator) -> Any:
        """Return the sample without them."""
        if not isinstance(sample, dict) or sample.get("boxes") is None:
            return sample
        size_of(sample["image"], "SanitizeBoxes(sample)")
        boxes = sample["boxes"]
        values = np.asarray(boxes.numpy() if hasattr(boxes, "numpy") else boxes)
        (keep,) = np.nonzero(((values[:, 2:] - values[:, :2]) >= self.min_size).all(1))
        rows = {key: sample[key] for key in ("boxes", *self.keys) if sample.get(key) is not None}
        lengths = {key: len(value) for key, value in rows.items()}
        if set(lengths.values()) != {len(values)}:
            fix = "keys= names the entries with a row per box"
            raise DataError("SanitizeBoxes(sample)", f"rows: {lengths}", "there is one row per box", fix)
        kept = {
            key: (np.asarray(value) if isinstance(value, (list, tuple)) else value)[keep] for key, value in rows.items()
        }
        return {**sample, **kept}
