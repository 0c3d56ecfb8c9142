"""Image sampling at given coordinates: affine grids, `grid_sample`, deformable convolution.

Worked case: `grid_sample` of a row `[a, b]` at x = 0 reads halfway: pixel 0.5 of 0 to 1 with ``align_corners``, so
``0.5 a + 0.5 b``. Every read is one gather along the flattened image per corner, so batch and channels split freely.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..dims import fail
from ..promote import INT64, cast
from ..shapes.gather import take_along
from .conv import per_dim


def affine_grid(theta, /, size: tuple[int, ...], align_corners: bool | None = None):
    """Return the places ``(N, [D,] H, W, n)`` that affine maps send the points of a regular grid to.

    Args:
        theta: ``(N, n, n + 1)``, n is 2 or 3.
        size: ``(N, C, [D,] H, W)`` of the image that will be made.
        align_corners: -1 and 1 are the centres of the corner pixels rather than their edges.
    """
    n = len(size) - 2
    if n not in (2, 3) or theta.shape != (size[0], n, n + 1) or min(size) < 1:
        fail(
            "value",
            "affine_grid",
            f"theta {theta.shape}, size {tuple(size)}",
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {tuple(size)}, sizes positive",
            "affine_grid(theta, (N, C, H, W))",
        )
    grid = tuple(size[2:])
    planes = []
    for i in reversed(range(n)):  # x runs along the last dim
        line = np.linspace(-1, 1, grid[i]) if grid[i] > 1 else np.zeros(1)
        line = line if align_corners else line * (grid[i] - 1) / grid[i]
        planes.append(np.broadcast_to(line.reshape([-1 if d == i else 1 for d in range(n)]), grid))
    points = np.stack([*planes, np.ones(grid)], -1).reshape(-1, n + 1)
    moved = lax.dot_general(theta, points.astype(theta.dtype), (((2,), (1,)), ((), ())))  # (N, n, points)
    return lax.reshape(lax.transpose(moved, (0, 2, 1)), (size[0], *grid, n))


def _pixels(coordinate, size: int, align_corners: bool):
    """Return coordinates in [-1, 1] as places in pixels."""
    if align_corners:
        return (coordinate + 1) * ((size - 1) / 2)
    return ((coordinate + 1) * size - 1) / 2


def _reflect(place, low: float, high: float):
    """Return places thrown back and forth between two mirrors."""
    if low == high:
        return lax.full_like(place, 0)
    span = high - low
    distance = jnp.abs(place - low)
    extra = distance - lax.stop_gradient(jnp.floor(distance / span)) * span
    turns = jnp.floor(lax.stop_gradient(distance) / span)
    even = turns - 2 * jnp.floor(turns / 2) == 0
    return jnp.where(even, extra + low, high - extra)


def _limit_places(place, size: int, padding_mode: str, align_corners: bool):
    """Return places moved into the image by the padding mode."""
    if padding_mode == "border":
        return _clip(place, size)
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        return _clip(_reflect(place, low, high), size)
    return place


def _clip(place, size: int):
    # no gradient at the border itself
    inside = (place > 0) & (place < size - 1)
    return jnp.where(inside, place, lax.stop_gradient(jnp.clip(place, 0, size - 1)))


def _indices(place, size: int):
    """Return whole places in a dim as ``(indices, inside)``; the index of a place outside is 0."""
    inside = (place >= 0) & (place <= size - 1)
    return cast(jnp.where(inside, place, 0), INT64), inside


def _read(x, indices):
    """Return ``x[n, c, *places]``, 0 outside; x is ``(N, C, *sizes)``, ``indices`` are `_indices` ``(N, points)``."""
    sizes = x.shape[2:]
    flat, inside = indices[0]
    for (index, within), size in zip(indices[1:], sizes[1:]):
        flat, inside = flat * size + index, inside & within
    shape = (*x.shape[:2], flat.shape[1])
    index = lax.broadcast_in_dim(flat, shape, (0, 2))
    values = take_along(lax.reshape(x, (*x.shape[:2], math.prod(sizes))), index, 2)
    return lax.select_n(lax.broadcast_in_dim(inside, shape, (0, 2)), lax.full_like(values, 0), values)


def _weigh(x, taps):
    """Return the sum of x read at every combination of taps, each times its weights.

    Args:
        x: ``(N, C, *sizes)``.
        taps: per dim, pairs of `_indices` and a weight, each ``(N, points)``. They are made once per dim, not once per
            combination: a cubic in two dims has 8 taps and 16 reads.
    """
    total = None
    for chosen in itertools.product(*taps):
        weight = functools.reduce(operator.mul, [weight for _, weight in chosen])
        part = _read(x, [indices for indices, _ in chosen]) * lax.expand_dims(cast(weight, x.dtype), (1,))
        total = part if total is None else total + part
    return total


def _linear(x, places):
    """Return x read at fractional places ``(N, points)`` per dim, linearly between pixels, 0 outside."""
    taps = []
    for place, size in zip(places, x.shape[2:]):
        low = lax.stop_gradient(jnp.floor(place))
        taps.append([(_indices(low, size), low + 1 - place), (_indices(low + 1, size), place - low)])
    return _weigh(x, taps)


def _cubic_weights(t):
    a = -0.75

    def near(d):
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d):
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _cubic(x, places, padding_mode: str, align_corners: bool):
    taps = []
    for place, size in zip(places, x.shape[2:]):
        low = lax.stop_gradient(jnp.floor(place))
        limited = [_limit_places(low + (k - 1), size, padding_mode, align_corners) for k in range(4)]
        taps.append([(_indices(at, size), w) for at, w in zip(limited, _cubic_weights(place - low))])
    return _weigh(x, taps)


def grid_sample(x, grid, /, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None):
    """Return x read at the places of a grid.

    Args:
        x: ``(N, C, H, W)`` or ``(N, C, D, H, W)``; splits of the batch and the channels need no communication.
        grid: ``(N, Ho, Wo, 2)`` or ``(N, Do, Ho, Wo, 3)``: places in [-1, 1], x first.
        mode: ``"bilinear"``, ``"nearest"`` or, for images, ``"bicubic"``.
        padding_mode: the values outside: ``"zeros"``, ``"border"`` or ``"reflection"``.
        align_corners: -1 and 1 are the centres of the corner pixels rather than their edges.

    Returns:
        ``(N, C, Ho, Wo)`` or ``(N, C, Do, Ho, Wo)``.

    Example:
        >>> x, grid = flow.arange(4.0).reshape(1, 1, 2, 2), flow.tensor([[[[0.0, 0.0], [-1.0, -1.0]]]])
        >>> flow.nn.functional.grid_sample(x, grid, align_corners=True)
        tensor([[[[1.5000, 0.0000]]]])
    """
    n = x.ndim - 2
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border", "reflection"):
        rule = "mode is 'bilinear', 'nearest' or 'bicubic'; padding_mode 'zeros', 'border' or 'reflection'"
        fail("value", "grid_sample", f"mode={mode!r}, padding_mode={padding_mode!r}", rule, "mode='bilinear'")
    seen = f"x {x.shape}, grid {grid.shape}"
    if n not in (2, 3) or grid.ndim != x.ndim or grid.shape[-1] != n or grid.shape[0] != x.shape[0]:
        rule = "input and grid have the same dims and batch, and the grid's last dim is the number of spatial dims"
        fail("shape", "grid_sample", seen, rule, "grid of (N, H, W, 2)")
    if mode == "bicubic" and n != 2:
        fail("shape", "grid_sample(mode='bicubic')", seen, "bicubic interpolation only supports 4D input", "bilinear")
    out = grid.shape[1:-1]
    points = lax.reshape(grid, (grid.shape[0], math.prod(out), n))
    places = []
    for i in range(n):
        coordinate = lax.squeeze(lax.slice_in_dim(points, n - 1 - i, n - i, axis=2), (2,))
        places.append(_pixels(coordinate, x.shape[2 + i], align_corners))
    if mode == "bicubic":
        values = _cubic(x, places, padding_mode, align_corners)
    else:
        places = [_limit_places(p, s, padding_mode, align_corners) for p, s in zip(places, x.shape[2:])]
        if mode == "nearest":
            nearest = [lax.round(p, lax.RoundingMethod.TO_NEAREST_EVEN) for p in places]
            values = _read(x, [_indices(p, s) for p, s in zip(nearest, x.shape[2:])])
        else:
            values = _linear(x, places)
    return lax.reshape(values, (*x.shape[:2], *out))


def deform_conv2d(x, offset, weight, bias=None, mask=None, /, stride=1, padding=0, dilation=1):
    """Return a convolution whose kernel's cells are moved by offsets, linearly between pixels.

    Args:
        x: ``(N, C, H, W)``.
        offset: ``(N, 2 * G * kh * kw, Ho, Wo)``: per offset group and cell how far down, and how far right.
        weight: ``(O, C / groups, kh, kw)``.
        bias: ``(O,)`` or None.
        mask: ``(N, G * kh * kw, Ho, Wo)``, a factor per read, or None.
        stride: number(s).
        padding: number(s).
        dilation: number(s).

    Source:
        Zhu et al., Deformable ConvNets v2, https://arxiv.org/abs/1811.11168
    """
    stride, padding, dilation = (
        per_dim(v, 2, k) for v, k in ((stride, "stride"), (padding, "padding"), (dilation, "dilation"))
    )
    batch, channels, *sizes = x.shape
    kernel, cells = weight.shape[2:], math.prod(weight.shape[2:])
    counts = tuple(
        (s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(sizes, padding, dilation, kernel, stride)
    )
    groups, moved = channels // weight.shape[1], offset.shape[1] // (2 * cells)
    if offset.shape != (batch, 2 * moved * cells, *counts) or moved < 1 or channels % moved or min(counts) < 1:
        rule = f"offset is (N, 2 * groups * {cells}, {counts[0]}, {counts[1]}) and its groups divide the channels"
        fail("shape", "deform_conv2d", f"x {x.shape}, offset {offset.shape}", rule, "offset of that shape")
    shift = lax.reshape(offset, (batch * moved, cells, 2, *counts))
    row, column = np.divmod(np.arange(cells), kernel[1])
    places = []
    for i, start in enumerate((row, column)):
        line = np.arange(counts[i]) * stride[i] - padding[i]
        base = start[:, None] * dilation[i] + line  # (cells, counts[i])
        base = np.broadcast_to(base[:, :, None] if i == 0 else base[:, None, :], (cells, *counts)).astype(x.dtype)
        own = lax.squeeze(lax.slice_in_dim(shift, i, i + 1, axis=2), (2,))
        places.append(lax.reshape(own + base, (batch * moved, cells * math.prod(counts))))
    image = lax.reshape(x, (batch * moved, channels // moved, *sizes))
    values = lax.reshape(_linear(image, places), (batch, moved, channels // moved, cells, *counts))
    if mask is not None:
        values = values * lax.expand_dims(lax.reshape(mask, (batch, moved, cells, *counts)), (2,))
    values = lax.reshape(values, (batch, groups, channels // groups * cells, *counts))
    kernels = lax.reshape(weight, (groups, weight.shape[0] // groups, weight.shape[1] * cells))
    out = lax.dot_general(kernels, values, (((2,), (2,)), ((0,), (1,))))  # (groups, O / groups, N, Ho, Wo)
    out = lax.reshape(lax.transpose(out, (2, 0, 1, 3, 4)), (batch, weight.shape[0], *counts))
    return out if bias is None else out + lax.broadcast_in_dim(bias, (1, bias.shape[0], 1, 1), (1,))
