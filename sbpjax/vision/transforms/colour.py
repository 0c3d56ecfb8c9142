"""Colour functions with a given factor: brightness, contrast, saturation, hue, sharpness and others.

Most are mixtures of the image with a poorer one, ``factor * image + (1 - factor) * poorer``: black, the grey picture,
its mean, a blurred picture. A factor of 1 leaves an image as it is, 0 gives the poorer one, more than 1 exaggerates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbpjax.errors import DataError

from . import tensors as of_tensors
from .kinds import is_tensor, pillow, with_pillow


def brightness(image: Any, factor: float) -> Any:
    """Return an image mixed with black."""
    _at_least_0("brightness", factor)
    return of_tensors.brightness(image, factor) if is_tensor(image) else _enhance(image, "Brightness", factor)


def contrast(image: Any, factor: float) -> Any:
    """Return an image mixed with the mean of its grey picture."""
    _at_least_0("contrast", factor)
    return of_tensors.contrast(image, factor) if is_tensor(image) else _enhance(image, "Contrast", factor)


def saturation(image: Any, factor: float) -> Any:
    """Return an image mixed with its grey picture."""
    _at_least_0("saturation", factor)
    return of_tensors.saturation(image, factor) if is_tensor(image) else _enhance(image, "Color", factor)


def sharpness(image: Any, factor: float) -> Any:
    """Return an image mixed with a blurred one."""
    _at_least_0("sharpness", factor)
    return of_tensors.sharpness(image, factor) if is_tensor(image) else _enhance(image, "Sharpness", factor)


def hue(image: Any, shift: float) -> Any:
    """Return an image whose hues are moved along the circle of colours by a share of it, from -0.5 to 0.5."""
    if not -0.5 <= shift <= 0.5:
        raise DataError("hue(image, shift)", f"shift={shift}", "a shift is from -0.5 to 0.5", "hue=0.1")
    if is_tensor(image):
        return of_tensors.hue(image, shift)

    def shifted(one: Any) -> Any:
        if one.mode == "L":
            return one
        hues, saturations, values = one.convert("HSV").split()
        turned = np.array(hues) + np.uint8(int(shift * 255) % 256)  # wraps around, as hues do
        return pillow().merge("HSV", (pillow().fromarray(turned), saturations, values)).convert("RGB")

    return with_pillow(image, "hue(image, shift)", shifted)


def grey(image: Any, channels: int = 1) -> Any:
    """Return the grey picture of an image, with one channel or three alike."""
    if is_tensor(image):
        return of_tensors.grey(image, channels)

    def to_grey(one: Any) -> Any:
        flat = one.convert("L")
        return flat if channels == 1 else flat.convert("RGB")

    found = with_pillow(image, "grey(image)", to_grey)
    return found[..., None] if isinstance(found, np.ndarray) and found.ndim < image.ndim else found


def posterize(image: Any, bits: int) -> Any:
    """Return an image that keeps so many bits of each value."""
    if is_tensor(image):
        return of_tensors.posterize(image, bits)
    mask = ~(2 ** (8 - bits) - 1) & 255
    return _apply_table(image, "posterize(image, bits)", np.arange(256) & mask)


def solarize(image: Any, threshold: float) -> Any:
    """Return an image with values from a threshold on inverted; a share of white."""
    if is_tensor(image):
        return of_tensors.solarize(image, threshold)
    values = np.arange(256)
    return _apply_table(image, "solarize(image, threshold)", np.where(values < threshold * 255, values, 255 - values))


def invert(image: Any) -> Any:
    """Return the negative of an image."""
    if is_tensor(image):
        return of_tensors.invert(image)
    return _apply_table(image, "invert(image)", 255 - np.arange(256))


def autocontrast(image: Any) -> Any:
    """Return an image whose channels are stretched from black to white."""
    if is_tensor(image):
        return of_tensors.autocontrast(image)
    return with_pillow(image, "autocontrast(image)", pillow("ImageOps").autocontrast)


def equalize(image: Any) -> Any:
    """Return an image whose channels have all values about equally often."""
    if is_tensor(image):
        return of_tensors.equalize(image)
    return with_pillow(image, "equalize(image)", pillow("ImageOps").equalize)


def _at_least_0(name: str, factor: float) -> None:
    if factor < 0:
        operation = f"{name}(image, factor)"
        raise DataError(operation, f"factor={factor}", "a factor is 0 or more, 1 leaves the image", "factor=1.2")


def _enhance(image: Any, name: str, factor: float) -> Any:
    kind = getattr(pillow("ImageEnhance"), name)
    return with_pillow(image, name.lower(), lambda one: kind(one).enhance(factor))


def _apply_table(image: Any, operation: str, table: np.ndarray) -> Any:
    values = table.astype(np.uint8)
    return with_pillow(image, operation, lambda one: one.point(values.tolist() * len(one.getbands())))
