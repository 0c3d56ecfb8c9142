"""Images resized, unfolded to columns and folded back, and channels exchanged for pixels."""

from __future__ import annotations

from operator import index as as_int
from typing import Any

from sbpjax.ops import resize as ops
from sbpjax.ops.dims import fail
from sbpjax.tensor import Tensor
from sbpjax.tensor.binding import hashable
from sbpjax.tensor.dispatch import run
from sbpjax.tensor.oneflow_arguments import take_oneflow
from sbpjax.tensor.op import op_of

from .channels import channels


def _run(fn: Any, input: Tensor, **options: Any) -> Tensor:
    return run(op_of(fn, tuple((k, hashable(v)) for k, v in options.items())), (input,))


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
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
        antialias: average over what an output element covers when an image shrinks (bilinear and bicubic modes).
    """
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        rule = (
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
        fail("value", f"interpolate(mode={mode!r})", f"align_corners={align_corners}", rule, "align_corners=None")
    return _run(
        ops.interpolate,
        input,
        size=size,
        scale_factor=scale_factor,
        mode=mode,
        align_corners=align_corners,
        recompute_scale_factor=recompute_scale_factor,
        antialias=antialias,
    )


@channels("data_format", last=False)
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the patches of images as columns: `(N, C, H, W)` becomes `(N, C * kh * kw, patches)`."""
    return _run(ops.unfold, input, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


@channels("data_format", last=False)
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return images from columns of patches, overlapping cells added; the inverse shape of `unfold`."""
    options = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    return _run(ops.fold, input, output_size=output_size, **options)


def pixel_shuffle(input: Tensor, upscale_factor: int | tuple[int, int]) -> Tensor:
    """Return `(..., C r², H, W)` as `(..., C, H r, W r)`; with a pair, by its own factor each way."""
    return _run(ops.pixel_shuffle, input, upscale_factor=upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return `(..., C, H r, W r)` as `(..., C r², H, W)`."""
    return _run(ops.pixel_unshuffle, input, downscale_factor=downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return `(N, C, ...)` with its channels dealt out to the groups in turn."""
    return _run(ops.channel_shuffle, input, groups=as_int(groups))


native_channel_shuffle = channel_shuffle


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Return `interpolate` of x; the older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Return `interpolate` of x with the nearest pixels; the older name."""
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Return `interpolate` of x, bilinear with aligned corners; the older name."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def interpolate_like(input: Tensor, like: Tensor, mode: str = "nearest", align_corners: bool | None = None) -> Tensor:
    """Return x resized to the sizes of the dims behind the channels of `like`."""
    return interpolate(input, tuple(like.shape[2:]), None, mode, align_corners)


take_oneflow(globals(), "nn.functional.")
