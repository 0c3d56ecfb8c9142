"""Image resizing: `interpolate`, `unfold` and `fold`, pixel and channel shuffles.

Every resize works on one spatial dim after the other: an output element is a weighted sum of a few input elements
whose places are known when the op is traced. Worked case: doubling `[a, b]` linearly reads at -0.25, 0.25, 0.75,
1.25, clamped to the ends: `[a, 0.75 a + 0.25 b, 0.25 a + 0.75 b, b]`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from sbpjax._core.runtime.sizes import check_bytes, check_memory

from ..dims import fail
from ..promote import cast, compute_dtype, is_float
from ..shapes.gather import take_rows
from .conv import _add_batch_dim, per_dim
from .pool import _adaptive_avg

# Patches of more cells are read by one gather per dim; the program would have an equation per cell.
_MANY_CELLS = 256
_RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def interpolate(
    x,
    /,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
):
    """Return x with its spatial dims resized.

    Args:
        x: ``(N, C, ...)`` with 1 to 3 spatial dims.
        size: the new size(s), or None.
        scale_factor: the factor(s), if no size is given; the new size is rounded down.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"``, ``"bilinear"``, ``"trilinear"``, ``"bicubic"`` or
            ``"area"``.
        align_corners: let the corner elements keep their places; only the linear and cubic modes take it.
        recompute_scale_factor: take the factor from the rounded size.
        antialias: average over the area of an output element when an image shrinks (bilinear and bicubic modes).

    Returns:
        ``(N, C, ...)``. Splits of the batch and the channels stay; a partial sum stays one.

    Raises:
        OpValueError: ``align_corners`` with a mode that has no corners; both or neither of ``size`` and
            ``scale_factor``; factors of another number of dims; ``recompute_scale_factor`` with a ``size``.
        OpTypeError: bytes with a mode that is not defined for them.

    Example:
        >>> flow.nn.functional.interpolate(flow.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    if align_corners is not None and mode in ("nearest", "nearest-exact", "area"):
        rule = (
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
        fail("value", f"interpolate(mode={mode!r})", f"align_corners={align_corners}", rule, "align_corners=None")
    n = x.ndim - 2
    if mode not in ("nearest", "nearest-exact", "area", *_RANKS) or _RANKS.get(mode, n) != n or not 1 <= n <= 3:
        fail(
            "value",
            f"interpolate(mode={mode!r})",
            f"x {x.shape}",
            'interpolation must be "nearest" or "bilinear" or "linear" or "area" or "bicubic" or "trilinear". '
            "It fits the number of spatial dims",
            "mode='nearest'",
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        rule = "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        fail("value", f"interpolate(mode={mode!r}, antialias=True)", f"x {x.shape}", rule, "antialias=False")
    if (size is None) == (scale_factor is None):
        fail(
            "value",
            "interpolate",
            f"size {size}, scale_factor {scale_factor}",
            "either size or scale_factor should be defined"
            if size is None
            else "only one of size or scale_factor should be defined",
            "size=...",
        )
    factors = [None] * n
    if size is None:
        given: Any = (scale_factor,) * n if isinstance(scale_factor, (int, float)) else scale_factor
        if isinstance(given, (tuple, list)) and len(given) != n:
            rule = "Input and scale_factor must have the same number of spatial dimensions"
            fail("value", f"interpolate(scale_factor={given})", f"x {x.shape}", rule, f"{n} factors, or one number")
        sizes = tuple(math.floor(s * f) for s, f in zip(x.shape[2:], given))
        factors = factors if recompute_scale_factor else list(given)
    else:
        if recompute_scale_factor:
            rule = "recompute_scale_factor is not meaningful with an explicit size"
            fail("value", f"interpolate(size={size})", "recompute_scale_factor=True", rule, "scale_factor=...")
        sizes = per_dim(size, n, "size")
    if min(sizes) < 1:
        rule = "Input and output sizes should be greater than 0"
        fail("value", f"interpolate(size={sizes})", f"x {x.shape}", rule, "a size of at least 1")
    if mode in ("linear", "trilinear", "area") and np.dtype(x.dtype).kind == "u":
        rule = "bytes are resized by nearest elements, or in two dims"
        fail("type", f"interpolate(mode={mode!r})", f"{x.dtype}{list(x.shape)}", rule, "x.float()")
    if mode == "area":
        return _adaptive_avg(x, n, sizes)
    dtype = x.dtype
    whole = not (mode.startswith("nearest") or is_float(dtype))  # images in bytes
    if not mode.startswith("nearest"):
        x = cast(x, np.int32 if whole else compute_dtype(dtype))
    for i in reversed(range(n)) if whole else range(n):
        given = (i + 2, sizes[i], factors[i], mode, align_corners)
        x = _resize_bytes(x, *given, antialias, np.iinfo(dtype)) if whole else _resize_floats(x, *given, antialias)
    return cast(x, dtype)


def _resize_floats(x, dim: int, size: int, factor: float | None, mode: str, align_corners: bool, antialias: bool):
    if not antialias:
        return _resize_dim(x, dim, size, factor, mode, align_corners)
    return _multiply_dim(x, dim, _smooth_weights(x.shape[dim], size, factor, mode, align_corners).astype(x.dtype))


def _multiply_dim(x, dim: int, matrix: np.ndarray):
    """Return x with a dim replaced by its product with a matrix ``(new, old)``."""
    out = lax.dot_general(x, matrix, (((dim,), (1,)), ((), ())))
    order = [*range(dim), x.ndim - 1, *range(dim, x.ndim - 1)]
    return lax.transpose(out, order)


def _resize_bytes(x, dim: int, size: int, factor, mode: str, align_corners: bool, antialias: bool, info: np.iinfo):
    """Return int32 x resized as PyTorch and Pillow resize bytes: by weights in 16 bits, rounded after each dim.

    The weights are multiples of ``2**-p``, with the largest ``p`` at which all of them are below ``2**15``.
    """
    old = x.shape[dim]
    if antialias:
        weights = _smooth_weights(old, size, factor, mode, align_corners)
    else:
        weights, rows = np.zeros((size, old)), np.arange(size)
        for at, share in _taps(old, size, factor, mode, align_corners):
            np.add.at(weights, (rows, np.clip(at, 0, old - 1)), share)
    most = weights.max()
    bits = next((p for p in range(22) if int(0.5 + most * (1 << (p + 1))) >= 1 << 15), 22)
    whole = np.trunc(weights * (1 << bits) + np.where(weights < 0, -0.5, 0.5)).astype(np.int32)
    total = lax.add(_multiply_dim(x, dim, whole), np.int32(1 << (bits - 1)))
    out = lax.shift_right_arithmetic(total, np.int32(bits))
    return lax.clamp(np.int32(info.min), out, np.int32(info.max))


def _smooth_weights(old: int, size: int, factor: float | None, mode: str, align_corners: bool | None) -> np.ndarray:
    """Return the weights ``(size, old)`` of a resize, which widen as the image shrinks; most of them are 0."""
    if align_corners:
        step = (old - 1) / (size - 1) if size > 1 else 0.0
    else:
        step = old / size if factor is None else 1.0 / factor
    wide = max(step, 1.0)
    reach = (1.0 if mode == "bilinear" else 2.0) * wide
    matrix = np.zeros((size, old))
    for i in range(size):
        centre = step * (i + 0.5)
        low, high = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), old)
        distance = np.abs((np.arange(low, high) - centre + 0.5) / wide)
        weights = np.maximum(1 - distance, 0) if mode == "bilinear" else _cubic_filter(distance)
        matrix[i, low:high] = weights / weights.sum()
    return matrix


def _cubic_filter(d):
    a = -0.5
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d < 1, near, np.where(d < 2, far, 0.0))


