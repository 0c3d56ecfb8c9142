"""View-like ops: reshape, permute, slice and split by static arguments.

Each is one or two lax equations that name their dims, so a split of any dim that keeps its full size passes through.
Worked case: `narrow(x, dim=0, start=2, length=4)` is one ``slice``; `repeat(x, (1, 3))` broadcasts a new dim beside
dim 1 only, dim 0 is not touched by the reshape that follows.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from jax import lax

from ..dims import expand_rule, fail, one, several


def _shape(sizes) -> tuple[int, ...]:
    return (int(sizes),) if isinstance(sizes, (int, np.integer)) else tuple(int(s) for s in sizes)


def reshape(x, /, shape):
    """Return x with the same elements in another shape; one size may be -1."""
    shape = _shape(shape)
    wild = [i for i, s in enumerate(shape) if s == -1]
    known = math.prod(s for s in shape if s != -1)
    if (
        len(wild) > 1
        or any(s < -1 for s in shape)
        or (wild and (known == 0 or x.size % known))
        or (not wild and known != x.size)
    ):
        fail(
            "shape",
            f"reshape(shape={shape})",
            f"x {x.shape} with {x.size} elements",
            f"the sizes multiply to {x.size}, with at most one -1",
            f"reshape(shape=({x.size},))",
        )
    if wild:
        shape = (*shape[: wild[0]], x.size // known, *shape[wild[0] + 1 :])
    return x if shape == x.shape else lax.reshape(x, shape)


def flatten(x, /, start_dim: int = 0, end_dim: int = -1):
    """Return x with the dims from start_dim to end_dim merged into one."""
    if x.ndim == 0:
        return lax.reshape(x, (1,))
    first, last = one(start_dim, x.ndim, "flatten"), one(end_dim, x.ndim, "flatten")
    if first > last:
        fail("value", f"flatten({start_dim}, {end_dim})", f"x {x.shape}", "start_dim is not after end_dim", "swap them")
    merged = math.prod(x.shape[first : last + 1])
    return x if first == last else lax.reshape(x, (*x.shape[:first], merged, *x.shape[last + 1 :]))


def ravel(x, /):
    """Return x as one dim."""
    return flatten(x)


def unflatten(x, /, dim: int, sizes):
    """Return x with one dim divided into ``sizes``, of which one may be -1."""
    dim = one(dim, x.ndim, "unflatten")
    sizes = _shape(sizes)
    known = math.prod(s for s in sizes if s != -1)
    sizes = tuple(x.shape[dim] // max(known, 1) if s == -1 else s for s in sizes)
    if math.prod(sizes) != x.shape[dim]:
        fail(
            "shape",
            f"unflatten(dim={dim}, sizes={sizes})",
            f"x {x.shape}",
            f"the sizes multiply to {x.shape[dim]}",
            "use -1",
        )
    return lax.reshape(x, (*x.shape[:dim], *sizes, *x.shape[dim + 1 :]))


def permute(x, /, dims):
    """Return x with its dims in the given order."""
    dims = _shape(dims)
    order = tuple(one(d, x.ndim, "permute") for d in dims)
    if sorted(order) != list(range(x.ndim)):
        fail(
            "shape",
            f"permute(dims={dims})",
            f"x {x.shape}",
            f"every one of the {x.ndim} dims is named once",
            f"permute(dims={tuple(range(x.ndim))[::-1]})",
        )
    return x if order == tuple(range(x.ndim)) else lax.transpose(x, order)


def transpose(x, /, dim0: int, dim1: int):
    """Return x with two dims swapped."""
    a, b = one(dim0, x.ndim, "transpose"), one(dim1, x.ndim, "transpose")
    order = list(range(x.ndim))
    if x.ndim:
        order[a], order[b] = order[b], order[a]
    return permute(x, tuple(order))


def swapaxes(x, /, axis0: int, axis1: int):
    """Return x with two dims swapped."""
    return transpose(x, axis0, axis1)


def t(x, /):
    """Return a matrix transposed; 0-d and 1-d tensors as they are."""
    if x.ndim > 2:
        fail("shape", "t(x)", f"x {x.shape}", f"x has at most 2 dims, got {x.ndim}", "use transpose or permute")
    return transpose(x, 0, 1) if x.ndim == 2 else x


def movedim(x, /, source, destination):
    """Return x with dims moved to new places, the others in their order."""
    source = several(_shape(source), x.ndim, "movedim")
    destination = several(_shape(destination), x.ndim, "movedim")
    if len(source) != len(destination):
        fail(
            "value", f"movedim({source}, {destination})", f"x {x.shape}", "both name equally many dims", "name as many"
        )
    order = [d for d in range(x.ndim) if d not in source]
    for to, d in sorted(zip(destination, source)):
        order.insert(to, d)
    return permute(x, tuple(order))


def expand(x, /, sizes):
    """Return x broadcast to ``sizes``: dims of size 1 grow, new dims come in front, -1 keeps a size."""
    sizes = _shape(sizes)
    new = len(sizes) - x.ndim
    full = tuple(x.shape[i - new] if s == -1 and i >= new else s for i, s in enumerate(sizes))
    if new < 0 or any(own not in (1, s) for own, s in zip(x.shape, full[max(new, 0) :])) or any(s < 0 for s in full):
        fail(
            "shape",
            f"expand({sizes})",
            f"x {x.shape}",
            expand_rule(x.shape, sizes),
            f"expand({x.shape})",
        )
    return x if full == x.shape else lax.broadcast_in_dim(x, full, tuple(range(new, len(full))))


def broadcast_to(x, /, shape):
    """Return x broadcast to ``shape``."""
    return expand(x, shape)


def squeeze(x, /, dim=None):
    """Return x without its dims of size 1, or without those of ``dim`` that have size 1."""
    dims = several(dim, x.ndim, "squeeze") if dim != () else ()
    gone = tuple(d for d in dims if x.shape[d] == 1)
    return lax.squeeze(x, gone) if gone else x


def unsqueeze(x, /, dim: int):
    """Return x with a new dim of size 1 at ``dim``."""
    return lax.expand_dims(x, (one(dim, x.ndim + 1, "unsqueeze"),))


def slice_dim(x, /, dim: int, start: int | None = None, stop: int | None = None, step: int = 1):
    """Return ``x[start:stop:step]`` along one dim, with Python's clipping; step > 0."""
    dim = one(dim, x.ndim, "slice")
    if step <= 0:
        fail("value", f"slice(step={step})", f"x {x.shape}", "the step is greater than zero", "flip the dim first")
    start, stop, _ = slice(start, stop, step).indices(x.shape[dim])
    stop = max(start, stop)
    if (start, stop, step) == (0, x.shape[dim], 1):
        return x
    return lax.slice_in_dim(x, start, stop, step, dim)


