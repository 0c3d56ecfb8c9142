"""`OnDevice`: transforms of a batch as one compiled program, with random parameters as inputs.

    ways = OnDevice([RandomResizedCrop(224), RandomHorizontalFlip(), ToDtype("float32"), Normalize(mean, std)], seed=1)
    images = ways(batch, numbers=range(64, 128))           # (64, 3, 500, 400) uint8 → (64, 3, 224, 224) float32

The host draws, for each sample's number, just what `Compose` of the same transforms draws, and the values are the same
to rounding. A part that is cut out and resized is two products with sparse matrices, one for rows and one for columns,
whose shapes are the same for every part: so no shape depends on chance, and the program is compiled once. A batch that
is split over devices stays split, and nothing is communicated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax import Tensor, nn
from sbpjax.errors import DataError

from . import photometric as values
from . import tensors as colours
from .base import Transform
from .geometric import (
    CenterCrop,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    _Part,
)
from .random_numbers import generator
from .tensors import apply_as_float, like, resize_image

_JITTERS = ("brightness", "contrast", "saturation", "hue")


@dataclass(frozen=True)
class _BatchTransform:
    """How one kind of transform is done for a batch.

    Attributes:
        numbers: of what was drawn for a sample, the numbers that the program is given.
        batch: the images ``(B, C, H, W)`` and the numbers ``(B, k)``, transformed.
        size: the new height and width, of the transform and the old ones.
    """

    numbers: Callable[[Any], Sequence[float]]
    batch: Callable[[Any, Tensor, Tensor], Tensor]
    size: Callable[[Any, int, int], tuple[int, int]] = lambda transform, height, width: (height, width)


class _Program(nn.Graph):
    def __init__(self, transforms: Sequence[Transform]) -> None:
        super().__init__()
        self.ways = [(one, _batch_transform(one)) for one in transforms]

    def build(self, images: Tensor, *drawn: Tensor) -> Tensor:
        for (transform, way), numbers in zip(self.ways, drawn, strict=True):
            images = way.batch(transform, images, numbers)
        return images


class OnDevice:
    """Transforms for batches, compiled into one program for each shape of a batch.

    Args:
        transforms: of `Resize`, `CenterCrop`, `RandomCrop`, `RandomResizedCrop` (bilinear), the flips, `ColorJitter`,
            `RandomGrayscale`, `ToTensor`, `ToDtype`, `Normalize`, `RandomErasing`.
        seed: with a sample's number decides all that is random, as of `Compose`.

    Raises:
        DataError: a transform is of another kind, or interpolates otherwise.

    Example:
        >>> ways = OnDevice([RandomCrop(4), RandomHorizontalFlip()], seed=1)
        >>> ways(flow.zeros(2, 3, 8, 8), numbers=[0, 1]).shape
        sbpjax.Size([2, 3, 4, 4])
    """

    def __init__(self, transforms: Sequence[Transform], seed: int = 0) -> None:
        self.transforms, self.seed = list(transforms), seed
        self._program = _Program(self.transforms)

    def __call__(self, images: Tensor, numbers: Sequence[int]) -> Tensor:
        """Return a batch, transformed.

        Args:
            images: ``(B, C, H, W)``, local, or global and split or whole along the batch.
            numbers: of the samples, B of them.

        Returns:
            ``(B, C, *size)``, in the placement and sbp of the images.

        Raises:
            DataError: shapes do not fit, or an image is smaller than a part to be cut out.
        """
        if images.ndim != 4 or len(numbers) != images.shape[0]:
            seen, rule = (
                f"images {tuple(images.shape)}, {len(numbers)} numbers",
                "a batch is (B, C, H, W), with B numbers",
            )
            raise DataError("OnDevice(transforms)(images, numbers)", seen, rule, "numbers=range(first, first + B)")
        return self._program(images, *[self._place_rows(rows, images) for rows in self._draw_numbers(images, numbers)])

    def _draw_numbers(self, images: Tensor, numbers: Sequence[int]) -> list[np.ndarray]:
        """Return for each transform the numbers of all samples, ``(B, k)``."""
        rows: list[list] = [[] for _ in self.transforms]
        for number in numbers:
            random = generator(self.seed, int(number))
            height, width = images.shape[-2:]
            for row, (transform, way) in zip(rows, self._program.ways, strict=True):
                row.append(way.numbers(transform.draw(random, height, width)))
                height, width = way.size(transform, height, width)
        return [np.array(row, np.float32).reshape(len(numbers), -1) for row in rows]

    def _place_rows(self, rows: np.ndarray, images: Tensor) -> Tensor:
        if images.is_local:
            return flow.tensor(rows, device=images.device)
        return flow.tensor(rows, placement=images.placement, sbp=images.sbp)


def _batch_transform(transform: Transform) -> _BatchTransform:
    way = _WAYS.get(type(transform))
    if way is None or getattr(transform, "interpolation", "bilinear") != "bilinear":
        known = ", ".join(kind.__name__ for kind in _WAYS)
        fix = "do the others before the batch is made, in Compose"
        raise DataError("OnDevice(transforms)", repr(transform), f"for batches there are bilinear {known}", fix)
    return way


def _matrix(low: Tensor, extent: Tensor, size: int, old: int) -> Tensor:
    """Return ``(B, size, old)``: the weights of old pixels in new ones, for parts that begin at `low`, `(B, 1)`."""
    step = (extent / size)[:, :, None]  # (B, 1, 1)
    wide = step.clamp(min=1)
    centre = step * (like(low, np.arange(size))[None, :, None] + 0.5)
    place = like(low, np.arange(old))[None, None] - low[:, :, None] + 0.5
    weight = (1 - (place - centre).abs() / wide).clamp(min=0)
    weight = flow.where((place > 0) & (place < extent[:, :, None]), weight, 0.0)
    return weight / weight.sum(-1, keepdim=True)


def _pick_pixels(low: Tensor, size: int, old: int) -> Tensor:
    """Return ``(B, size, old)``: ones where a new pixel is an old one; none over the border."""
    new = like(low, np.arange(size))[None, :, None] + low[:, :, None]
    return (new == like(low, np.arange(old))[None, None]).float()


def _resample_by_matrices(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    def product(x: Tensor) -> Tensor:
        half = flow.matmul(x, columns.transpose(1, 2)[:, None])  # (B, C, H, w)
        return flow.matmul(rows[:, None], half)

    return apply_as_float(images, product, False)


def _cut(transform: _Part, images: Tensor, at: Tensor) -> Tensor:
    height, width = images.shape[-2:]
    rows, columns = (_pick_pixels(at[:, i : i + 1], transform.size[i], (height, width)[i]) for i in (0, 1))
    return _resample_by_matrices(images, rows, columns)


def _crop_and_resize(transform: RandomResizedCrop, images: Tensor, at: Tensor) -> Tensor:
    sides, old = transform.size, images.shape[-2:]
    rows, columns = (_matrix(at[:, i : i + 1], at[:, i + 2 : i + 3], sides[i], old[i]) for i in (0, 1))
    return _resample_by_matrices(images, rows, columns)


def _resize(transform: Resize, images: Tensor, _: Tensor) -> Tensor:
    height, width, *_ = transform.draw(None, *images.shape[-2:])  # type: ignore[arg-type]  # nothing is random
    return resize_image(images, height, width, "bilinear", transform.antialias)


def _select_flagged(flags: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    return flow.where(flags[:, :, None, None] > 0, yes, no)


def _jitter(transform: values.ColorJitter, images: Tensor, drawn: Tensor) -> Tensor:
    """Do four changes in an order that is another for each image: at each place all, and of each image its own."""
    still = [pair == ((0, 0) if name == "hue" else (1, 1)) for name, pair in
             [(name, tuple(getattr(transform, name))) for name in _JITTERS]]  # fmt: skip
    for place in range(4):
        which, factor = drawn[:, 2 * place : 2 * place + 1], drawn[:, 2 * place + 1 : 2 * place + 2, None, None]
        before = images
        for i, name in enumerate(_JITTERS):
            if not still[i]:
                changed = getattr(colours, name)(before, factor)
                images = flow.where((which == i)[:, :, None, None], changed, images)
    return images


def _erase(transform: values.RandomErasing, images: Tensor, at: Tensor) -> Tensor:
    y, x = (like(at, np.arange(n)) for n in images.shape[-2:])
    top, left, high, wide = (at[:, i, None, None, None] for i in range(4))
    y = y[:, None]
    inside = (y >= top) & (y < top + high) & (x >= left) & (x < left + wide)
    return flow.where(inside, flow.full_like(images[:1, :1, :1, :1], transform.value), images)


def _resize_size(transform: Resize, height: int, width: int) -> tuple[int, int]:
    return transform.draw(None, height, width)[:2]  # type: ignore[arg-type]  # nothing is random


_plain = _BatchTransform(lambda _: (), lambda transform, images, _: transform.transform_image(images, None))
_own_size = lambda transform, height, width: transform.size  # noqa: E731
_WAYS = {
    Resize: _BatchTransform(lambda _: (), _resize, _resize_size),
    CenterCrop: _BatchTransform(lambda at: at[:2], _cut, _own_size),
    RandomCrop: _BatchTransform(lambda at: at[:2], _cut, _own_size),
    RandomResizedCrop: _BatchTransform(lambda at: at, _crop_and_resize, _own_size),
    RandomHorizontalFlip: _BatchTransform(
        lambda flag: (flag,), lambda _, x, flags: _select_flagged(flags, x.flip(-1), x)
    ),
    RandomVerticalFlip: _BatchTransform(
        lambda flag: (flag,), lambda _, x, flags: _select_flagged(flags, x.flip(-2), x)
    ),
    values.ColorJitter: _BatchTransform(
        lambda drawn: [number for name, factor in drawn for number in (_JITTERS.index(name), factor)], _jitter
    ),
    values.RandomGrayscale: _BatchTransform(
        lambda flag: (flag,), lambda _, x, flags: _select_flagged(flags, colours.grey(x, 3), x)
    ),
    values.ToTensor: _plain,
    values.ToDtype: _plain,
    values.Normalize: _plain,
    values.RandomErasing: _BatchTransform(lambda at: at or (0, 0, 0, 0), _erase),
}
