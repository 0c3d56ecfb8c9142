"""`CocoDetection`: images with boxes, masks and keypoints from a COCO annotation file; `mask_of` decodes masks.

{"images": [{"id": 7, "file_name": "7.jpg", "height": 480, "width": 640}, …],
 "categories": [{"id": 18, "name": "dog"}, …],
 "annotations": [{"id": 1, "image_id": 7, "category_id": 18, "bbox": [left, top, width, height], "iscrowd": 0,
                  "area": …, "segmentation": polygons or runs, "keypoints": [x, y, visible, …]}, …]}

A run-length code counts pixels outside, then inside, then outside …, down the first column, then down the second. In
letters, a count is written in steps of five bits, the lowest first, each a letter from "0" on, and from the third on as
the difference to the count two places before.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sbpjax.errors import DataError, SbpjaxError

from .base import VisionDataset
from .reading import read_image


def mask_of(segmentation: Any, height: int, width: int, operation: str = "mask_of(segmentation)") -> np.ndarray:
    """Return a mask ``(height, width)`` bool.

    Args:
        segmentation: a list of polygons ``[x, y, x, y, …]``, or ``{"size": [height, width], "counts": …}``.
        height: of the image.
        width: of the image.
        operation: the call that an error names.

    Raises:
        DataError: it is of another form, or of another size.

    Example:
        >>> mask_of({"size": [2, 2], "counts": [1, 2, 1]}, 2, 2).astype(int)
        array([[0, 1],
               [1, 0]])
    """
    if isinstance(segmentation, dict):
        return _run_length_mask(segmentation, height, width, operation)
    found = np.zeros((height, width), bool)
    for polygon in segmentation:
        found |= _polygon_mask(np.asarray(polygon, np.float64).reshape(-1, 2), height, width)
    return found


def _polygon_mask(points: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return which pixels have their centre inside: to the right of an odd number of edges."""
    inside = np.zeros((height, width), bool)
    centres = np.arange(width) + 0.5
    for (x1, y1), (x2, y2) in zip(points, np.roll(points, -1, 0), strict=True):
        low, high = sorted((y1, y2))
        rows = np.arange(max(0, int(np.ceil(low - 0.5))), min(height, int(np.ceil(high - 0.5))))
        if len(rows):
            crossing = x1 + (rows + 0.5 - y1) * (x2 - x1) / (y2 - y1)
            inside[rows] ^= centres > crossing[:, None]
    return inside


def _run_length_mask(code: dict, height: int, width: int, operation: str) -> np.ndarray:
    counts = code.get("counts", [])
    if isinstance(counts, (str, bytes)):
        counts = _counts_of(counts if isinstance(counts, bytes) else counts.encode())
    counts = np.asarray(counts, np.int64)
    if list(code.get("size", [])) != [height, width] or counts.sum() != height * width or (counts < 0).any():
        seen = f"size {code.get('size')}, {int(counts.sum())} pixels; the image is {height} high and {width} wide"
        raise DataError(operation, seen, "runs are of all pixels of their image", "annotations and images of one set")
    inside = np.arange(len(counts)) % 2 == 1
    return np.repeat(inside, counts).reshape(width, height).T


def _counts_of(letters: bytes) -> list[int]:
    counts: list[int] = []
    value = bits = 0
    for letter in letters:
        step = letter - 48
        value |= (step & 31) << bits
        bits += 5
        if not step & 32:  # the last step of a count; its highest bit is the sign
            value -= (1 << bits) if step & 16 else 0
            counts.append(value + (counts[-2] if len(counts) > 2 else 0))
            value = bits = 0
    return counts