def narrow(x, /, dim: int, start: int, length: int):
    """Return ``length`` elements of a dim, from ``start`` on (negative: from the end)."""
    where = one(dim, x.ndim, "narrow")
    size = x.shape[where] if x.ndim else 0
    first = start + size if start < 0 else start
    if not (0 <= first and length >= 0 and first + length <= size and x.ndim):
        fail(
            "shape",
            f"narrow(dim={dim}, start={start}, length={length})",
            f"x {x.shape}",
            f"start ({start}) + length ({length}) stays within the dim's size {size}",
            f"narrow({dim}, 0, {size})",
        )
    return slice_dim(x, where, first, first + length)


def select(x, /, dim: int, index: int):
    """Return x at one index of a dim, without that dim."""
    where = one(dim, x.ndim, "select")
    size = x.shape[where] if x.ndim else 0
    if not -size <= index < size:
        fail(
            "index",
            f"select(dim={dim}, index={index})",
            f"x {x.shape}",
            f"the index is in [{-size}, {size - 1}]",
            f"an index below {size}",
        )
    index = index % size
    return lax.squeeze(slice_dim(x, where, index, index + 1), (where,))


def split_sizes(size: int, split_size) -> tuple[int, ...]:
    """Return the sizes of the parts of a dim: of ``split_size`` each (the last may be smaller), or as listed."""
    if isinstance(split_size, (tuple, list)):
        if sum(split_size) != size or min(split_size, default=0) < 0:
            fail(
                "shape",
                f"split({tuple(split_size)})",
                f"a dim of size {size}",
                f"split_with_sizes expects split_sizes to sum exactly to {size}, but got sum(split_sizes)="
                f"{sum(split_size)}",
                f"split([{size}])",
            )
        return tuple(split_size)
    if split_size < 0 or (split_size == 0 and size):
        fail(
            "shape", f"split({split_size})", f"a dim of size {size}", "the size of a part is positive", f"split({size})"
        )
    if size == 0:
        return (0,)
    return tuple(min(split_size, size - first) for first in range(0, size, split_size))