def _resize_dim(x, dim: int, size: int, factor: float | None, mode: str, align_corners: bool):
    old = x.shape[dim]
    step = old / size if factor is None else 1.0 / factor  # input elements per output element
    place = np.arange(size)
    if mode.startswith("nearest"):
        at = np.floor((place + (0.5 if mode == "nearest-exact" else 0.0)) * np.float32(step)).astype(int)
        at = np.minimum(at, old - 1)
        if size % old == 0 and (at == place // (size // old)).all():
            times = size // old
            wide = (*x.shape[: dim + 1], times, *x.shape[dim + 1 :])
            x = lax.broadcast_in_dim(x, wide, tuple(d + (d > dim) for d in range(x.ndim)))
            return lax.reshape(x, (*wide[:dim], size, *wide[dim + 2 :]))
        return take_rows(x, np.asarray(at, np.int32), dim)
    return _weight_taps(x, dim, _taps(old, size, factor, mode, align_corners), old)


def _taps(old: int, size: int, factor: float | None, mode: str, align_corners: bool | None) -> list:
    """Return the places and weights of a linear or cubic resize, one pair of vectors per neighbour."""
    place = np.arange(size)
    if align_corners:
        where = place * ((old - 1) / (size - 1) if size > 1 else 0.0)
    else:
        where = (place + 0.5) * (old / size if factor is None else 1.0 / factor) - 0.5
    if mode == "bicubic":
        return _cubic(where)
    where = np.maximum(where, 0.0)
    low = np.minimum(np.floor(where).astype(int), old - 1)
    share = where - low
    return [(low, 1.0 - share), (low + 1, share)]


def _cubic(where):
    """Return the places and weights of the cubic convolution with a = -0.75."""
    a = -0.75
    low = np.floor(where)
    t = where - low

    def near(d):
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d):
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    weights = (far(t + 1), near(t), near(1 - t), far(2 - t))
    return [(low.astype(int) + k - 1, w) for k, w in enumerate(weights)]


