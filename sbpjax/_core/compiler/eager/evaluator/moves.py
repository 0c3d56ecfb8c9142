"""Primitives that move elements, in NumPy: views where it has them; gather, scatter and slices at given positions."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from jax.lax import GatherScatterMode

from .pointwise import is_half, rule


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


@rule("dynamic_slice")
def dynamic_slice(x, *starts, slice_sizes, **_):
    return x[_region(x.shape, starts, slice_sizes)]


@rule("dynamic_update_slice")
def dynamic_update_slice(x, update, *starts, **_):
    out = x.copy()
    out[_region(x.shape, starts, update.shape)] = update
    return out


def _region(shape, starts, sizes):
    """Return slices of some sizes that begin at the given positions, moved inside the array."""
    firsts = [min(max(int(start), 0), n - size) for n, start, size in zip(shape, starts, sizes, strict=True)]
    return tuple([slice(first, first + size) for first, size in zip(firsts, sizes, strict=True)])


def _window_indices(shape, indices, sizes, index_map, batching_dims, index_batching_dims, mode):
    """Return an index array for each dim of an operand, and where a whole window is inside it.

    The index arrays broadcast to (dims of `indices` but the last, dims of a window).
    """
    many = indices.ndim - 1
    starts = {dim: indices[..., k].astype(np.int64) for k, dim in enumerate(index_map)}
    inside = np.ones(indices.shape[:-1], bool)
    clip = mode == GatherScatterMode.CLIP
    for dim, start in starts.items():
        last = shape[dim] - sizes[dim]
        if clip:
            starts[dim] = np.clip(start, 0, last)
        else:
            inside &= (start >= 0) & (start <= last)
    found = []
    for dim, size in enumerate(sizes):
        window = [1] * (many + len(sizes))
        window[many + dim] = size
        index = np.arange(size).reshape(window)
        if dim in starts:
            start = starts[dim] if clip else np.where(inside, starts[dim], 0)
            index = index + start.reshape(start.shape + (1,) * len(sizes))
        elif dim in batching_dims:
            axis = index_batching_dims[batching_dims.index(dim)]
            number = [1] * (many + len(sizes))
            number[axis] = indices.shape[axis]
            index = index + np.arange(indices.shape[axis]).reshape(number)
        found.append(index)
    return tuple(found), inside


@rule("gather")
def gather(x, indices, dimension_numbers, slice_sizes, mode, fill_value, **_):
    numbers = dimension_numbers
    where, inside = _window_indices(
        x.shape, indices, slice_sizes, numbers.start_index_map, numbers.operand_batching_dims,
        numbers.start_indices_batching_dims, mode,
    )  # fmt: skip
    many = indices.ndim - 1
    if 0 in x.shape:
        picked = np.zeros(
            np.broadcast_shapes(*[i.shape for i in where], inside.shape + (1,) * len(slice_sizes)), x.dtype
        )
    else:
        picked = x[where]
    if mode == GatherScatterMode.FILL_OR_DROP and not inside.all():
        picked = np.where(inside.reshape(inside.shape + (1,) * len(slice_sizes)), picked, _fill(x.dtype, fill_value))
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    picked = np.broadcast_to(picked, inside.shape + tuple(slice_sizes))
    picked = picked.reshape(inside.shape + tuple([s for d, s in enumerate(slice_sizes) if d not in dropped]))
    return _spread_dims(picked, many, numbers.offset_dims)


def _fill(dtype, value):
    if value is not None:
        return np.asarray(value).astype(dtype)
    if dtype.kind == "b":
        return np.True_
    if dtype.kind == "i":
        return np.iinfo(dtype).min
    return np.iinfo(dtype).max if dtype.kind == "u" else np.array(np.nan).astype(dtype)


def _spread_dims(picked, many, offset_dims):
    """Move the window's dims, which are last, to `offset_dims`."""
    order, batch, window = [], iter(range(many)), iter(range(many, picked.ndim))
    for dim in range(picked.ndim):
        order.append(next(window) if dim in offset_dims else next(batch))
    return picked.transpose(order)


def _scatter(x, indices, updates, dimension_numbers, mode, write: Callable, **_):
    numbers = dimension_numbers
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    windows = iter(numbers.update_window_dims)
    sizes = [1 if dim in dropped else updates.shape[next(windows)] for dim in range(x.ndim)]
    where, inside = _window_indices(
        x.shape, indices, sizes, numbers.scatter_dims_to_operand_dims, numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims, mode,
    )  # fmt: skip
    batch = [dim for dim in range(updates.ndim) if dim not in numbers.update_window_dims]
    values = updates.transpose([*batch, *numbers.update_window_dims]).reshape(inside.shape + tuple(sizes))
    out = x.astype(np.float32) if is_half(x.dtype) and write is not _put else x.copy()
    if out.size and values.size:
        if inside.all():
            write(out, where, values.astype(out.dtype))
        else:
            shape = inside.shape + tuple(sizes)
            kept = np.broadcast_to(inside.reshape(inside.shape + (1,) * len(sizes)), shape)
            write(out, tuple([np.broadcast_to(index, shape)[kept] for index in where]), values[kept].astype(out.dtype))
    return out.astype(x.dtype, copy=False)


def _put(out, where, values):
    out[where] = values


_WRITES = {
    "scatter": _put, "scatter-add": np.add.at, "scatter-sub": np.subtract.at, "scatter-mul": np.multiply.at,
    "scatter-min": np.minimum.at, "scatter-max": np.maximum.at,
}  # fmt: skip
for name, write in _WRITES.items():
    rule(name, name.replace("-", "_"))(functools.partial(_scatter, write=write))
