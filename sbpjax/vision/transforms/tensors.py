"""Geometric functions for tensors ``(..., C, H, W)``; integers are computed in float32 and rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import sbpjax as flow
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


def largest(image: Any) -> float:
    """Return the value of white: 255 of uint8, 1 of floats, True of masks."""
    if image.is_floating_point() or image.dtype == flow.bool:
        return 1.0
    return float(flow.iinfo(image.dtype).max)


def in_floats(image: Any, function: Callable[[Any], Any], clamp: bool) -> Any:
    """Return what a function of ``(N, C, H, W)`` floats gives, in shape and dtype of the image."""
    shape, dtype = tuple(image.shape), image.dtype
    x = image.reshape(-1, *shape[-3:])
    if dtype not in (flow.float32, flow.float64):
        x = x.float()
    x = function(x)
    if not dtype.is_floating_point:
        x = x.round()
        x = x.clamp(0, largest(image)) if clamp else x
    return x.to(dtype).reshape(*shape[:-2], *x.shape[-2:])


def resize_image(image: Any, height: int, width: int, interpolation: str, antialias: bool) -> Any:
    """Return an image of another size; see `geometry.resized`."""
    options = {} if interpolation.startswith("nearest") else {"align_corners": False, "antialias": antialias}
    size = (height, width)
    return in_floats(
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

    return in_floats(image, sample, False)