def _parts(x, dim: int, sizes):
    if sizes == (x.shape[dim],):
        return (x,)
    ends = itertools.accumulate(sizes)
    return tuple([lax.slice_in_dim(x, end - size, end, 1, dim) for size, end in zip(sizes, ends)])


def split(x, /, split_size, dim: int = 0):
    """Return the parts of x along a dim; see `split_sizes`."""
    dim = one(dim, x.ndim, "split")
    return _parts(x, dim, split_sizes(x.shape[dim], split_size))


def chunk_sizes(size: int, chunks: int) -> tuple[int, ...]:
    """Return the sizes of at most ``chunks`` parts of equal size, the last smaller."""
    if chunks <= 0:
        fail("value", f"chunk({chunks})", f"a dim of size {size}", "chunks is greater than 0", "chunk(1)")
    return (0,) * chunks if size == 0 else split_sizes(size, -(-size // chunks))


def chunk(x, /, chunks: int, dim: int = 0):
    """Return x in at most ``chunks`` parts along a dim."""
    dim = one(dim, x.ndim, "chunk")
    return _parts(x, dim, chunk_sizes(x.shape[dim], chunks))


def tensor_split(x, /, indices_or_sections, dim: int = 0):
    """Return x in exactly that many parts, the first ones larger by one, or cut at the given indices."""
    dim = one(dim, x.ndim, "tensor_split")
    size = x.shape[dim]
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        return _parts(x, dim, tuple(size // n + (i < size % n) for i in range(n)))
    cuts = [0, *indices_or_sections, size]
    return tuple(slice_dim(x, dim, a, b) for a, b in zip(cuts, cuts[1:]))


def unbind(x, /, dim: int = 0):
    """Return the slices of x along a dim, without it."""
    dim = one(dim, x.ndim, "unbind")
    return tuple(select(x, dim, i) for i in range(x.shape[dim]))


def unfold(x, /, dimension: int, size: int, step: int):
    """Return all windows of ``size`` elements along a dim, ``step`` apart, as a new last dim."""
    if x.ndim == 0:
        return lax.reshape(x, (1,))[:size]
    dim = one(dimension, x.ndim, "unfold")
    if size > x.shape[dim] or size < 0 or step <= 0:
        fail(
            "shape",
            f"unfold({dimension}, {size}, {step})",
            f"x {x.shape}",
            f"0 <= size <= {x.shape[dim]} and step > 0",
            f"unfold({dimension}, {x.shape[dim]}, 1)",
        )
    count = (x.shape[dim] - size) // step + 1
    if step == size:
        used = slice_dim(x, dim, 0, count * size)
        windows = lax.reshape(used, (*x.shape[:dim], count, size, *x.shape[dim + 1 :]))
        return movedim(windows, dim + 1, -1)
    starts = lax.mul(lax.broadcasted_iota(np.int64, (count, 1), 0), np.int64(step))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(d + (d >= dim) for d in range(x.ndim)), collapsed_slice_dims=(), start_index_map=(dim,)
    )
    sizes = (*x.shape[:dim], size, *x.shape[dim + 1 :])
    windows = lax.gather(x, starts, numbers, sizes, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)
    return movedim(windows, dim + 1, -1)
