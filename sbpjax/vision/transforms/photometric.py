"""Transforms of pixel values: colour jitter, conversion to tensors, normalisation, erasing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax.errors import DataError

from . import colour
from .base import Transform, probability
from .kinds import check_floats, is_pil, is_tensor, pillow
from .tensors import like


def _range(name: str, value: float | tuple[float, float], middle: float, low: float, high: float) -> tuple:
    """Return from where to where a factor is drawn; a number is a distance from the middle."""
    pair = (max(low, middle - value), middle + value) if isinstance(value, (int, float)) else tuple(value)
    if len(pair) != 2 or not low <= pair[0] <= pair[1] <= high or (isinstance(value, (int, float)) and value < 0):
        rule = f"{name} is a number, 0 or more, or a pair within {low} to {high}"
        raise DataError(f"ColorJitter({name}={value})", f"{name}={value}", rule, f"{name}=0.1")
    return pair


class ColorJitter(Transform):
    """Change brightness, contrast, saturation and hue, in random order.

    Args:
        brightness: a number b draws factors from 1 - b to 1 + b; a pair gives both bounds.
        contrast: likewise.
        saturation: likewise.
        hue: a number h draws shifts from -h to h, a share of the circle of colours, 0.5 at most; or a pair.

    Raises:
        DataError: a range is none.

    Example:
        >>> ColorJitter(brightness=(0, 0))(np.full((1, 1, 3), 99, np.uint8)).tolist()
        [[[0, 0, 0]]]
    """

    draws = True

    def __init__(
        self,
        brightness: float | tuple[float, float] = 0,
        contrast: float | tuple[float, float] = 0,
        saturation: float | tuple[float, float] = 0,
        hue: float | tuple[float, float] = 0,
    ) -> None:
        self.brightness = _range("brightness", brightness, 1, 0, math.inf)
        self.contrast = _range("contrast", contrast, 1, 0, math.inf)
        self.saturation = _range("saturation", saturation, 1, 0, math.inf)
        self.hue = _range("hue", hue, 0, -0.5, 0.5)

    def draw(self, random: np.random.Generator, height: int, width: int) -> list[tuple[str, float]]:
        """Return names and factors, in their order."""
        ranges = {name: getattr(self, name) for name in ("brightness", "contrast", "saturation", "hue")}
        drawn = [(name, random.uniform(*pair)) for name, pair in ranges.items()]
        return [drawn[i] for i in random.permutation(4)]

    def transform_image(self, image: Any, drawn: list[tuple[str, float]]) -> Any:
        """Return the image, its colours changed."""
        for name, factor in drawn:
            if factor != (name != "hue"):  # 1, or no shift, leaves it as it is
                image = getattr(colour, name)(image, factor)
        return image


class RandomGrayscale(Transform):
    """Convert images to grey at random.

    Args:
        p: the probability.
    """

    draws = True

    def __init__(self, p: float = 0.1) -> None:
        self.p = probability("RandomGrayscale", p)

    def draw(self, random: np.random.Generator, height: int, width: int) -> bool:
        """Return whether."""
        return bool(random.random() < self.p)

    def transform_image(self, image: Any, drawn: bool) -> Any:
        """Return the image, its channels alike or as they were."""
        one_channel = is_pil(image) and image.mode == "L"
        return colour.grey(image, 3) if drawn and not one_channel else image


class ToTensor(Transform):
    """Convert a Pillow image or an array to a tensor ``(C, H, W)``; integers become floats from 0 to 1.

    In a data worker it is an array that becomes a tensor on arrival.

    Example:
        >>> ToTensor()(np.full((1, 2, 1), 255, np.uint8))
        tensor([[[1., 1.]]])
    """

    def transform_image(self, image: Any, drawn: None) -> Any:
        """Return the tensor."""
        if is_tensor(image):
            return _scale_image(image)
        values = np.asarray(image)
        values = values[..., None] if values.ndim == 2 else values
        values = np.ascontiguousarray(values.transpose(2, 0, 1))
        if values.dtype.kind in "ui":
            values = values.astype(np.float32) / np.float32(np.iinfo(values.dtype).max)
        return flow.from_numpy(values.astype(np.float32, copy=False))


def _scale_image(image: Any) -> Any:
    return image if image.dtype in (flow.float32, flow.float64) else ToDtype("float32").transform_image(image, None)


class ToDtype(Transform):
    """Change the dtype of an image's values.

    Args:
        dtype: its name: ``"float32"``, ``"uint8"``, ``"bfloat16"`` …
        scale: whether white stays white: 255 of uint8 is 1.0 of floats.

    Raises:
        DataError: there is no such dtype.

    Example:
        >>> ToDtype("float32")(np.full((1, 1), 51, np.uint8))
        array([[0.2]], dtype=float32)
    """

    def __init__(self, dtype: Any, scale: bool = True) -> None:
        self.dtype, self.scale = str(dtype).rpartition(".")[2].strip("'<>"), scale
        if not self.dtype.startswith(("float", "uint", "int", "bfloat16")):
            rule = "a dtype is one of floats or of whole numbers, by its name"
            raise DataError(f"ToDtype({dtype!r})", self.dtype, rule, "ToDtype('float32')")

    def transform_image(self, image: Any, drawn: None) -> Any:
        """Return the image in the dtype."""
        image = np.asarray(image) if is_pil(image) else image
        old = str(image.dtype).rpartition(".")[2]
        if old == self.dtype:
            return image
        cast = (lambda x, name: x.to(getattr(flow, name))) if is_tensor(image) else (lambda x, name: x.astype(name))
        if not self.scale or old.startswith(("float", "bfloat")) == self.dtype.startswith(("float", "bfloat")):
            return cast(image, self.dtype)
        if self.dtype.startswith(("float", "bfloat")):
            wide = self.dtype if self.dtype == "float64" else "float32"
            return cast(cast(image, wide) / float(np.iinfo(old).max), self.dtype)
        return cast(image * (np.iinfo(self.dtype).max + 1 - 1e-3), self.dtype)


class Normalize(Transform):
    """Subtract a mean from each channel and divide by a standard deviation.

    Args:
        mean: per channel, of values from 0 to 1.
        std: per channel, more than 0.

    Raises:
        DataError: they do not fit each other, or a deviation is 0; at a call: the number of channels is another.
        DataTypeError: at a call: values are whole numbers.

    Example:
        >>> Normalize([0.5], [0.25])(ToTensor()(np.full((1, 1), 255, np.uint8)))
        tensor([[[2.]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        if len(mean) != len(std) or min(std) <= 0:
            rule = "each channel has a mean, and a deviation above 0"
            raise DataError("Normalize(mean, std)", f"mean {mean}, std {std}", rule, "Normalize([0.5], [0.5])")
        self.mean, self.std = tuple(map(float, mean)), tuple(map(float, std))

    def transform_image(self, image: Any, drawn: None) -> Any:
        """Return the image, normalised."""
        check_floats(image, "Normalize(mean, std)(image)")
        channels = image.shape[-3] if is_tensor(image) else np.atleast_3d(image).shape[-1]
        if len(self.mean) not in (1, channels):
            seen, rule = f"an image {tuple(image.shape)}", f"it has {len(self.mean)} channels, as mean and std"
            raise DataError("Normalize(mean, std)(image)", seen, rule, "a mean and a std per channel, or one for all")
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        if not is_tensor(image):
            return ((image - mean) / std).astype(image.dtype)
        if isinstance(image, np.ndarray):  # in a data worker
            return (image - flow.from_numpy(mean[:, None, None])) / flow.from_numpy(std[:, None, None])
        return (image - like(image, mean[:, None, None])) / like(image, std[:, None, None])


class RandomErasing(Transform):
    """Erase a random rectangle of a float tensor or array, normalised or not.

    Args:
        p: the probability.
        scale: the least and the largest share of the area.
        ratio: the least and the largest quotient of height by width.
        value: what it is covered with.

    Raises:
        DataError: `p` is no probability.

    Source: Zhong et al., "Random Erasing Data Augmentation", 2017.
    """

    draws = True

    def __init__(
        self,
        p: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: float = 0.0,
    ) -> None:
        self.p, self.scale, self.ratio, self.value = probability("RandomErasing", p), scale, ratio, value

    def draw(self, random: np.random.Generator, height: int, width: int) -> tuple[int, int, int, int] | None:
        """Return top, left, height and width of the rectangle, or None."""
        if random.random() >= self.p:
            return None
        for _ in range(10):
            area = height * width * random.uniform(*self.scale)
            sides = math.exp(random.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            h, w = round(math.sqrt(area * sides)), round(math.sqrt(area / sides))
            if 0 < h < height and 0 < w < width:
                return int(random.integers(height - h + 1)), int(random.integers(width - w + 1)), h, w
        return None

    def transform_image(self, image: Any, drawn: tuple[int, int, int, int] | None) -> Any:
        """Return the image, a part of it covered."""
        if drawn is None:
            return image
        top, left, high, wide = drawn
        rows, columns = slice(top, top + high), slice(left, left + wide)
        if is_pil(image):
            covered = image.copy()
            covered.paste(
                pillow().new(image.mode, (wide, high), (int(self.value),) * len(image.getbands())), (left, top)
            )
            return covered
        covered = image.clone() if is_tensor(image) and not isinstance(image, np.ndarray) else image.copy()
        if is_tensor(image):
            covered[..., rows, columns] = self.value
        else:
            covered[rows, columns] = self.value
        return covered
