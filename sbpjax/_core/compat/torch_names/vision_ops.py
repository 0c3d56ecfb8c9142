"""Operators of torchvision's compiled library, `torch.ops.torchvision`, computed by sbpjax.

    torch.ops.torchvision.nms(boxes, scores, 0.5)       # the numbers of the boxes that stay, best first

`torchvision.ops` calls them with all arguments by position. Their backward is JAX's.
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.functions import nn as _nn
from sbpjax._core.functions.boxes import nms as nms
from sbpjax._core.functions.boxes import roi_align as roi_align
from sbpjax._core.functions.boxes import roi_pool as _pooled
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.handle.dtype import int32


def _cuda_version() -> int:
    """Return -1: there is no build for CUDA."""
    return -1


def roi_pool(input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int) -> Any:
    """Return the largest pixel in each bin of each box ``(K, C, h, w)``, and zeros for their places."""
    out = _pooled(input, rois, spatial_scale, pooled_height, pooled_width)
    return out, out.new_zeros(out.shape, dtype=int32)


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """Return the deformable convolution of ``(N, C, H, W)``; the groups follow from the shapes."""
    stride, padding, dilation = (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w)
    return _nn.deform_conv2d(input, offset, weight, bias, stride, padding, dilation, mask if use_mask else None)


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> Any:
    """Return the means of bilinear samples of each bin in the channels of its position, ``(K, C / (h w), h, w)``."""
    every = roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, True)
    return _own_channels(every, pooled_height, pooled_width)


def _own_channels(every: Tensor, height: int, width: int) -> Any:
    """Return of each bin the channels of its position, and the numbers of these channels."""
    kept = every.shape[1] // (height * width)
    bins = every.reshape(every.shape[0], kept, height * width, height * width)
    out = bins.diagonal(dim1=2, dim2=3).reshape(every.shape[0], kept, height, width)
    return out, out.new_zeros(out.shape, dtype=int32)
