"""Images resized, unfolded to columns and folded back, and channels exchanged for pixels."""

from __future__ import annotations

from typing import Any

from sbpjax.ops import resize as ops
from sbpjax.ops.dims import fail
from sbpjax.tensor import Tensor
from sbpjax.tensor.binding import hashable
from sbpjax.tensor.dispatch import run
from sbpjax.tensor.oneflow_arguments import take_oneflow
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

    Returns:
        ``(N, C, ...)``. Splits of the batch and the channels stay; a partial sum stays one.

    Raises:
        OpValueError: ``align_corners`` with a mode that has no corners.

    Example:
        >>> flow.nn.functional.interpolate(flow.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
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
