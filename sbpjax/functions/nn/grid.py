"""Images read at places that a tensor names: affine grids, sampling, deformable convolution."""

from __future__ import annotations

from typing import Any

from sbpjax.errors import OpValueError, message
from sbpjax.ops import grid_sample as ops
from sbpjax.tensor import Tensor
from sbpjax.tensor.binding import hashable
from sbpjax.tensor.dispatch import apply


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Return the places that affine maps send the points of a regular grid to.

    Args:
        theta: `(N, 2, 3)` or `(N, 3, 4)`.
        size: `(N, C, H, W)` or `(N, C, D, H, W)` of the image that will be made.
        align_corners: -1 and 1 are the centres of the corner pixels rather than their edges.
    """
    if not theta.dtype.is_floating_point:
        rule = "Expected theta to have floating point type"
        raise OpValueError(message("affine_grid(theta, size)", f"theta of {theta.dtype.name}", rule, "theta.float()"))
    return affine_grid_generator(theta, size, bool(align_corners))


def affine_grid_generator(theta: Tensor, size, align_corners: bool) -> Tensor:
    """Return `affine_grid` of maps of any dtype."""
    static = (("size", tuple(int(n) for n in size)), ("align_corners", align_corners))
    return apply(ops.affine_grid, (theta,), static)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Return an image read at the places of a grid.

    Args:
        input: `(N, C, H, W)` or `(N, C, D, H, W)`; splits of the batch and the channels need no communication.
        grid: `(N, Ho, Wo, 2)` or `(N, Do, Ho, Wo, 3)`: places in [-1, 1], x first.
        mode: ``"bilinear"``, ``"nearest"`` or ``"bicubic"``.
        padding_mode: what lies outside: ``"zeros"``, ``"border"`` or ``"reflection"``.
        align_corners: -1 and 1 are the centres of the corner pixels rather than their edges.

    Returns:
        ``(N, C, Ho, Wo)`` or ``(N, C, Do, Ho, Wo)``.

    Example:
        >>> x, grid = flow.arange(4.0).reshape(1, 1, 2, 2), flow.tensor([[[[0.0, 0.0], [-1.0, -1.0]]]])
        >>> flow.nn.functional.grid_sample(x, grid, align_corners=True)
        tensor([[[[1.5000, 0.0000]]]])
    """
    static = (("mode", mode), ("padding_mode", padding_mode), ("align_corners", align_corners))
    return apply(ops.grid_sample, (input, grid), static)


def deform_conv2d(
    input: Tensor,
    offset: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = (1, 1),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    mask: Tensor | None = None,
) -> Tensor:
    """Return a convolution whose kernel's cells are moved by offsets.

    Args:
        input: `(N, C, H, W)`.
        offset: `(N, 2 * G * kh * kw, Ho, Wo)`: per offset group and cell how far down, and how far right.
        weight: `(O, C / groups, kh, kw)`.
        bias: `(O,)` or None.
        stride: step of the kernel.
        padding: zeros added on both sides.
        dilation: distance of the kernel's cells.
        mask: `(N, G * kh * kw, Ho, Wo)`, a factor per read, or None.
    """
    static = (("stride", hashable(stride)), ("padding", hashable(padding)), ("dilation", hashable(dilation)))
    return apply(ops.deform_conv2d, (input, offset, weight, bias, mask), static)