class CocoDetection(VisionDataset):
    """Pillow images with their COCO annotations.

    Args:
        images: the folder of the images.
        annotations: the path of the JSON file.
        transform: of the sample, see `VisionDataset`.
        masks: give masks, of polygons and of runs.
        keypoints: give keypoints.
        crowds: give boxes of crowds too.
        empty: give images without a box too.
        on_error: see `VisionDataset`.

    A sample is a dict: ``image``; ``boxes`` ``(N, 4)`` float32, left, top, right, bottom, cut at the image's border;
    ``labels`` ``(N,)`` int64, the categories' numbers in the file; ``area`` ``(N,)``; ``iscrowd`` ``(N,)``;
    ``image_id``; with `masks` ``masks`` ``(N, H, W)`` bool; with `keypoints` ``keypoints`` ``(N, K, 3)``: x, y, and
    whether it is visible. Boxes without an area are left out.

    Attributes:
        classes: names of the categories by their numbers.
        ids: numbers of the images, sorted.

    Raises:
        DataError: the file is not of this format; at an index: the image cannot be read.
    """

    def __init__(
        self,
        images: str | os.PathLike,
        annotations: str | os.PathLike,
        transform: Callable[[Any], Any] | None = None,
        *,
        masks: bool = False,
        keypoints: bool = False,
        crowds: bool = False,
        empty: bool = True,
        on_error: str = "raise",
    ) -> None:
        super().__init__(transform, on_error)
        self._operation = f"CocoDetection({os.fspath(images)!r}, {os.fspath(annotations)!r})"
        self.folder, self.masks, self.keypoints, self.crowds = os.fspath(images), masks, keypoints, crowds
        content = self._content(annotations)
        with self._reword_errors("its annotations"):
            self._take(content, crowds, empty)

    def _take(self, content: dict, crowds: bool, empty: bool) -> None:
        self.classes = {int(one["id"]): str(one["name"]) for one in content["categories"]}
        self._images = {int(one["id"]): one for one in content["images"]}
        self._of_image: dict[int, list[dict]] = defaultdict(list)
        for one in content["annotations"]:
            self._check(one)
            if crowds or not one.get("iscrowd"):
                self._of_image[int(one["image_id"])].append(one)
        self.ids = sorted(i for i in self._images if empty or self._of_image.get(i))

    def _content(self, path: str | os.PathLike) -> dict:
        rule = "a file of COCO's format is a JSON object with images, categories and annotations"
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(self._operation, str(error), rule, "instances_….json, unpacked") from None
        kinds = ("images", "categories", "annotations")
        missing = [kind for kind in kinds if not isinstance(content, dict) or not isinstance(content.get(kind), list)]
        if missing:
            raise DataError(self._operation, f"no list of {', '.join(missing)}", rule, "instances_….json, not captions")
        return content

    def _check(self, one: dict) -> None:
        box = one.get("bbox")
        good = isinstance(box, list) and len(box) == 4 and all(isinstance(side, (int, float)) for side in box)
        known = one.get("image_id") in self._images and one.get("category_id") in self.classes
        if not good or not known:
            seen = f"annotation {one.get('id')}: bbox {box}, image {one.get('image_id')}, "
            seen += f"category {one.get('category_id')}"
            rule = "each annotation has a box of four numbers, an image and a category of the file"
            raise DataError(self._operation, seen, rule, "remove the annotation, or add its image or category")

    def __len__(self) -> int:
        return len(self.ids)

    @contextlib.contextmanager
    def _reword_errors(self, label: str) -> Iterator[None]:
        """Turn the errors of a damaged file into one error that names the place."""
        try:
            yield
        except SbpjaxError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            seen = f"{label}: {type(error).__name__}: {str(error)[:200]}"
            rule = "images, categories and annotations have the fields and kinds of values of COCO's format"
            raise DataError(self._operation, seen, rule, "remove the entry, or write the file anew") from None

    def read(self, index: int) -> dict[str, Any]:
        """Return a sample."""
        with self._reword_errors(f"image {self.ids[index]}"):
            return self._read(self.ids[index])

    def _read(self, number: int) -> dict[str, Any]:
        about = self._images[number]
        image = read_image(self._path(about["file_name"]), operation=self._operation)
        width, height = image.size
        found = [(one, self._box(one, width, height)) for one in self._of_image.get(number, [])]
        found = [(one, box) for one, box in found if box[2] > box[0] and box[3] > box[1]]
        sample = {
            "image": image,
            "boxes": np.array([box for _, box in found], np.float32).reshape(-1, 4),
            "labels": np.array([one["category_id"] for one, _ in found], np.int64),
            "area": np.array([one.get("area", one["bbox"][2] * one["bbox"][3]) for one, _ in found], np.float32),
            "iscrowd": np.array([one.get("iscrowd", 0) for one, _ in found], np.int64),
            "image_id": number,
        }
        if self.masks:
            masks = [mask_of(one.get("segmentation", []), height, width, self._operation) for one, _ in found]
            sample["masks"] = np.array(masks, bool).reshape(-1, height, width)
        if self.keypoints:
            points = [one.get("keypoints", []) for one, _ in found]
            most = max(map(len, points), default=0)
            rows = np.array([one or [0] * most for one in points], np.float32)
            sample["keypoints"] = rows.reshape(len(found), most // 3, 3)
        return sample

    def _path(self, name: str) -> str:
        path = os.path.normpath(os.path.join(self.folder, name))
        if os.path.isabs(name) or not path.startswith(os.path.normpath(self.folder) + os.sep):
            rule = "images are in the folder of the images"
            raise DataError(
                self._operation, f"file_name {name!r}", rule, "a name without .. in the file of annotations"
            )
        return path

    @staticmethod
    def _box(one: dict, width: int, height: int) -> list[float]:
        left, top, wide, high = one["bbox"]
        return [max(left, 0), max(top, 0), min(left + wide, width), min(top + high, height)]