def _weight_taps(x, dim: int, taps, old: int):
    total = None
    for at, weight in taps:
        part = take_rows(x, np.clip(at, 0, old - 1).astype(np.int32), dim)
        sizes = tuple(len(at) if d == dim else 1 for d in range(x.ndim))
        part = lax.mul(part, np.asarray(weight, x.dtype).reshape(sizes))
        total = part if total is None else lax.add(total, part)
    return total


def _patch_geometry(sizes, kernel_size, dilation, padding, stride):
    kernel, dilation = per_dim(kernel_size, 2, "kernel_size"), per_dim(dilation, 2, "dilation")
    padding, stride = per_dim(padding, 2, "padding"), per_dim(stride, 2, "stride")
    for name, values, least in (
        ("kernel_size", kernel, 1), ("dilation", dilation, 1), ("padding", padding, 0), ("stride", stride, 1)
    ):  # fmt: skip
        if min(values) < least:
            rule = f"{name} should be at least {least}, but got {min(values)}"
            fail("value", f"unfold({name}={values})", f"{name}={values}", rule, f"{name}={least}")
    counts = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(sizes, kernel, dilation, padding, stride)
    )
    if min(counts) < 1:
        fail(
            "shape",
            f"unfold(kernel_size={kernel})",
            f"spatial sizes {tuple(sizes)}",
            "at least one patch fits",
            "a smaller kernel",
        )
    return kernel, dilation, padding, stride, counts


def _patch_places(kernel, dilation, stride, counts) -> list[np.ndarray]:
    """Return for each dim the places that (cells of a kernel, patches) read."""
    check_memory("unfold or fold", [(shape, np.dtype(np.int32)) for shape in zip(kernel, counts, strict=True)])
    return [
        d * np.arange(k, dtype=np.int32)[:, None] + s * np.arange(c, dtype=np.int32)
        for k, d, s, c in zip(kernel, dilation, stride, counts, strict=True)
    ]


def unfold(x, /, kernel_size, dilation=1, padding=0, stride=1):
    """Return the patches of images as columns: (N, C, H, W) gives (N, C * kh * kw, number of patches).

    Args:
        kernel_size: size of a patch, a number or one per dim.
        stride: step of the patches.
        padding: zeros added on both sides.
        dilation: distance of a patch's cells.

    Returns:
        Splits of the batch and the channels stay; a partial sum stays one.

    Example:
        >>> flow.nn.functional.unfold(flow.arange(9.0).reshape(1, 1, 3, 3), 2)
        tensor([[[0., 1., 3., 4.],
                 [1., 2., 4., 5.],
                 [3., 4., 6., 7.],
                 [4., 5., 7., 8.]]])
    """
    x, single = _add_batch_dim(x, 2, "unfold")
    kernel, dilation, padding, stride, counts = _patch_geometry(x.shape[2:], kernel_size, dilation, padding, stride)
    columns = (x.shape[0], x.shape[1] * math.prod(kernel), math.prod(counts))
    check_bytes("unfold", columns, x.dtype)
    x = lax.pad(x, np.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0)] + [(p, p, 0) for p in padding])
    if math.prod(kernel) > _MANY_CELLS:
        for dim, places in zip((-2, -1), _patch_places(kernel, dilation, stride, counts), strict=True):
            x = jnp.take(x, places.ravel(), dim)
        x = lax.reshape(x, (*x.shape[:2], kernel[0], counts[0], kernel[1], counts[1]))
        out = lax.reshape(lax.transpose(x, (0, 1, 2, 4, 3, 5)), columns)
        return lax.squeeze(out, (0,)) if single else out
    parts = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            start = (i * dilation[0], j * dilation[1])
            stop = tuple(a + (c - 1) * s + 1 for a, c, s in zip(start, counts, stride))
            part = lax.slice(x, (0, 0, *start), (*x.shape[:2], *stop), (1, 1, *stride))
            parts.append(lax.expand_dims(part, (2,)))
    out = lax.concatenate(parts, 2) if len(parts) > 1 else parts[0]
    out = lax.reshape(out, columns)
    return lax.squeeze(out, (0,)) if single else out


