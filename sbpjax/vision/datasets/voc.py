"""`VocDetection`: images with boxes from Pascal VOC's XML annotations.

    VOC2012/ImageSets/Main/train.txt         names, one a line
    VOC2012/JPEGImages/2008_000008.jpg       the image of a name
    VOC2012/Annotations/2008_000008.xml      its boxes

Pixels are counted from 1 there, and the last one belongs to the box: (1, 1, 2, 2) is a box of 2 × 2 pixels, which is
(0, 0, 2, 2) here. A file that declares a document type is refused: entities could make a short file endless.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from sbpjax.errors import DataError

from .base import VisionDataset
from .reading import read_image

CLASSES = tuple(
    """aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep
    sofa train tvmonitor""".split()
)


class VocDetection(VisionDataset):
    """Pillow images with boxes.

    Args:
        root: the folder with ``JPEGImages``, ``Annotations`` and ``ImageSets/Main``.
        image_set: the name of a list in ``ImageSets/Main``.
        transform: of the sample, see `VisionDataset`.
        difficult: give boxes that are marked as difficult, too.
        classes: names of the classes, numbered from 1; 0 is the background of detectors.
        on_error: see `VisionDataset`.

    A sample is a dict: ``image``; ``boxes`` ``(N, 4)`` float32; ``labels`` ``(N,)`` int64; ``difficult`` ``(N,)`` bool;
    ``name``.

    Raises:
        DataError: a folder or the list is missing; at an index: the image or its annotations cannot be read.
    """

    def __init__(
        self,
        root: str | os.PathLike,
        image_set: str = "train",
        transform: Callable[[Any], Any] | None = None,
        *,
        difficult: bool = False,
        classes: tuple[str, ...] = CLASSES,
        on_error: str = "raise",
    ) -> None:
        super().__init__(transform, on_error)
        self._operation = f"VocDetection({os.fspath(root)!r}, {image_set!r})"
        self.root, self.difficult, self.classes = os.fspath(root), difficult, classes
        path = os.path.join(root, "ImageSets", "Main", f"{image_set}.txt")
        try:
            with open(path, encoding="utf-8") as file:
                self.names = [line.split()[0] for line in file if line.strip()]
        except (OSError, ValueError) as error:  # no UTF-8, too
            folder = os.path.dirname(path)
            there = sorted(name[:-4] for name in os.listdir(folder)) if os.path.isdir(folder) else []
            rule = "the lists of images are ImageSets/Main/….txt"
            raise DataError(
                self._operation, f"{error}", rule, f"one of {there[:6]}" if there else "another root"
            ) from None

    def __len__(self) -> int:
        return len(self.names)

    def read(self, index: int) -> dict[str, Any]:
        """Return a sample."""
        name = self.names[index]
        image = read_image(os.path.join(self.root, "JPEGImages", f"{name}.jpg"), operation=self._operation)
        tree = self._tree(os.path.join(self.root, "Annotations", f"{name}.xml"))
        boxes, labels, difficult = [], [], []
        for one in tree.findall("object"):
            hard = one.findtext("difficult", "0").strip() == "1"
            if hard and not self.difficult:
                continue
            boxes.append(self._box(one, name))
            labels.append(self._label(one, name))
            difficult.append(hard)
        return {
            "image": image,
            "boxes": np.array(boxes, np.float32).reshape(-1, 4),
            "labels": np.array(labels, np.int64),
            "difficult": np.array(difficult, bool),
            "name": name,
        }

    def _tree(self, path: str) -> ElementTree.Element:
        builder = ElementTree.TreeBuilder()
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = builder.start
        parser.EndElementHandler = builder.end
        parser.CharacterDataHandler = builder.data
        parser.StartDoctypeDeclHandler = self._reject_doctype
        try:
            with open(path, "rb") as file:
                parser.ParseFile(file)
            return builder.close()
        except DataError:
            raise
        # ValueError of a path with a NUL and of an encoding of several bytes; LookupError of one that is unknown.
        except (OSError, ValueError, LookupError, expat.ExpatError, AssertionError) as error:
            raise DataError(
                f"{self._operation}, {path}", str(error), "annotations are a file of XML", "fetch it again"
            ) from None

    def _reject_doctype(self, name: str, *_: Any) -> None:
        rule = "annotations declare no document type, whose entities could make a short file endless"
        raise DataError(self._operation, f"<!DOCTYPE {name}>", rule, "remove the declaration from the file")

    def _box(self, one: ElementTree.Element, name: str) -> list[float]:
        sides = [one.findtext(f"bndbox/{side}") for side in ("xmin", "ymin", "xmax", "ymax")]
        try:
            left, top, right, bottom = map(float, sides)  # type: ignore[arg-type]  # None is caught
            if not math.isfinite(left + top + right + bottom):
                raise ValueError
        except (TypeError, ValueError):
            seen, rule = f"{name}: a bndbox of {sides}", "a bndbox has xmin, ymin, xmax and ymax, all finite"
            raise DataError(self._operation, seen, rule, "correct the file of annotations") from None
        return [left - 1, top - 1, right, bottom]

    def _label(self, one: ElementTree.Element, name: str) -> int:
        kind = one.findtext("name", "").strip()
        if kind not in self.classes:
            rule = f"a class is one of {', '.join(self.classes)}"
            raise DataError(self._operation, f"{name}: an object {kind!r}", rule, f"classes=(..., {kind!r})")
        return self.classes.index(kind) + 1
