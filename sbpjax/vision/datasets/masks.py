"""Decoding of COCO's segmentation masks: polygons and run-length encodings.

A run-length code counts pixels outside, then inside, then outside …, down the first column, then down the second. In
letters, a count is written in steps of five bits, the lowest first, each a letter from "0" on, and from the third on as
the difference to the count two places before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbpjax.errors import DataError


def mask_of(segmentation: Any, height: int, width: int, operation: str = "mask_of(segmentation)") -> np.ndarray:
    """Return a mask ``(height, width)`` bool.

    Args:
        segmentation: a list of polygons ``[x, y, x, y, …]``, or ``{"size": [height, width], "counts": …}``.
        height: of the image.
        width: of the image.
        operation: the call that an error names.

    Raises:
        DataError: it is of another form, or of another size.

    Example:
        >>> mask_of({"size": [2, 2], "counts": [1, 2, 1]}, 2, 2).astype(int)
        array([[0, 1],
               [1, 0]])
    """
    if isinstance(segmentation, dict):
        return _of_runs(segmentation, height, width, operation)
    found = np.zeros((height, width), bool)
    for polygon in segmentation:
        found |= _of_polygon(np.asarray(polygon, np.float64).reshape(-1, 2), height, width)
    return found


def _of_polygon(points: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return which pixels have their centre inside: to the right of an odd number of edges."""
    inside = np.zeros((height, width), bool)
    centres = np.arange(width) + 0.5
    for (x1, y1), (x2, y2) in zip(points, np.roll(points, -1, 0), strict=True):
        low, high = sorted((y1, y2))
        rows = np.arange(max(0, int(np.ceil(low - 0.5))), min(height, int(np.ceil(high - 0.5))))
        if len(rows):
            crossing = x1 + (rows + 0.5 - y1) * (x2 - x1) / (y2 - y1)
            inside[rows] ^= centres > crossing[:, None]
    return inside


def _of_runs(code: dict, height: int, width: int, operation: str) -> np.ndarray:
    counts = code.get("counts", [])
    if isinstance(counts, (str, bytes)):
        counts = _counts_of(counts if isinstance(counts, bytes) else counts.encode())
    counts = np.asarray(counts, np.int64)
    if list(code.get("size", [])) != [height, width] or counts.sum() != height * width or (counts < 0).any():
        seen = f"size {code.get('size')}, {int(counts.sum())} pixels; the image is {height} high and {width} wide"
        raise DataError(operation, seen, "runs are of all pixels of their image", "annotations and images of one set")
    inside = np.arange(len(counts)) % 2 == 1
    return np.repeat(inside, counts).reshape(width, height).T


def _counts_of(letters: bytes) -> list[int]:
    counts: list[int] = []
    value = bits = 0
    for letter in letters:
        step = letter - 48
        value |= (step & 31) << bits
        bits += 5
        if not step & 32:  # the last step of a count; its highest bit is the sign
            value -= (1 << bits) if step & 16 else 0
            counts.append(value + (counts[-2] if len(counts) > 2 else 0))
            value = bits = 0
    return counts
