"""Detection ops: `roi_align` (bilinear samples), `roi_pool` (maxima) and `keep_boxes` (non-maximum suppression).

Worked case: a box from (0, 0) to (4, 4) pooled to 2 × 2 with a sampling ratio of 2 reads, in each of its four bins of
2 × 2 pixels, the image at 0.5 and 1.5 in either direction, and takes the mean of the four values.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail


def roi_align(
    x,
    rois,
    /,
    spatial_scale: float = 1.0,
    pooled_h: int = 1,
    pooled_w: int = 1,
    sampling_ratio: int = -1,
    aligned: bool = False,
    most: int = 1,
):
    """Return ``(K, C, pooled_h, pooled_w)``: the mean of samples in each bin of each box.

    Args:
        x: images ``(N, C, H, W)``.
        rois: boxes ``(K, 5)``: the image's number, then left, top, right, bottom.
        spatial_scale: factor from box coordinates to pixels.
        pooled_h: bins from top to bottom.
        pooled_w: bins from left to right.
        sampling_ratio: samples per bin in either direction; where not positive, as many as a bin has pixels.
        aligned: shift boxes by half a pixel, so that pixels are areas and not points.
        most: the most samples that any bin takes in a direction, where ``sampling_ratio`` is not positive.
    """
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5:
        rule = "x is (N, C, H, W), rois are (K, 5)"
        fail("shape", "roi_align(x, rois)", f"x {x.shape}, rois {rois.shape}", rule, "put the image's number in front")
    wide = jnp.float32 if x.dtype.itemsize < 4 else x.dtype
    boxes = lax.stop_gradient(rois).astype(wide)
    shift = 0.5 if aligned else 0.0
    low = boxes[:, 1:3] * spatial_scale - shift  # left, top
    size = boxes[:, 3:5] * spatial_scale - shift - low
    size = size if aligned else jnp.maximum(size, 1.0)
    ys, wy = _places(low[:, 1], size[:, 1], pooled_h, sampling_ratio, most, x.shape[2])
    xs, wx = _places(low[:, 0], size[:, 0], pooled_w, sampling_ratio, most, x.shape[3])
    number = boxes[:, 0].astype(np.int32)[:, None, None]
    total = 0.0
    for iy, vy in zip(ys, wy, strict=True):  # the lower and the upper neighbour in each direction
        for ix, vx in zip(xs, wx, strict=True):
            rows = iy.reshape(iy.shape[0], -1)[:, :, None]
            columns = ix.reshape(ix.shape[0], -1)[:, None, :]
            picked = x[number, :, rows, columns].astype(wide)  # (K, bins * samples, bins * samples, C)
            weight = vy.reshape(vy.shape[0], -1)[:, :, None] * vx.reshape(vx.shape[0], -1)[:, None, :]
            total = total + picked * weight[..., None]
    k = rois.shape[0]
    total = total.reshape(k, pooled_h, -1, pooled_w, total.shape[2] // pooled_w, x.shape[1]).sum((2, 4))
    return jnp.moveaxis(total, -1, 1).astype(x.dtype)


def roi_pool(x, rois, /, spatial_scale: float = 1.0, pooled_h: int = 1, pooled_w: int = 1):
    """Return ``(K, C, pooled_h, pooled_w)``: the largest pixel in each bin of each box, 0 outside of the image.

    Box by box it finds the place of each maximum by columns, then by rows; one look-up reads all of them.

    Args:
        x: images ``(N, C, H, W)``.
        rois: boxes ``(K, 5)``: the image's number, then left, top, right, bottom.
        spatial_scale: factor from box coordinates to pixels.
        pooled_h: bins from top to bottom.
        pooled_w: bins from left to right.
    """
    bins, scale = (pooled_h, pooled_w), spatial_scale
    boxes = lax.stop_gradient(rois)
    number = boxes[:, 0].astype(jnp.int32)
    corners = jnp.sign(boxes[:, 1:]) * jnp.floor(jnp.abs(boxes[:, 1:] * scale) + 0.5)  # C rounds halves outwards
    still = lax.stop_gradient(x)

    def find_maxima(box):
        image, corner = still[box[0]], box[1]
        inside = [_bin_pixels(corner[i], corner[i + 2], bins[1 - i], x.shape[3 - i]) for i in (0, 1)]  # (bins, pixels)
        columns, rows = inside
        by_column = jnp.where(columns[:, None, None], image[None], -jnp.inf)  # (pooled_w, C, H, W)
        best, column = by_column.max(-1), by_column.argmax(-1)
        by_row = jnp.where(rows[:, None, None, :], best[None], -jnp.inf)  # (pooled_h, pooled_w, C, H)
        row = by_row.argmax(-1)
        column = jnp.take_along_axis(column[None], row[..., None], -1)[..., 0]
        empty = ~(rows.any(-1)[:, None] & columns.any(-1)[None])
        return row, column, empty

    row, column, empty = lax.map(find_maxima, (number, corners))  # (K, pooled_h, pooled_w, C), without C
    channel = jnp.arange(x.shape[1])
    found = x[number[:, None, None, None], channel, row, column]
    return jnp.moveaxis(jnp.where(empty[..., None], 0, found), -1, 1)


def _bin_pixels(start, end, bins: int, pixels: int):
    """Return ``(bins, pixels)``: which pixels each bin of one direction has."""
    size = jnp.maximum(end - start + 1, 1) / bins
    step = jnp.arange(bins, dtype=size.dtype)
    low = jnp.clip(jnp.floor(step * size) + start, 0, pixels)
    high = jnp.clip(jnp.ceil((step + 1) * size) + start, 0, pixels)
    at = jnp.arange(pixels, dtype=size.dtype)
    return (at >= low[:, None]) & (at < high[:, None])


def _places(low, size, bins: int, ratio: int, most: int, n: int):
    """Return the two pixels beside each sample ``(K, bins, samples)``, and their weights, which make the mean."""
    count = jnp.full(low.shape, ratio, low.dtype) if ratio > 0 else jnp.ceil(size / bins)
    samples = ratio if ratio > 0 else most
    step = np.arange(samples, dtype=np.float32)
    width = size / bins
    start = low[:, None, None] + np.arange(bins, dtype=np.float32)[None, :, None] * width[:, None, None]
    at = start + (step + 0.5)[None, None] * (width / jnp.maximum(count, 1))[:, None, None].astype(low.dtype)
    inside = (at >= -1.0) & (at <= n) & (step[None, None] < count[:, None, None])
    at = jnp.maximum(at, 0.0)
    first = jnp.minimum(jnp.floor(at), n - 1)
    at = jnp.where(first >= n - 1, first, at)
    part = at - first
    share = jnp.where(inside, 1.0 / jnp.maximum(count, 1)[:, None, None], 0.0).astype(low.dtype)
    lower = first.astype(np.int32)
    upper = jnp.minimum(lower + 1, n - 1)
    return (lower, upper), ((1 - part) * share, part * share)


def keep_boxes(boxes: np.ndarray, scores: np.ndarray, iou_threshold: float) -> np.ndarray:
    """Return the numbers of the boxes that no better one overlaps by more than a threshold, best first.

    Args:
        boxes: ``(K, 4)``: left, top, right, bottom, on the host.
        scores: ``(K,)``.
        iou_threshold: of the area that two boxes share to that of both.
    """
    order = np.argsort(-scores, kind="stable")
    boxes = boxes.astype(np.float64 if boxes.dtype == np.float64 else np.float32)
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while order.size:
        best, rest = order[0], order[1:]
        kept.append(best)
        low = np.maximum(boxes[best, :2], boxes[rest, :2])
        high = np.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = np.prod(np.maximum(high - low, 0), 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            overlap = shared / (area[best] + area[rest] - shared)
        order = rest[~(overlap > iou_threshold)]
    return np.array(kept, np.int64)
