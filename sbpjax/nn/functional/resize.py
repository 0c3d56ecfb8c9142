"""Images resized, unfolded to columns and folded back, and channels exchanged for pixels."""

from __future__ import annotations

from typing import Any

from sbpjax.ops import resize as ops
from sbpjax.tensor import Tensor
from sbpjax.tensor.binding import hashable
from sbpjax.tensor.dispatch import run
from sbpjax.tensor.op import op_of


def _run(fn: Any, input: Tensor, **options: Any) -> Tensor:
    return run(op_of(fn, tuple((k, hashable(v)) for k, v in options.items())), (input,))


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Return `(N, C, ...)` with its dims behind the channels resized.

    Args:
        input: `(N, C, ...)`.
        size: the new sizes, a number or one per dim; or
        scale_factor: what the sizes are multiplied by.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"``, ``"bilinear"``, ``"bicubic"``, ``"trilinear"`` or
            ``"area"``.
        align_corners: let the corners' centres coincide rather than their edges.
        recompute_scale_factor: compute the scale anew from the rounded sizes.
    """
    return _run(
        ops.interpolate,
        input,
        size=size,
        scale_factor=scale_factor,
        mode=mode,
        align_corners=bool(align_corners),
        recompute_scale_factor=bool(recompute_scale_factor),
    )


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the patches of images as columns: `(N, C, H, W)` becomes `(N, C * kh * kw, patches)`."""
    return _run(ops.unfold, input, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return images from columns of patches, overlapping cells added; the inverse shape of `unfold`."""
    options = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    return _run(ops.fold, input, output_size=output_size, **options)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return `(..., C r², H, W)` as `(..., C, H r, W r)`."""
    return _run(ops.pixel_shuffle, input, upscale_factor=upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return `(..., C, H r, W r)` as `(..., C r², H, W)`."""
    return _run(ops.pixel_unshuffle, input, downscale_factor=downscale_factor)
