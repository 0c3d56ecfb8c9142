"""`ImageFolder`: image classification dataset with a folder per class, such as ImageNet.

imagenet/train/n01440764/n01440764_18.JPEG …     ImageFolder("imagenet/train"): 1000 classes, by their folders' names
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .base import VisionDataset
from .reading import find_images, read_image


class ImageFolder(VisionDataset):
    """Pairs of an ``RGB`` Pillow image and the number of its class.

    Args:
        root: the folder of the folders.
        transform: of the image, see `VisionDataset`.
        at_least: decode JPEG files faster, at a fraction of their size with so many pixels at the shorter side at
            least; None for their own size.
        on_error: see `VisionDataset`.

    Attributes:
        classes: names of the folders, sorted.
        class_to_idx: the number of each.
        samples: of each image, its path and the number of its class.

    Raises:
        DataError: there is no image in it; at an index: the image cannot be read.

    Example:
        >>> from PIL import Image
        >>> for name in ("dark", "light"):
        ...     os.makedirs(f"tones/{name}")
        ...     Image.new("RGB", (20, 30), (200, 200, 200) if name == "light" else None).save(f"tones/{name}/0.png")
        >>> tones = ImageFolder("tones")
        >>> tones.classes, tones[1][0].size, tones[1][1]
        (['dark', 'light'], (20, 30), 1)
    """

    def __init__(
        self,
        root: str | os.PathLike,
        transform: Callable[[Any], Any] | None = None,
        *,
        at_least: int | None = None,
        on_error: str = "raise",
    ) -> None:
        super().__init__(transform, on_error)
        self._operation, self.at_least = f"ImageFolder({os.fspath(root)!r})", at_least
        self.classes, self.samples = find_images(root, self._operation)
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return len(self.samples)

    def read(self, index: int) -> tuple[Any, int]:
        """Return an image and the number of its class."""
        path, label = self.samples[index]
        return read_image(path, at_least=self.at_least, operation=self._operation), label
