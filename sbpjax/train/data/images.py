"""Image classification datasets, from a folder per class or from arrays: `ImageFolder`, `ArrayImages`.

    cats/0001.jpg   cats/0002.jpg   dogs/0001.jpg          ImageFolder(root, size=224): classes cats and dogs
    pixels (N, 8, 8, 1), labels (N,)                       ArrayImages(pixels, labels)

A sample is ``{"images": (C, H, W) float32, "labels": a number}``. In training (``augment=True``) an image is cropped at
a random place and mirrored half of the time, as a function of `seed` and the sample's number.

`Cifar`: CIFAR-10 and CIFAR-100 as numbered samples, from the files that `sbpjax.vision.datasets` reads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from sbpjax.errors import DataError
from sbpjax.vision.datasets import CifarFiles
from sbpjax.vision.datasets.reading import checked_on_error, find_images, first_readable, read_image
from sbpjax.vision.transforms.kinds import pillow
from sbpjax.vision.transforms.random_numbers import random_crop_box

from .numbered import Shuffled


class Images(Shuffled):
    """Base of datasets of images: a subclass defines `picture`.

    Args:
        per_epoch: the number of images.
        mean: per channel, of values from 0 to 1; subtracted.
        std: per channel; the divisor.
        augment: crop and mirror at random.
        margin: zeros padded at each side before a random crop.
        mirror: whether mirroring is part of `augment`; not for digits.
        samples: the number of samples of a run, over as many epochs as needed; one epoch if not given.
        seed: of the order and of `augment`, 0 or more.
        shuffle: False for the order of the files.
    """

    def __init__(
        self,
        per_epoch: int,
        *,
        mean: Sequence[float] = (0.5,),
        std: Sequence[float] = (0.5,),
        augment: bool = False,
        margin: int = 0,
        mirror: bool = True,
        samples: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
    ) -> None:
        super().__init__(per_epoch, samples, seed, shuffle)
        self.mean, self.std = np.array(mean, np.float32), np.array(std, np.float32)
        self.augment, self.margin, self.mirror = augment, margin, mirror

    def picture(self, index: int, random: np.random.Generator | None) -> tuple[np.ndarray, int]:
        """Return an image, `(H, W, C)` uint8, and its class.

        Args:
            index: the index of the image.
            random: the randomness of the sample, with `augment`; else None.
        """
        raise NotImplementedError(f"{type(self).__name__} has no picture()")

    def sample(self, number: int) -> dict[str, Any]:
        """Return ``images``, `(C, H, W)` float32, and ``labels``, a number."""
        random = self.chance(number) if self.augment else None
        pixels, label = self.picture(self.index(number), random)
        if random is not None:
            pixels = self._move_pixels(pixels, random)
        return {"images": self._values(pixels), "labels": np.int64(label)}

    def _values(self, pixels: np.ndarray) -> np.ndarray:
        values = (pixels.astype(np.float32) / 255 - self.mean) / self.std
        return np.ascontiguousarray(values.transpose(2, 0, 1))

    def _move_pixels(self, pixels: np.ndarray, random: np.random.Generator) -> np.ndarray:
        height, width, _ = pixels.shape
        top, left = (int(place) for place in random.integers(2 * self.margin + 1, size=2))
        around = ((self.margin, self.margin), (self.margin, self.margin), (0, 0))
        pixels = np.pad(pixels, around)[top : top + height, left : left + width]
        return pixels[:, ::-1] if self.mirror and random.integers(2) else pixels


class ArrayImages(Images):
    """Images from arrays.

    Args:
        pixels: `(N, H, W, C)` or `(N, H, W)` uint8.
        labels: `(N,)` whole numbers.
        **options: as of `Images`.

    Raises:
        DataError: shapes or dtypes do not fit.

    Example:
        >>> pixels = np.arange(32, dtype=np.uint8).reshape(2, 4, 4)
        >>> two = ArrayImages(pixels, [0, 1], shuffle=False)
        >>> two[1]["images"].shape, two[1]["labels"]
        ((1, 4, 4), np.int64(1))
    """

    def __init__(self, pixels: np.ndarray, labels: Any, **options: Any) -> None:
        self.pixels, self.labels = np.asarray(pixels), np.asarray(labels)
        self.pixels = self.pixels[..., None] if self.pixels.ndim == 3 else self.pixels
        fix = None
        if self.pixels.dtype != np.uint8:
            shares = self.pixels.dtype.kind == "f" and self.pixels.size and self.pixels.max() <= 1
            fix = f"({'pixels * 255' if shares else 'pixels'}).round().astype(np.uint8): values from 0 to 255"
        elif self.pixels.ndim != 4 or self.labels.shape != self.pixels.shape[:1]:
            fix = "one image and one label for each sample"
        elif self.labels.dtype.kind not in "iu":
            fix = "labels.astype(np.int64), of classes counted from 0"
        if fix is not None:
            seen = f"pixels {self.pixels.shape} {self.pixels.dtype}, labels {self.labels.shape} {self.labels.dtype}"
            rule = "pixels are (N, H, W, C) or (N, H, W) uint8, labels (N,) integers"
            raise DataError("ArrayImages(pixels, labels)", seen, rule, fix)
        super().__init__(len(self.pixels), **options)

    def picture(self, index: int, random: np.random.Generator | None) -> tuple[np.ndarray, int]:
        """Return an image and its class."""
        return self.pixels[index], int(self.labels[index])


class ImageFolder(Images):
    """Images from one folder per class, read with Pillow and resized to one size.

    The shorter side is scaled to `size`, and the middle is cut out; with `augment` a random part of the area (8 to 100
    of 100, sides up to 4 : 3) is scaled instead. Classes are the folders' names, sorted.

    Args:
        root: the folder of the folders.
        size: height and width.
        mean: as of `Images`; by default those of ImageNet, as are `std`.
        std: as of `Images`.
        on_error: ``"raise"`` an error that names a file that cannot be read, or ``"skip"`` it: the next readable one
            replaces it, and a warning names the file.
        **options: as of `Images`.

    Attributes:
        classes: their names.
        files: of each image, its path and the number of its class.

    Raises:
        DataError: there is no image in it, one cannot be read, `size` is no number, or Pillow is not installed.

    Example:
        >>> from PIL import Image
        >>> for name in ("dark", "light"):
        ...     os.makedirs(f"tones/{name}")
        ...     Image.new("RGB", (20, 30), (200, 200, 200) if name == "light" else None).save(f"tones/{name}/0.png")
        >>> tones = ImageFolder("tones", size=16, shuffle=False)
        >>> tones.classes, tones[1]["images"].shape, tones[1]["labels"]
        (['dark', 'light'], (3, 16, 16), np.int64(1))
    """

    def __init__(
        self,
        root: str | os.PathLike,
        size: int,
        *,
        mean: Sequence[float] = (0.485, 0.456, 0.406),
        std: Sequence[float] = (0.229, 0.224, 0.225),
        on_error: str = "raise",
        **options: Any,
    ) -> None:
        self.on_error = checked_on_error(on_error, "ImageFolder")
        if not isinstance(size, int) or size < 1:
            rule = "images are brought to squares, and size is their side in pixels"
            raise DataError("ImageFolder(root, size)", f"size={size!r}", rule, "size=224")
        self.size, self._operation = size, f"ImageFolder({os.fspath(root)!r})"
        self.classes, self.files = find_images(root, self._operation)
        super().__init__(len(self.files), mean=mean, std=std, **options)

    def picture(self, index: int, random: np.random.Generator | None) -> tuple[np.ndarray, int]:
        """Return an image, `(size, size, 3)`, and its class."""
        image, label = first_readable(self._read, index, len(self.files), self.on_error)
        return self._cut(image, random), label

    def _cut(self, image: Any, random: np.random.Generator | None) -> np.ndarray:
        """Return a square of an image of Pillow, scaled to `size`: the middle, or a random part."""
        width, height = image.size
        if random is None:
            side = min(width, height)
            left, top, wide, high = (width - side) / 2, (height - side) / 2, side, side
        else:
            top, left, high, wide = random_crop_box(height, width, random)
        box = (left, top, left + wide, top + high)
        return np.asarray(image.resize((self.size, self.size), pillow().Resampling.BILINEAR, box=box))

    def read(self, path: str | os.PathLike) -> np.ndarray:
        """Return an image file as model input, `(3, size, size)` float32: scaled, cropped and normalised.

        Args:
            path: of the file.

        Raises:
            DataError: it cannot be read.
        """
        return self._values(self._cut(read_image(path, operation=self._operation), None))

    def _read(self, index: int) -> tuple[Any, int]:
        path, label = self.files[index]
        return read_image(path, operation=self._operation), label


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
