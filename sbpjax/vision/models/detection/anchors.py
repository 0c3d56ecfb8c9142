"""Anchor boxes of detectors, computed once on the host."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def default_boxes(
    size: int,
    grids: Sequence[int] = (38, 19, 10, 5, 3, 1),
    steps: Sequence[int] = (8, 16, 32, 64, 100, 300),
    scales: Sequence[float] = (0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05),
    ratios: Sequence[Sequence[float]] = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,)),
) -> np.ndarray:
    """Return SSD's boxes ``(A, 4)``, left, top, right, bottom in pixels.

    Args:
        size: of the square image.
        grids: places in a row of each feature map.
        steps: pixels between places.
        scales: sides of a square box, as shares of the image; one more than maps.
        ratios: of other boxes' sides; each stands for the upright one as well.

    Example:
        >>> default_boxes(300).shape
        (8732, 4)
    """
    found = []
    for k, grid in enumerate(grids):
        sides = [(scales[k],) * 2, (math.sqrt(scales[k] * scales[k + 1]),) * 2]
        for ratio in ratios[k]:
            wide, narrow = scales[k] * math.sqrt(ratio), scales[k] / math.sqrt(ratio)
            sides += [(wide, narrow), (narrow, wide)]
        half = np.clip(np.array(sides, np.float32), 0, 1) / 2
        at = (np.arange(grid) + 0.5) / (size / steps[k])
        y, x = np.meshgrid(at, at, indexing="ij")
        centres = np.stack([x, y], -1).reshape(-1, 1, 2)
        found.append(np.concatenate([centres - half, centres + half], -1).reshape(-1, 4))
    return (np.concatenate(found) * size).astype(np.float32)


def grid_anchors(
    image: tuple[int, int],
    grids: Sequence[tuple[int, int]],
    sizes: Sequence[Sequence[float]],
    ratios: Sequence[float] = (0.5, 1.0, 2.0),
) -> list[np.ndarray]:
    """Return for each feature map its anchors ``(places * shapes, 4)`` in pixels, row by row of places.

    Args:
        image: its height and width.
        grids: height and width of each map.
        sizes: for each map, square roots of areas.
        ratios: quotients of height by width.

    Example:
        >>> [len(one) for one in grid_anchors((64, 64), [(8, 8), (4, 4)], [(32,), (64,)])]
        [192, 48]
    """
    found = []
    for (high, wide), some in zip(grids, sizes, strict=True):
        root = np.sqrt(np.array(ratios, np.float32))[:, None]
        areas = np.array(some, np.float32)[None]
        widths, heights = (areas / root).reshape(-1), (areas * root).reshape(-1)
        shapes = np.round(np.stack([-widths, -heights, widths, heights], 1) / 2)
        y, x = np.meshgrid(np.arange(high) * (image[0] // high), np.arange(wide) * (image[1] // wide), indexing="ij")
        shifts = np.stack([x, y, x, y], -1).reshape(-1, 1, 4)
        found.append((shifts + shapes).reshape(-1, 4).astype(np.float32))
    return found


def areas_by_level(first: Sequence[int] = (32, 64, 128, 256, 512)) -> list[tuple[int, ...]]:
    """Return three sizes for each level, a third of an octave apart, as RetinaNet has them.

    Example:
        >>> areas_by_level((32,))
        [(32, 40, 50)]
    """
    return [(x, int(x * 2 ** (1 / 3)), int(x * 2 ** (2 / 3))) for x in first]
