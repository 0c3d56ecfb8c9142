"""Image layers: resizing, im2col (`Unfold`, `Fold`), pixel and channel shuffles."""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as F
from sbpjax._core.ops.dims import fail
from sbpjax._core.tensor import Tensor
from sbpjax.nn.module import Module


class Upsample(Module):
    """Resize the dims after the channels.

    Args:
        size: the new sizes, a number or one per dim; or
        scale_factor: the factor of the sizes.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"`` or ``"trilinear"``.
        align_corners: let the corners' centres coincide rather than their edges.
        recompute_scale_factor: compute the scale anew from the rounded sizes.

    Returns:
        ``(N, C, ...)``. Splits of the batch and the channels stay; a partial sum stays one.

    Example:
        >>> flow.nn.Upsample(scale_factor=2)(flow.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size, self.mode, self.align_corners = size, mode, align_corners
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(float(f) for f in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        how = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{how}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resize `(N, C, H, W)` by the nearest pixels.

    Args:
        size: the new height and width; or
        scale_factor: the factor of both.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resize `(N, C, H, W)` linearly between pixels, corners aligned.

    Args:
        size: the new height and width; or
        scale_factor: the factor of both.
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """`(..., C r², H, W)` to `(..., C, H r, W r)`.

    Args:
        upscale_factor: r.
        h_upscale_factor: with the next one instead of r, how much higher, as in OneFlow.
        w_upscale_factor: how much wider.

    Returns:
        Splits of the batch stay; a partial sum stays one.

    Example:
        >>> flow.nn.PixelShuffle(2)(flow.arange(4.0).reshape(1, 4, 1, 1)).tolist()
        [[[[0.0, 1.0], [2.0, 3.0]]]]
    """

    def __init__(
        self,
        upscale_factor: int | None = None,
        h_upscale_factor: int | None = None,
        w_upscale_factor: int | None = None,
    ):
        super().__init__()
        given = upscale_factor is not None, h_upscale_factor is not None, w_upscale_factor is not None
        if given not in ((True, False, False), (False, True, True)):
            seen = f"{upscale_factor}, {h_upscale_factor}, {w_upscale_factor}"
            rule = "either upscale_factor is given, or h_upscale_factor and w_upscale_factor"
            fail("value", "nn.PixelShuffle(...)", seen, rule, "nn.PixelShuffle(2)")
        self.upscale_factor: Any = upscale_factor if given[0] else (h_upscale_factor, w_upscale_factor)

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """`(..., C, H r, W r)` to `(..., C r², H, W)`.

    Args:
        downscale_factor: r.
    """

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Deal the channels of `(N, C, ...)` out to groups in turn.

    Args:
        groups: the number of groups; divides C.
    """

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Unfold(Module):
    """The patches of `(N, C, H, W)` as columns `(N, C * kh * kw, patches)`.

    Args:
        kernel_size: size of a patch.
        dilation: distance of its cells.
        padding: zeros added on both sides.
        stride: distance of the patches.
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Columns of patches as images `(N, C, *output_size)`, overlapping cells added.

    Args:
        output_size: height and width of the images.
        kernel_size: size of a patch.
        dilation: distance of its cells.
        padding: zeros that were added on both sides.
        stride: distance of the patches.
    """

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
