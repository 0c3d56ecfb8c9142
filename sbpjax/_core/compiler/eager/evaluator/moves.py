"""Primitives that move elements, in NumPy: as views where NumPy has one."""

from __future__ import annotations

import numpy as np

from .pointwise import rule


@rule("reshape")
def reshape(x, new_sizes, dimensions=None, **_):
    return (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes)


@rule("squeeze")
def squeeze(x, dimensions, **_):
    return np.squeeze(x, tuple(dimensions))


@rule("transpose")
def transpose(x, permutation, **_):
    return x.transpose(permutation)


@rule("rev")
def rev(x, dimensions, **_):
    return np.flip(x, dimensions)


@rule("broadcast_in_dim")
def broadcast_in_dim(x, shape, broadcast_dimensions, **_):
    sizes = [1] * len(shape)
    for size, dim in zip(x.shape, broadcast_dimensions, strict=True):
        sizes[dim] = size
    return np.broadcast_to(x.reshape(sizes), shape)


@rule("iota")
def iota(dtype, shape, dimension, **_):
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(sizes), shape)


@rule("slice")
def slice_(x, start_indices, limit_indices, strides, **_):
    strides = strides or (1,) * x.ndim
    return x[tuple([slice(*ends) for ends in zip(start_indices, limit_indices, strides, strict=True)])]


@rule("concatenate")
def concatenate(*arrays, dimension, **_):
    return np.concatenate(arrays, dimension)


@rule("split")
def split(x, sizes, axis, **_):
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


@rule("pad")
def pad(x, value, padding_config, **_):
    sizes = [
        low + high + n + max(n - 1, 0) * inner for n, (low, high, inner) in zip(x.shape, padding_config, strict=True)
    ]
    out = np.full([max(size, 0) for size in sizes], value, x.dtype)
    source, target = [], []
    for n, size, (low, _, inner) in zip(x.shape, out.shape, padding_config, strict=True):
        step = inner + 1
        first = max(0, -(low // step))  # the first element that is not cut off
        last = min(n, (size - 1 - low) // step + 1)
        first = min(first, max(last, 0))
        source.append(slice(first, max(last, first)))
        target.append(
            slice(low + first * step, low + max(last - 1, first) * step + 1, step) if last > first else slice(0, 0)
        )
    out[tuple(target)] = x[tuple(source)]
    return out
