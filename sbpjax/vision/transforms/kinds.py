"""Image types of transforms and their detection: Pillow images, NumPy arrays, tensors.

| kind | shape | values |
|---|---|---|
| image of Pillow | | modes ``L`` and ``RGB`` |
| NumPy array | ``(H, W)`` or ``(H, W, C)`` | uint8 from 0 to 255, floats from 0 to 1 |
| tensor | ``(..., C, H, W)`` | the same |

An array of uint8 with one or three channels takes Pillow's arithmetic, a tensor that of PyTorch's habits; where a value
is rounded, they differ by one at most.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax.errors import DataError, DataTypeError
from sbpjax.utils.host import pip_install

FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1, "box": 4, "hamming": 5}  # Pillow's numbers


def is_pil(image: Any) -> bool:
    """Return whether it is an image of Pillow, without importing Pillow."""
    return any(kind.__module__ == "PIL.Image" for kind in type(image).__mro__)


def is_tensor(image: Any) -> bool:
    """Return whether it is a tensor; in a data worker, what becomes one."""
    return isinstance(image, flow.Tensor)


def size_of(image: Any, operation: str = "transform(image)") -> tuple[int, int]:
    """Return height and width.

    Raises:
        DataTypeError: it is none of the three kinds.
        DataError: its shape is none of an image.
    """
    if is_pil(image):
        return image.height, image.width
    if not isinstance(image, np.ndarray) and not is_tensor(image):
        rule = "an image is one of Pillow, a NumPy array (H, W, C) or a tensor (..., C, H, W)"
        fix = "a sample is {'image': image, 'boxes': boxes}" if isinstance(image, (dict, tuple, list)) else "np.asarray"
        raise DataTypeError(operation, f"a {type(image).__name__}", rule, fix)
    shape = tuple(image.shape)
    if is_tensor(image):
        if len(shape) < 3:
            raise DataError(operation, f"a tensor {shape}", "a tensor is (..., C, H, W)", "image[None] for (H, W)")
        return shape[-2], shape[-1]
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] > 4 and shape[0] <= 4):
        fix = "image.transpose(1, 2, 0), or flow.tensor(image), whose channels are in front"
        raise DataError(operation, f"an array {shape}", "an array is (H, W) or (H, W, C), C from 1 to 4", fix)
    return shape[0], shape[1]


def pillow(part: str = "Image") -> Any:
    """Return a module of Pillow: ``PIL.Image``, ``PIL.ImageOps``.

    Raises:
        DataError: Pillow is not installed.
    """
    try:
        return importlib.import_module(f"PIL.{part}")
    except ImportError:
        rule = "images are read and resized by the package Pillow"
        raise DataError("an image", "Pillow is not installed", rule, pip_install("vision")) from None


def with_pillow(image: Any, operation: str, function: Callable[[Any], Any]) -> Any:
    """Return what a function of images of Pillow gives, for one or for an array of uint8; as what came.

    Raises:
        DataTypeError: it is an array of another dtype.
    """
    if is_pil(image):
        if image.mode not in ("L", "RGB"):
            rule = "colours of images of Pillow are of the modes L or RGB"
            raise DataTypeError(operation, f"an image of mode {image.mode}", rule, "image.convert('RGB')")
        return function(image)
    if image.dtype != np.uint8 or (image.ndim == 3 and image.shape[2] not in (1, 3)):
        rule = "colours of an array are uint8, of one or three channels"
        fix = "(image * 255).astype(np.uint8) of floats from 0 to 1, or a tensor"
        raise DataTypeError(operation, f"an array {image.shape} {image.dtype}", rule, fix)
    flat = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
    found = np.asarray(function(pillow().fromarray(flat)))
    return found[..., None] if found.ndim < image.ndim else found


def check_floats(image: Any, operation: str) -> None:
    """Check that values can be normalised: they are floating.

    Raises:
        DataTypeError: they are whole numbers.
    """
    floating = not is_pil(image) and str(image.dtype).rpartition(".")[2].startswith(("float", "bfloat", "f"))
    if not floating:
        seen = "an image of Pillow" if is_pil(image) else f"values of {image.dtype}"
        raise DataTypeError(operation, seen, "it takes floats from 0 to 1", "ToTensor() or ToDtype('float32') in front")
