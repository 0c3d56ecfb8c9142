"""Region pooling: `roi_align` and `roi_pool` of boxes on a feature map.

Worked case of `roi_pool`: a box from (0, 0) to (3, 3) covers four pixels in each direction. Pooled to 2 × 2, each bin
is the largest of 2 × 2 pixels; pooled to 3 × 3, a bin reaches from ``floor(4 i / 3)`` to ``ceil(4 (i + 1) / 3)``, so
that neighbours share pixels.
"""

from __future__ import annotations

from collections.abc import Sequence

import sbpjax as flow
from sbpjax import Tensor
from sbpjax._C import roi_align as _aligned
from sbpjax._C import roi_pool as _pooled
from sbpjax.errors import OpError, OpValueError


def roi_align(
    input: Tensor,
    boxes: Tensor | Sequence[Tensor],
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """Return the mean of bilinear samples in each bin of each box.

    Args:
        input: ``(N, C, H, W)``.
        boxes: ``(K, 5)``, the number of the image in front, or a list with ``(L, 4)`` for each image.
        output_size: bins from top to bottom and from left to right.
        spatial_scale: factor from coordinates of boxes to pixels of `input`.
        sampling_ratio: samples per bin in either direction; -1 for as many as a bin has pixels, which is read from
            the boxes' values, so in `nn.Graph` it is 1 or more.
        aligned: shift boxes by half a pixel, as Detectron2 does.

    Returns:
        ``(K, C, *output_size)``. Boxes take no gradient.

    Raises:
        OpError: shapes do not fit.

    Example:
        >>> image = flow.arange(16.0).reshape(1, 1, 4, 4)
        >>> roi_align(image, [flow.tensor([[0.0, 0.0, 2.0, 2.0]])], 1, sampling_ratio=2)
        tensor([[[[5.]]]])
    """
    rois = _number_boxes(f"roi_align(input, boxes, {output_size})", input, boxes)
    height, width = _two(output_size)
    return _aligned(input, rois, spatial_scale, height, width, sampling_ratio, aligned)


def roi_pool(
    input: Tensor,
    boxes: Tensor | Sequence[Tensor],
    output_size: int | tuple[int, int],
    spatial_scale: float = 1.0,
) -> Tensor:
    """Return the largest pixel in each bin of each box; 0 where a bin lies outside of the image.

    Args:
        input: ``(N, C, H, W)``.
        boxes: as of `roi_align`; the gradient goes to the pixels only.
        output_size: bins from top to bottom and from left to right.
        spatial_scale: factor from coordinates of boxes to pixels of `input`.

    Returns:
        ``(K, C, *output_size)``.

    Raises:
        OpError: shapes do not fit.

    Example:
        >>> image = flow.arange(16.0).reshape(1, 1, 4, 4)
        >>> roi_pool(image, flow.tensor([[0.0, 0.0, 0.0, 3.0, 3.0]]), 2)
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]])
    """
    rois = _number_boxes(f"roi_pool(input, boxes, {output_size})", input, boxes)
    return _pooled(input, rois, spatial_scale, *_two(output_size))


def _two(size: int | tuple[int, int]) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise OpValueError("output_size of regions", f"{size}", "there is one bin at least", "output_size=7")
    return height, width


def _number_boxes(operation: str, input: Tensor, boxes: Tensor | Sequence[Tensor]) -> Tensor:
    """Return boxes ``(K, 5)`` with the number of the image in front."""
    if not isinstance(boxes, Tensor):
        if len(boxes) != input.shape[0] or any(one.ndim != 2 or one.shape[1] != 4 for one in boxes):
            seen = f"input {tuple(input.shape)}, boxes {[tuple(one.shape) for one in boxes]}"
            raise OpError(operation, seen, "a list has boxes (L, 4) for each image", "one tensor per image")
        fronts = [flow.full_like(one[:, :1], float(i)) for i, one in enumerate(boxes)]
        boxes = flow.cat([flow.cat([front, one], 1) for front, one in zip(fronts, boxes, strict=True)])
    if input.ndim != 4 or boxes.ndim != 2 or boxes.shape[1] != 5:
        seen = f"input {tuple(input.shape)}, boxes {tuple(boxes.shape)}"
        raise OpError(operation, seen, "input is (N, C, H, W), boxes are (K, 5)", "put the image's number in front")
    return boxes
