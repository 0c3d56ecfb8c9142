"""CPU convolutions as matrix products of whole kernels with windows (im2col).

With K = C / groups · window elements in a kernel of one output channel, and M outputs of all images in one channel:

    output    (O, K) · (K, M)   kernels in memory order, windows side by side
    input     (M, O) · (O, K)   kernels in memory order, then each window is added where it was read
    kernel    (O, M) · (M, K)   the gradient has the memory order of kernels

XLA:CPU turns kernels to ``(window, C, O)`` before its convolution and their gradient back after it, a loop that leaps
through memory: of the 512 x 512 x 3 x 3 kernels of a ResNet-18 for four images of 128 pixels that took 18 ms, twice as
long as all three convolutions. Here nothing moves but windows, and they are few where kernels are large. In
milliseconds on one core, as XLA's operation, like this, and in PyTorch (kernels of one layer, still in the cache):

    (4, 512, 4, 4) to 512 channels, 3 x 3   output 8.2, 2.4, 3.2   input 7.8, 2.7, 3.6   kernel 13.4, 3.2, 5.7
    (4, 256, 8, 8) to 256 channels, 3 x 3   output 3.3, 2.6, 2.0   input 3.2, 2.5, 2.1   kernel 3.5, 2.8, 2.8
    (2, 888, 4, 4) in 37 groups, 3 x 3      output 1.4, 0.5, 0.5   input 1.0, 0.5, 0.5
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import jax.numpy as jnp
from jax import lax

# Elements of the windows: of one group, of all groups at once, and of all where they are added to an image.
_GROUP, _AT_ONCE, _ADDED = 1 << 18, 1 << 19, 1 << 21


def has_few_outputs(images: int, counts: Sequence[int], channels: int) -> bool:
    """Return whether the outputs of dense kernels are so few that products are faster than XLA's convolution.

    Args:
        images: their number, N.
        counts: spatial sizes of the output.
        channels: of the output, O.
    """
    return images * math.prod(counts) <= 2 * channels


def sizes(p) -> tuple:
    """Return the spatial sizes of the output."""
    return outputs(p["image"], p["window"], p["strides"], p["padding"], p["dilation"])


def outputs(image, window, strides, padding, dilation) -> tuple:
    """Return the spatial sizes of the output, of one number, or pair of padding, per spatial dim."""
    dims = zip(image, window, strides, padding, dilation, strict=True)
    return tuple((n + low + high - d * (k - 1) - 1) // s + 1 for n, k, s, (low, high), d in dims)


def fits(p, images: int, counts: Sequence[int], channels: int) -> bool:
    """Return whether products are faster for kernels in groups.

    Args:
        p: the primitive's parameters.
        images: their number, N.
        counts: spatial sizes of the output of the forward convolution.
        channels: that a kernel reads, C / groups.
    """
    size = channels * math.prod(p["window"]) * images * math.prod(counts)
    return size * p["groups"] <= _ADDED if p["kind"] == "input" else size <= _GROUP


def output(x, w, p, counts):
    """Return the output.

    Args:
        x: ``(N, C, ...)``.
        w: ``(O, C / groups, ...)``.
        p: the primitive's parameters.
        counts: spatial sizes of the output.
    """
    groups, images = p["groups"], x.shape[0]
    kernels = w.reshape(groups, w.shape[0] // groups, -1)
    if groups == 1:
        found = lax.dot_general(kernels[0], gather_windows(x, p, counts), (((1,), (0,)), ((), ())))
    elif math.prod(w.shape[1:]) * groups * images * math.prod(counts) <= _AT_ONCE:
        windows = gather_windows(x, p, counts).reshape(groups, kernels.shape[2], -1)
        found = lax.dot_general(kernels, windows, (((2,), (1,)), ((0,), (0,))))
    else:
        parts = lax.optimization_barrier(jnp.moveaxis(x.reshape(images, groups, -1, *x.shape[2:]), 1, 0))
        found = lax.map(lambda pair: pair[1] @ gather_windows(pair[0], p, counts), (parts, kernels))
    return jnp.swapaxes(found.reshape(w.shape[0], images, *counts), 0, 1)


def image(y, w, p):
    """Return the gradient of the image, of that of the output `y`; other arguments as in `output`."""
    groups, counts = p["groups"], y.shape[2:]
    if groups == 1:
        outs = lax.optimization_barrier(jnp.moveaxis(y, 1, -1)).reshape(-1, y.shape[1])
        found = lax.dot_general(outs, w.reshape(w.shape[0], -1), (((1,), (0,)), ((), ())))
        windows = lax.optimization_barrier(found.reshape(y.shape[0], *counts, w.shape[1], *p["window"]))
        return jnp.moveaxis(_add_windows(windows, p, counts, 1), -1, 1)
    outs = lax.optimization_barrier(jnp.swapaxes(y, 0, 1)).reshape(groups, y.shape[1] // groups, -1)
    kernels = w.reshape(groups, w.shape[0] // groups, -1)
    found = lax.dot_general(kernels, outs, (((1,), (1,)), ((0,), (0,))))  # (groups, K, M)
    windows = found.reshape(-1, *p["window"], y.shape[0], *counts)
    windows = jnp.moveaxis(windows, range(1, 1 + len(counts)), range(-len(counts), 0))
    return jnp.swapaxes(_add_windows(lax.optimization_barrier(windows), p, counts, 2), 0, 1)


def kernel_gradient(x, y, p):
    """Return the gradient of dense kernels, of that of the output `y`; other arguments as in `output`."""
    outs = lax.optimization_barrier(jnp.swapaxes(y, 0, 1)).reshape(y.shape[1], -1)
    found = lax.dot_general(outs, gather_windows(x, p, y.shape[2:]), (((1,), (1,)), ((), ())))
    return found.reshape(y.shape[1], x.shape[1], *p["window"])


def gather_windows(x, p, counts):
    """Return the windows of the outputs of images ``(N, C, ...)``, ``(C · window, N · outputs)``."""
    ends = [(0, 0, 0)] * 2 + [(low, high, 0) for low, high in p["padding"]]
    # Read once for every element of the window: it must not be computed anew for each.
    padded = lax.optimization_barrier(lax.pad(jnp.swapaxes(x, 0, 1), x.dtype.type(0), ends))
    found = [padded[:, :, *window] for _, window in windows(p["window"], counts, p["strides"], p["dilation"])]
    # As a part of another loop the pieces would be chosen between for every element.
    return lax.optimization_barrier(jnp.stack(found, 1)).reshape(x.shape[1] * len(found), -1)


def windows(window, counts, strides, dilation) -> Iterator[tuple]:
    """Yield the place of each element of a kernel, and the part of a padded image's spatial dims that it reads."""
    for place in itertools.product(*map(range, window)):
        first = [d * k for d, k in zip(dilation, place, strict=True)]
        yield place, tuple(slice(f, f + s * (n - 1) + 1, s) for f, s, n in zip(first, strides, counts, strict=True))


def _add_windows(found, p, counts, first: int):
    """Return the sum of windows ``(..., window)``, each where it was read; their spatial dims begin at `first`."""
    terms = []
    for place, _ in windows(p["window"], counts, p["strides"], p["dilation"]):
        term = found[(..., *place)]
        ends = [(0, 0, 0)] * term.ndim
        sizes = zip(place, counts, p["image"], p["strides"], p["dilation"], p["padding"], strict=True)
        for i, (k, m, n, s, d, (low, _)) in enumerate(sizes):
            before = d * k - low
            ends[first + i] = (before, n - before - s * (m - 1) - 1, s - 1)
        terms.append(lax.pad(term, term.dtype.type(0), ends))
    return sum(terms[1:], terms[0])