def fold(x, /, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Return images from columns of patches, overlapping parts added: (N, C * kh * kw, L) gives (N, C, H, W).

    Args:
        output_size: the sizes H and W.
        kernel_size: size of a patch, a number or one per dim.
        stride: step of the patches.
        padding: cells cut from both sides.
        dilation: distance of a patch's cells.

    Returns:
        Splits of the batch stay; a partial sum stays one.

    Example:
        >>> flow.nn.functional.fold(flow.ones(1, 4, 4), 3, 2)
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
    """
    single = x.ndim == 2
    x = lax.expand_dims(x, (0,)) if single else x
    sizes = per_dim(output_size, 2, "output_size")
    kernel, dilation, padding, stride, counts = _patch_geometry(sizes, kernel_size, dilation, padding, stride)
    if x.shape[1] % math.prod(kernel) or x.shape[2] != math.prod(counts):
        fail(
            "shape",
            f"fold(output_size={sizes})",
            f"x {x.shape}",
            f"x is (N, C * {math.prod(kernel)}, {math.prod(counts)})",
            "check output_size and kernel_size",
        )
    parts = lax.reshape(x, (x.shape[0], x.shape[1] // math.prod(kernel), math.prod(kernel), *counts))
    if math.prod(kernel) > _MANY_CELLS:
        rows, columns = _patch_places(kernel, dilation, stride, counts)
        image = [n + 2 * p for n, p in zip(sizes, padding, strict=True)]
        parts = lax.reshape(parts, (*parts.shape[:2], *kernel, *counts))
        parts = lax.reshape(lax.transpose(parts, (0, 1, 2, 4, 3, 5)), (*parts.shape[:2], rows.size, columns.size))
        total = jnp.zeros((*parts.shape[:2], image[0], columns.size), x.dtype).at[:, :, rows.ravel()].add(parts)
        total = jnp.zeros((*parts.shape[:2], *image), x.dtype).at[..., columns.ravel()].add(total)
        total = total[:, :, padding[0] : image[0] - padding[0], padding[1] : image[1] - padding[1]]
        return lax.squeeze(total, (0,)) if single else total
    pieces = []
    for k in range(math.prod(kernel)):
        part = lax.squeeze(lax.slice_in_dim(parts, k, k + 1, axis=2), (2,))
        start = tuple(i * d - p for i, d, p in zip(divmod(k, kernel[1]), dilation, padding))
        ends = [(a, n - a - (c - 1) * s - 1, s - 1) for a, n, c, s in zip(start, sizes, counts, stride)]
        pieces.append(lax.pad(part, np.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *ends]))
    total = functools.reduce(lax.add, pieces)
    return lax.squeeze(total, (0,)) if single else total


def pixel_shuffle(x, /, upscale_factor: int | tuple[int, int]):
    """Return (..., C * a * b, H, W) as (..., C, H * a, W * b); one factor is both.

    Args:
        upscale_factor: how much higher and wider, a number or two.

    Returns:
        Splits of the batch stay; a partial sum stays one.

    Example:
        >>> flow.nn.functional.pixel_shuffle(flow.arange(4.0).reshape(1, 4, 1, 1), 2)
        tensor([[[[0., 1.],
                  [2., 3.]]]])
    """
    a, b = (upscale_factor, upscale_factor) if isinstance(upscale_factor, int) else upscale_factor
    *lead, c, h, w = x.shape
    if a * b <= 0 or c % (a * b):
        operation = f"pixel_shuffle({upscale_factor})"
        product = "(upscale_factor * upscale_factor) or (h_upscale_factor * w_upscale_factor)"
        rule = f"The channels of input tensor must be divisible by {product}: {a * b} here"
        fail("shape", operation, f"x {x.shape}", rule, "another factor")
    n = len(lead)
    x = lax.reshape(x, (*lead, c // (a * b), a, b, h, w))
    x = lax.transpose(x, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return lax.reshape(x, (*lead, c // (a * b), h * a, w * b))


def pixel_unshuffle(x, /, downscale_factor: int):
    """Return (..., C, H * r, W * r) as (..., C * r², H, W)."""
    r = downscale_factor
    *lead, c, h, w = x.shape
    if h % r or w % r:
        fail("shape", f"pixel_unshuffle({r})", f"x {x.shape}", f"height and width divide by {r}", "another factor")
    n = len(lead)
    x = lax.reshape(x, (*lead, c, h // r, r, w // r, r))
    x = lax.transpose(x, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return lax.reshape(x, (*lead, c * r * r, h // r, w // r))


def channel_shuffle(x, /, groups: int):
    """Return x with its channels dealt out to ``groups`` in turn."""
    n, c, *rest = x.shape
    if groups < 1 or c % groups:
        rule = f"number of channels must be divisible by groups: {c} channels and {groups} groups"
        fail("shape", f"channel_shuffle({groups})", f"x {x.shape}", rule, "groups=1")
    x = lax.reshape(x, (n, groups, c // groups, *rest))
    return lax.reshape(lax.transpose(x, (0, 2, 1, *range(3, len(rest) + 3))), (n, c, *rest))
