"""Tensor versions of the geometric and colour functions, for images ``(..., C, H, W)`` of one or three channels.

Integers are computed in float32: geometric functions round them, colours cut them off, as PyTorch's users expect.
Factors of colours may be tensors ``(N, 1, 1, 1)``, one for each image of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax.errors import DataError
from sbpjax.nn import functional as F


def like(tensor: Any, values: Any) -> Any:
    """Return numbers as a tensor beside another one, of its dtype if that is floating."""
    dtype = tensor.dtype if tensor.is_floating_point() else flow.float32
    if tensor.is_local:
        return flow.tensor(values, dtype=dtype, device=tensor.device)
    return flow.tensor(values, dtype=dtype, placement=tensor.placement, sbp=[flow.sbp.broadcast] * len(tensor.sbp))


def stack(tensors: list[Any], dim: int) -> Any:
    """Return `sbpjax.stack`."""
    return flow.stack(tensors, dim)


def low(x: Any, dim: int) -> Any:
    """Return the least along a dim."""
    return flow.amin(x, dim)


def high(x: Any, dim: int) -> Any:
    """Return the largest along a dim."""
    return flow.amax(x, dim)


def white_value(image: Any) -> float:
    """Return the value of white: 255 of uint8, 1 of floats, True of masks."""
    if image.is_floating_point() or image.dtype == flow.bool:
        return 1.0
    return float(flow.iinfo(image.dtype).max)


def apply_as_float(image: Any, function: Callable[[Any], Any], clamp: bool) -> Any:
    """Return what a function of ``(N, C, H, W)`` floats gives, in shape and dtype of the image."""
    shape, dtype = tuple(image.shape), image.dtype
    x = image.reshape(-1, *shape[-3:])
    if dtype not in (flow.float32, flow.float64):
        x = x.float()
    x = function(x)
    if not dtype.is_floating_point:
        x = x.round()
        x = x.clamp(0, white_value(image)) if clamp else x
    return x.to(dtype).reshape(*shape[:-2], *x.shape[-2:])


def resize_image(image: Any, height: int, width: int, interpolation: str, antialias: bool) -> Any:
    """Return an image of another size; see `geometry.resized`."""
    options = {} if interpolation.startswith("nearest") else {"align_corners": False, "antialias": antialias}
    size = (height, width)
    return apply_as_float(
        image, lambda x: F.interpolate(x, size=size, mode=interpolation, **options), interpolation == "bicubic"
    )


def pad(image: Any, around: tuple[int, int, int, int], fill: float) -> Any:
    """Return an image with a border: left, top, right, bottom."""
    left, top, right, bottom = around
    return F.pad(image, (left, right, top, bottom), value=fill)


def flip_image(image: Any, dim: int) -> Any:
    """Return an image with the order of a dim turned around."""
    return image.flip(dim)


def move_image(image: Any, matrix: tuple[float, ...], interpolation: str, fill: float) -> Any:
    """Return an image under an affine move; see `geometry.moved`."""
    a, b, c, d, e, f = matrix
    height, width = image.shape[-2:]

    def sample(x: Any) -> Any:
        # grid_sample has -1 and 1 at the borders: first what x_old is around the middle, then half sizes as units.
        at_x = like(x, np.arange(width)) + (0.5 - width / 2)
        at_y = (like(x, np.arange(height)) + (0.5 - height / 2))[:, None]
        old_x = (a * at_x + b * at_y + (a * width / 2 + b * height / 2 + c - width / 2)) / (width / 2)
        old_y = (d * at_x + e * at_y + (d * width / 2 + e * height / 2 + f - height / 2)) / (height / 2)
        grid = flow.stack([old_x, old_y], -1).expand(x.shape[0], height, width, 2)
        options = {"mode": interpolation, "padding_mode": "zeros", "align_corners": False}
        found = F.grid_sample(x, grid, **options)
        if fill:
            there = F.grid_sample(flow.ones_like(x[:, :1]), grid, **options)
            found = flow.where(there < 0.5, fill, found) if interpolation == "nearest" else found + (1 - there) * fill
        return found

    return apply_as_float(image, sample, False)


_GREY = (0.2989, 0.587, 0.114)  # ITU-R BT.601, as Pillow and PyTorch have it


def _floats(image: Any, operation: str) -> Any:
    if image.shape[-3] not in (1, 3):
        seen = f"a tensor {tuple(image.shape)}"
        raise DataError(
            operation, seen, "colours are of one or three channels, (..., C, H, W)", "image.movedim(-1, -3)"
        )
    return image if image.is_floating_point() else image.float()


def _restore_dtype(values: Any, image: Any) -> Any:
    """Return values in the range and the dtype of an image."""
    return values.clamp(0, white_value(image)).to(image.dtype)


def _mix_images(image: Any, poorer: Any, factor: Any) -> Any:
    return _restore_dtype(factor * _floats(image, "a change of colour") + (1 - factor) * poorer, image)


def _grey(image: Any, operation: str) -> Any:
    """Return the grey picture ``(..., 1, H, W)`` in floats; that of whole numbers without fractions."""
    x = _floats(image, operation)
    if x.shape[-3] == 1:
        return x
    red, green, blue = x.unbind(-3)
    found = (_GREY[0] * red + _GREY[1] * green + _GREY[2] * blue).unsqueeze(-3)
    return found if image.is_floating_point() else found.floor()


def brightness(image: Any, factor: Any) -> Any:
    """Return an image mixed with black."""
    return _restore_dtype(factor * _floats(image, "brightness(image, factor)"), image)


def contrast(image: Any, factor: Any) -> Any:
    """Return an image mixed with the mean of its grey picture."""
    return _mix_images(image, _grey(image, "contrast(image, factor)").mean((-3, -2, -1), keepdim=True), factor)


def saturation(image: Any, factor: Any) -> Any:
    """Return an image mixed with its grey picture."""
    found = _grey(image, "saturation(image, factor)")
    return image if image.shape[-3] == 1 else _mix_images(image, found, factor)


def grey(image: Any, channels: int = 1) -> Any:
    """Return the grey picture, with one channel or three alike."""
    found = _grey(image, "grey(image)").to(image.dtype)
    return found if channels == 1 else found.expand(*found.shape[:-3], channels, *found.shape[-2:])


def sharpness(image: Any, factor: Any) -> Any:
    """Return an image mixed with a blurred one; its border stays."""
    x = _floats(image, "sharpness(image, factor)")
    if min(image.shape[-2:]) <= 2:
        return image
    flat = x.reshape(-1, 1, *x.shape[-2:])
    kernel = like(x, np.full((1, 1, 3, 3), 1 / 13))
    blurred = F.conv2d(flat, kernel) + flat[..., 1:-1, 1:-1] * (4 / 13)
    blurred = blurred if image.is_floating_point() else blurred.round()
    blurred = F.pad(blurred, (1, 1, 1, 1)).reshape(x.shape)
    inner = F.pad(flow.ones_like(x[..., 1:-1, 1:-1]), (1, 1, 1, 1)) > 0
    return _mix_images(image, flow.where(inner, blurred, x), factor)


def hue(image: Any, shift: Any) -> Any:
    """Return an image whose hues are moved along the circle of colours by a share of it."""
    x = _floats(image, "hue(image, shift)")
    if image.shape[-3] == 1:
        return image
    white = white_value(image)
    red, green, blue = (x / white).unbind(-3)
    value = flow.maximum(flow.maximum(red, green), blue)
    span = value - flow.minimum(flow.minimum(red, green), blue)
    safe = flow.where(span == 0, 1.0, span)
    sixths = flow.where(  # from 0 at red, 2 at green, 4 at blue
        (red >= green) & (red >= blue),  # not `value == red`: a compiler may round the two differently
        (green - blue) / safe,
        flow.where(green >= blue, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    if isinstance(shift, flow.Tensor) and shift.ndim == x.ndim:
        shift = shift.squeeze(-3)
    turn = flow.remainder(sixths / 6 + shift, 1.0) * 6
    channels = []
    for n in (5, 3, 1):  # a channel falls from the value by the span, and rises again, along six sixths of the circle
        k = flow.remainder(n + turn, 6.0)
        channels.append(value - span * flow.minimum(k, 4 - k).clamp(0, 1))
    found = flow.stack(channels, -3)
    return found if image.is_floating_point() else (found * (white + 1 - 1e-3)).to(image.dtype)


def posterize(image: Any, bits: int) -> Any:
    """Return an image that keeps so many bits of each value."""
    if image.is_floating_point():
        levels = 2**bits
        return (image * levels).floor().clamp(0, levels - 1) / levels
    step = int(white_value(image) + 1) >> bits
    return (image.int() // step * step).to(image.dtype)


def solarize(image: Any, threshold: float) -> Any:
    """Return an image with values from a share of white on inverted."""
    return flow.where(image >= threshold * white_value(image), invert(image), image)


def invert(image: Any) -> Any:
    """Return the negative of an image."""
    return 1 - image if image.is_floating_point() else (white_value(image) - image.float()).to(image.dtype)


def autocontrast(image: Any) -> Any:
    """Return an image whose channels are stretched from black to white."""
    x = _floats(image, "autocontrast(image)")
    low, high = x.amin((-2, -1), keepdim=True), x.amax((-2, -1), keepdim=True)
    flat = high == low
    scale = flow.where(flat, 1.0, (high - low) * (1 / white_value(image)))
    return _restore_dtype((x - flow.where(flat, 0.0, low)) / scale, image)


def equalize(image: Any) -> Any:
    """Return an image whose channels have all values about equally often; of floats, in 256 steps."""
    floating = image.is_floating_point()
    values = (image * 255.999).long().clamp(0, 255) if floating else image.long()
    flat = values.reshape(-1, image.shape[-2] * image.shape[-1])  # (channels, pixels)
    steps = like(flat, np.arange(256)).long()
    counts = flow.zeros_like(flat[:, :1]).expand(-1, 256).scatter_add(1, flat, flow.ones_like(flat))
    there = steps * (counts > 0)
    of_last = counts.gather(1, there.argmax(1, keepdim=True))
    step = (flat.shape[1] - of_last) // 255
    until = counts.cumsum(1) - counts  # of smaller values
    table = ((until + step // 2) // step.clamp(min=1)).clamp(0, 255)
    found = flow.where(step == 0, flat, table.gather(1, flat)).reshape(image.shape)
    return (found / 255).to(image.dtype) if floating else found.to(image.dtype)
