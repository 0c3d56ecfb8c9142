"""`Transform`: base class of image transforms, and `Compose`.

A transform has two halves. `draw` chooses what is random from a generator, given the image's size; `transform_image`,
`transform_boxes` and `transform_masks` then do it, and are functions. So a picture, its boxes and its masks move alike,
and a sample of a number is the same whoever makes it:

    augment = Compose([RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor()], seed=1)
    augment(image, number=17)              # the same at every call, in every worker
    augment({"image": image, "boxes": boxes, "masks": masks, "labels": labels}, number=17)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sbpjax.errors import DataError, DataTypeError, nearest

from .geometry import check_boxes
from .kinds import size_of
from .random_numbers import generator


class Transform:
    """Base of all transforms: of one image, or of a sample as a dict with ``image`` and maybe ``boxes``, ``masks``.

    A subclass defines `transform_image`, `draw` if something is random, and `transform_boxes` and `transform_masks` if
    it moves pixels. ``keypoints`` ``(N, K, 3)`` move as boxes without area do; those that come to the border or beyond
    are not visible any more. Other keys of a sample stay as they are.
    """

    moves = False  # whether boxes and masks follow
    draws = False  # whether something is random

    def draw(self, random: np.random.Generator, height: int, width: int) -> Any:
        """Return what is random in a sample, for an image of a size."""
        return None

    def transform_image(self, image: Any, drawn: Any) -> Any:
        """Return the image."""
        raise NotImplementedError(f"{type(self).__name__} has no transform_image()")

    def transform_boxes(self, boxes: Any, drawn: Any, height: int, width: int) -> Any:
        """Return boxes ``(N, 4)`` of an image that had a height and a width."""
        return boxes

    def transform_masks(self, masks: Any, drawn: Any) -> Any:
        """Return masks ``(..., H, W)``."""
        return masks

    def transform_keypoints(self, points: Any, drawn: Any, height: int, width: int, new: tuple[int, int]) -> Any:
        """Return points ``(N, K, 3)``, x, y and visible, of an image that had one size and has a new one."""
        points = np.asarray(points, np.float32)
        flat = points.reshape(-1, 3)
        moved = np.asarray(self.transform_boxes(flat[:, [0, 1, 0, 1]], drawn, height, width))[:, :2]
        inside = ((moved > 0) & (moved < np.array(new[::-1]))).all(1) & (flat[:, 2] > 0)
        found = np.concatenate([moved, flat[:, 2:]], 1) * inside[:, None]
        return found.astype(np.float32).reshape(points.shape)

    def __call__(self, sample: Any, number: int | None = None, *, random: np.random.Generator | None = None) -> Any:
        """Return a sample, transformed.

        Args:
            sample: an image, or a dict with one under ``image``, boxes ``(N, 4)`` under ``boxes`` and masks
                ``(..., H, W)`` under ``masks``.
            number: the sample's, from which, with seed 0, all that is random follows.
            random: the randomness itself. With neither, it differs at every call.

        Returns:
            What came, transformed; dicts are copied.

        Raises:
            DataTypeError: the image is of no known kind.
            DataError: shapes or values do not fit.
        """
        return self.run(sample, self._random(number, random, 0))

    def run(self, sample: Any, random: np.random.Generator) -> Any:
        """Return a sample, transformed with a given randomness."""
        operation = f"{type(self).__name__}(sample)"
        if not isinstance(sample, dict):
            height, width = size_of(sample, operation)
            return self.transform_image(sample, self.draw(random, height, width))
        if "image" not in sample:
            near = next((key for key in sample if isinstance(key, str) and nearest(key, ["image"])), None)
            fix = f"sample['image'] = sample.pop({near!r})" if near else "{'image': image, 'boxes': boxes}"
            raise DataError(
                operation, f"a dict of {sorted(map(str, sample))}", "a sample has its image under 'image'", fix
            )
        height, width = size_of(sample["image"], operation)
        drawn = self.draw(random, height, width)
        found = {**sample, "image": self.transform_image(sample["image"], drawn)}
        if self.moves and sample.get("boxes") is not None:
            check_boxes(sample["boxes"], height, width)
            found["boxes"] = self.transform_boxes(sample["boxes"], drawn, height, width)
        if self.moves and sample.get("masks") is not None:
            found["masks"] = self.transform_masks(sample["masks"], drawn)
        if self.moves and sample.get("keypoints") is not None:
            found["keypoints"] = self.transform_keypoints(
                sample["keypoints"], drawn, height, width, size_of(found["image"])
            )
        return found

    def _random(self, number: int | None, random: np.random.Generator | None, seed: int) -> np.random.Generator:
        if random is not None and not isinstance(random, np.random.Generator):
            rule, fix = "random is a generator of NumPy", "random=np.random.default_rng(0)"
            raise DataTypeError(f"{type(self).__name__}(sample, random=...)", f"a {type(random).__name__}", rule, fix)
        if random is None:
            random = np.random.default_rng() if number is None else generator(seed, number)
        return random

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({options})"


class Compose(Transform):
    """A sequence of transforms.

    Args:
        transforms: each a `Transform`, or a function of the whole sample.
        seed: with a sample's number decides all that is random, 0 or more.

    Raises:
        DataTypeError: one of them cannot be called.

    Example:
        >>> ways = Compose([Resize((4, 6)), RandomHorizontalFlip(), ToTensor()], seed=3)
        >>> ways(np.zeros((8, 8, 3), np.uint8), number=5).shape
        sbpjax.Size([3, 4, 6])
    """

    def __init__(self, transforms: Sequence[Transform | Callable[[Any], Any]], seed: int = 0) -> None:
        wrong = [one for one in transforms if not callable(one)]
        if wrong or isinstance(transforms, Transform):
            seen = f"{type(wrong[0]).__name__} among {len(transforms)}" if wrong else "a single transform"
            raise DataTypeError(
                "Compose(transforms)", seen, "transforms are callable, in a list", "Compose([Resize(8)])"
            )
        self.transforms, self.seed = list(transforms), seed

    def __call__(self, sample: Any, number: int | None = None, *, random: np.random.Generator | None = None) -> Any:
        """Return a sample, transformed; see `Transform`."""
        return self.run(sample, self._random(number, random, self.seed))

    def run(self, sample: Any, random: np.random.Generator) -> Any:
        """Return a sample, transformed with a given randomness."""
        for one in self.transforms:
            sample = one.run(sample, random) if isinstance(one, Transform) else one(sample)
        return sample

    def __repr__(self) -> str:
        return "Compose([\n" + "".join(f"    {one!r},\n" for one in self.transforms) + f"], seed={self.seed})"


class RandomApply(Transform):
    """Apply a transform to a random share of the samples.

    Args:
        transform: which.
        p: with which probability.
    """

    moves = draws = True

    def __init__(self, transform: Transform, p: float = 0.5) -> None:
        self.transform, self.p = transform, probability("RandomApply", p)

    def run(self, sample: Any, random: np.random.Generator) -> Any:
        """Return a sample, transformed or not."""
        return self.transform.run(sample, random) if random.random() < self.p else sample


def probability(name: str, p: float) -> float:
    """Return a probability.

    Raises:
        DataError: it is none.
    """
    if not 0 <= p <= 1:
        raise DataError(f"{name}(p={p})", f"p={p}", "a probability is from 0 to 1", "p=0.5")
    return p
