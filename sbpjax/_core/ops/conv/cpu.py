"""CPU convolutions: forms of `_core.ops.conv.primitive` for which XLA:CPU has fast code.

    in groups, few terms    the output is a sum of shifted images, each times a number per channel: depthwise ones
    in groups, few pixels   products of kernels with windows, see `_core.ops.conv.products`
    in groups, else         one group after the other, with channels as the last dim
    of one pixel            a product of the kernels with the pixels
    dense, few pixels       products of kernels with windows; else XLA's convolution
    gradient of kernels     one group after the other: a convolution of one channel, or a product with the windows

In milliseconds on one core, as XLA's operation and like this: a 3 x 3 depthwise convolution of (8, 64, 56, 56) 79 and
4, its kernels' gradient 68 and 10; 3 x 3 in 32 groups of (8, 256, 28, 28) 63 and 18, its kernels' gradient 9,300 and
20; of one pixel, 64 to 256 channels of (8, 64, 56, 56), 43 and 8, its kernels' gradient 102 and 8.

The gradient of the image is an output, too: of y, spread out by the strides, with each kernel reversed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from . import products as conv_products
from .products import windows

# A sum has so many terms at most: of kernels that read one channel, and of others.
_MOST_TAPS, _MOST_TERMS = 128, 40


def output(x, w, p, by_xla: Callable):
    """Return the output.

    Args:
        x: ``(N, C, ...)``.
        w: ``(O, C / groups, ...)``.
        p: the primitive's parameters.
        by_xla: the same by XLA's operation.
    """
    if p["groups"] == 1 and is_pointwise(p["window"], p["padding"]):
        pixels = x[:, :, *(slice(None, None, s) for s in p["strides"])]
        return _mix_channels(pixels, w.reshape(w.shape[:2]))
    counts = conv_products.sizes(p)
    if p["groups"] == 1 and not conv_products.has_few_outputs(x.shape[0], counts, w.shape[0]):
        return by_xla(x, w, p)
    if p["groups"] == 1 or (not _has_few_terms(w) and conv_products.fits(p, x.shape[0], counts, w.shape[1])):
        return conv_products.output(x, w, p, counts)
    padding = [(low, high, 0) for low, high in p["padding"]]
    return _convolve(x, w, strides=p["strides"], padding=padding, dilation=p["dilation"], groups=p["groups"])


def image(y, w, p, by_xla: Callable):
    """Return the gradient of the image, of that of the output `y`; other arguments as in `output`."""
    padding = input_padding(p, y.shape[2:])
    if p["groups"] == 1 and is_pointwise(p["window"], p["padding"]):
        return lax.pad(
            _mix_channels_transposed(y, w.reshape(w.shape[:2])), y.dtype.type(0), ((0, 0, 0), (0, 0, 0), *padding)
        )
    if p["groups"] == 1 and not conv_products.has_few_outputs(y.shape[0], y.shape[2:], w.shape[0]):
        return by_xla(y, w, p)
    turned = swap_channels(lax.rev(w, range(2, w.ndim)), p["groups"])
    if p["groups"] == 1 or (not _has_few_terms(turned) and conv_products.fits(p, y.shape[0], y.shape[2:], w.shape[1])):
        return conv_products.image(y, w, p)
    strides = (1,) * len(padding)
    return _convolve(y, turned, strides=strides, padding=padding, dilation=p["dilation"], groups=p["groups"])


def kernel(x, y, p, by_xla: Callable):
    """Return the gradient of the kernels.

    Args:
        x: ``(N, C, ...)``.
        y: ``(N, O, ...)``, the gradient of the output.
        p: the primitive's parameters.
        by_xla: the same by XLA's operation.
    """
    if p["groups"] == 1 and is_pointwise(p["window"], p["padding"]):
        pixels = x[:, :, *(slice(None, None, s) for s in p["strides"])]
        a, b = (v.reshape(*v.shape[:2], -1) for v in (y, pixels))
        if _is_large(a.shape[2], a.shape[1], b.shape[1]):
            found = lax.dot_general(a, b, (((2,), (2,)), ((0,), (0,)))).sum(0)
        else:
            found = lax.dot_general(a, b, (((0, 2), (0, 2)), ((), ())))
        return found.reshape(*found.shape, *p["window"])
    groups = p["groups"]
    if groups == 1:
        few = conv_products.has_few_outputs(x.shape[0], y.shape[2:], y.shape[1])
        return conv_products.kernel_gradient(x, y, p) if few else by_xla(x, y, p)
    images, outs = (jnp.moveaxis(a.reshape(a.shape[0], groups, -1, *a.shape[2:]), 1, 0) for a in (x, y))
    if images.shape[2] == 1:
        found = lax.map(lambda pair: by_xla(*pair, {**p, "groups": 1}), (images, outs))
        return found.reshape(-1, *found.shape[2:])
    pairs = lax.optimization_barrier((images, outs))
    return lax.map(lambda pair: conv_products.kernel_gradient(*pair, p), pairs).reshape(y.shape[1], -1, *p["window"])


def swap_channels(w, groups: int):
    """Return kernels ``(O, C / groups, ...)`` as ``(C, O / groups, ...)``."""
    parts = jnp.swapaxes(w.reshape(groups, -1, *w.shape[1:]), 1, 2)
    return parts.reshape(-1, parts.shape[2], *w.shape[2:])


def input_padding(p, sizes) -> list[tuple]:
    """Return low, high and interior padding of an output whose convolution is the gradient of the image."""
    found = []
    for n, m, k, s, d, (low, _) in zip(
        p["image"], sizes, p["window"], p["strides"], p["dilation"], p["padding"], strict=True
    ):
        before = d * (k - 1) - low
        found.append((before, n + low - s * (m - 1) - 1, s - 1))
    return found


def is_pointwise(window, padding) -> bool:
    """Return whether kernels have one element, and read nothing but the image."""
    return set(window) == {1} and not any(map(any, padding))


def _is_large(pixels: int, *channels: int) -> bool:
    """Return whether images have so many pixels that a product for each image is faster than one for all."""
    return pixels >= 2 * max(channels)


def _mix_channels(x, w):
    """Return pixels ``(N, C, ...)`` whose channels are mixed by a matrix ``(O, C)``."""
    pixels = x.reshape(*x.shape[:2], -1)
    if _is_large(pixels.shape[2], *w.shape):
        many = jnp.broadcast_to(w, (x.shape[0], *w.shape))
        out = lax.dot_general(many, pixels, (((2,), (1,)), ((0,), (0,))))
    else:
        out = jnp.swapaxes(lax.dot_general(w, pixels, (((1,), (1,)), ((), ()))), 0, 1)
    return out.reshape(x.shape[0], w.shape[0], *x.shape[2:])


def _mix_channels_transposed(y, w):
    """Return pixels ``(N, O, ...)`` whose channels are mixed by a matrix ``(O, C)`` turned round.

    A product that sums over the rows of its left operand is none of XLA:CPU's fast ones. With 2048 to 1024 channels of
    (2, 1024, 4, 4) it took 7.5 ms, and takes 4.8 ms with the pixels turned round.
    """
    pixels = y.reshape(*y.shape[:2], -1)
    if _is_large(pixels.shape[2], *w.shape):
        many = jnp.broadcast_to(w, (y.shape[0], *w.shape))
        out = lax.dot_general(many, pixels, (((1,), (1,)), ((0,), (0,))))
    else:
        rows = lax.optimization_barrier(jnp.swapaxes(pixels, 1, 2)).reshape(-1, y.shape[1])
        out = lax.dot_general(rows, w, (((1,), (0,)), ((), ())))
        out = jnp.swapaxes(out.reshape(y.shape[0], -1, w.shape[1]), 1, 2)
    return out.reshape(y.shape[0], w.shape[1], *y.shape[2:])


def _has_few_terms(w) -> bool:
    """Return whether the sum that is an output has few terms."""
    taps = math.prod(w.shape[2:])
    return taps * w.shape[1] <= _MOST_TERMS or (taps <= _MOST_TAPS and w.shape[1] == 1)


def _convolve(x, w, *, strides, padding, dilation, groups: int):
    """Return the output for an image that is padded by low, high and interior first."""

    def pad(x):
        return lax.pad(x, x.dtype.type(0), ((0, 0, 0), (0, 0, 0), *padding))

    if not _has_few_terms(w):
        return _group_by_group(pad(x), w, strides, dilation, groups)
    return run_isolated(lambda x, w: _sum_of_shifted(pad(x), w, strides, dilation, groups), x, w)


def _sum_of_shifted(padded, w, strides, dilation, groups: int):
    # The image is read once for every term: it must not be computed anew for each.
    padded = lax.optimization_barrier(padded)
    spans = [n - d * (k - 1) for n, d, k in zip(padded.shape[2:], dilation, w.shape[2:], strict=True)]
    counts = [(n - 1) // s + 1 for n, s in zip(spans, strides, strict=True)]
    images = padded.reshape(padded.shape[0], groups, 1, -1, *padded.shape[2:])
    numbers = w.reshape(1, groups, -1, *w.shape[1:])
    terms = [
        images[:, :, :, c, *window] * lax.expand_dims(numbers[:, :, :, c, *place], range(3, padded.ndim + 1))
        for place, window in windows(w.shape[2:], counts, strides, dilation)
        for c in range(w.shape[1])
    ]
    return functools.reduce(lax.add, terms).reshape(padded.shape[0], w.shape[0], *counts)


def _group_by_group(x, w, strides, dilation, groups: int):
    space = "DHW"[-(x.ndim - 2) :]
    numbers = ("N" + space + "C", space + "IO", "N" + space + "C")
    images = jnp.moveaxis(x.reshape(x.shape[0], groups, -1, *x.shape[2:]), (1, 2), (0, -1))
    kernels = jnp.moveaxis(w.reshape(groups, -1, *w.shape[1:]), (1, 2), (-1, -2))

    def one(pair):
        return lax.conv_general_dilated(*pair, strides, "VALID", rhs_dilation=dilation, dimension_numbers=numbers)

    found = lax.map(one, lax.optimization_barrier((images, kernels)))  # (groups, N, ..., O / groups)
    out = jnp.moveaxis(found, (0, -1), (1, 2))
    return out.reshape(x.shape[0], w.shape[0], *out.shape[3:])


def run_isolated(function: Callable, *operands):
    """Return a function's result of arrays (traced), computed by loops of its own.

    XLA:CPU (jaxlib 0.10) computes additions and products anew in each loop that reads them, however many they are, and
    drops every `optimization_barrier` before it fuses. Of a depthwise convolution, a sum of 49 products an element, the
    mean and the five other loops of a ConvNeXt block would each compute the 49. The result of a call is in memory
    before others read it, if the call is marked as not inlined.

    Args:
        function: gives one array.
        operands: its arguments.
    """
    (eqn,) = jax.make_jaxpr(jax.jit(function))(*operands).jaxpr.eqns
    # The mark is on the call alone: around the trace it would be on every operation of the function.
    with set_xla_metadata(inlineable="false"):
        (found,) = eqn.primitive.bind(*operands, **eqn.params)
    return found
