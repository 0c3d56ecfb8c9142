"""Detection ops on boxes: `nms`, `roi_align` and `roi_pool`."""

from __future__ import annotations

import math
from operator import index as as_int

import numpy as np

from sbpjax._core.ops.layers import boxes as rules
from sbpjax._core.tensor.creation.convert import fetch_to_host
from sbpjax._core.tensor.dispatch import dispatch
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.indexing import with_layout_of


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the numbers of the boxes that no better one overlaps by more than a threshold, best first.

    Args:
        boxes: ``(K, 4)``: left, top, right, bottom.
        scores: ``(K,)``.
        iou_threshold: of the area that two boxes share to that of both.
    """
    return with_layout_of(
        rules.keep_boxes(fetch_to_host(boxes.detach()), fetch_to_host(scores.detach()), iou_threshold), boxes
    )


def roi_align(
    x: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """Return the means of bilinear samples in each bin of each box; see `_core.ops.layers.boxes.roi_align`.

    Where ``sampling_ratio`` is not positive, the boxes are read on the host for the number of samples that a bin needs.
    """
    most = 1
    if sampling_ratio <= 0 and rois.shape[0]:
        sizes = (fetch_to_host(rois.detach())[:, 3:5] - fetch_to_host(rois.detach())[:, 1:3]) * spatial_scale
        largest = np.maximum(sizes, 0 if aligned else 1).max(0)
        most = max(1, math.ceil(largest[1] / pooled_h), math.ceil(largest[0] / pooled_w))
    return dispatch.apply(
        rules.roi_align,
        x,
        rois,
        spatial_scale=float(spatial_scale),
        pooled_h=as_int(pooled_h),
        pooled_w=as_int(pooled_w),
        sampling_ratio=as_int(sampling_ratio),
        aligned=aligned,
        most=most,
    )


def roi_pool(x: Tensor, rois: Tensor, spatial_scale: float, pooled_h: int, pooled_w: int) -> Tensor:
    """Return the largest pixel in each bin of each box; see `_core.ops.layers.boxes.roi_pool`."""
    attributes = {"spatial_scale": float(spatial_scale), "pooled_h": as_int(pooled_h), "pooled_w": as_int(pooled_w)}
    return dispatch.apply(rules.roi_pool, x, rois, **attributes)
