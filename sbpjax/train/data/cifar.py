"""`Cifar`: CIFAR-10 and CIFAR-100 as numbered samples, from the files that `sbpjax.vision.datasets` reads."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from sbpjax.vision.datasets import CifarFiles

from .images import Images


class Cifar(Images):
    """The images of CIFAR-10 or CIFAR-100, `(3, 32, 32)`.

    Args:
        folder: the folder of the files. Those of CIFAR-100 are called ``train.bin`` and ``test.bin``.
        train: the images for training, or those for testing.
        coarse: the 20 coarse classes of CIFAR-100, not the 100 fine ones.
        **options: as of `Images`.

    Raises:
        DataError: a file is missing, or cut off.

    Example:
        >>> np.arange(2 * 3074, dtype=np.uint8).tofile("train.bin")
        >>> two = Cifar(".", shuffle=False)
        >>> len(two), two[1]["images"].shape, two[1]["labels"]
        (2, (3, 32, 32), np.int64(3))
    """

    def __init__(self, folder: str | os.PathLike, *, train: bool = True, coarse: bool = False, **options: Any) -> None:
        self.files = CifarFiles(folder, train, coarse)
        super().__init__(len(self.files), **options)

    def picture(self, index: int, random: np.random.Generator | None) -> tuple[np.ndarray, int]:
        """Return an image, `(32, 32, 3)`, and its class."""
        return self.files[index]
