"""Window partition of feature maps, shifted windows and their masks, for Swin.

Every second block moves the map by half a window first, so that what was at an edge comes into the middle. Then the
last window of a row has tokens of both ends of the map, which must not see each other: `moved_mask`.
"""

from __future__ import annotations

import numpy as np

import sbpjax as flow


def cut(x: flow.Tensor, window: tuple[int, int]) -> flow.Tensor:
    """Return `(B, windows, tokens, D)` of a map `(B, H, W, D)`, row by row.

    Args:
        x: the map; its height and width are multiples of the window's.
        window: height and width of a window.

    Example:
        >>> from sbpjax.vision.models.blocks import windows
        >>> windows.cut(flow.zeros(2, 4, 6, 8), (2, 3)).shape
        sbpjax.Size([2, 4, 6, 8])
    """
    batch, height, width, depth = x.shape
    rows, columns = window
    x = x.reshape(batch, height // rows, rows, width // columns, columns, depth)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(batch, -1, rows * columns, depth)


def join_windows(x: flow.Tensor, window: tuple[int, int], size: tuple[int, int]) -> flow.Tensor:
    """Return the map `(B, H, W, D)` of windows `(B, windows, tokens, D)`: the inverse of `cut`.

    Args:
        x: the windows.
        window: height and width of a window.
        size: H and W.
    """
    (rows, columns), (height, width) = window, size
    x = x.reshape(x.shape[0], height // rows, width // columns, rows, columns, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(x.shape[0], height, width, -1)


def moved_mask(size: tuple[int, int], window: tuple[int, int], shift: tuple[int, int]) -> np.ndarray:
    """Return `(windows, tokens, tokens)`: 0 where one token may see another, else -100.

    Args:
        size: height and width of the map, multiples of the window's.
        window: height and width of a window.
        shift: by how much the map was moved up and to the left.

    Example:
        >>> from sbpjax.vision.models.blocks import windows
        >>> windows.moved_mask((1, 4), (1, 2), (0, 1))[1].tolist()
        [[0.0, -100.0], [-100.0, 0.0]]
    """
    region = np.zeros(size)
    for dim in (0, 1):
        place = np.arange(size[dim])
        part = (place >= size[dim] - window[dim]).astype(int) + (place >= size[dim] - shift[dim])
        part = part if shift[dim] else np.zeros_like(part)
        region += 3 ** (1 - dim) * (part[:, None] if dim == 0 else part[None])
    (rows, columns), (height, width) = window, size
    tokens = region.reshape(height // rows, rows, width // columns, columns).transpose(0, 2, 1, 3)
    tokens = tokens.reshape(-1, rows * columns)
    return np.where(tokens[:, None] == tokens[:, :, None], 0.0, -100.0).astype(np.float32)


def offsets(window: tuple[int, int]) -> np.ndarray:
    """Return the distance of each pair of tokens of a window, as one number from 0: `(tokens, tokens)`.

    Args:
        window: height and width.
    """
    rows, columns = (axis.ravel() for axis in np.mgrid[: window[0], : window[1]])
    down = rows[:, None] - rows[None] + window[0] - 1
    right = columns[:, None] - columns[None] + window[1] - 1
    return down * (2 * window[1] - 1) + right
