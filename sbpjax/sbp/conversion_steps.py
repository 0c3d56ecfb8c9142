"""Single-axis conversion steps: their cost in bytes, and their collectives on local blocks.

On one axis of ``n`` ranks, with ``b`` the bytes of the tensor as the other axes leave it:

    S → B   all_gather       (n-1)/n · b        B → S   slice       0
    P → S   psum_scatter     (n-1)/n · b        B → P   zero_fill   0
    P → B   psum           2 (n-1)/n · b
    S → S   all_to_all       (n-1)/n² · b          S → P   zero_fill   0

A step on axis ``a`` that changes dim ``d`` is legal only while no inner axis splits ``d``: the inner cut is inside the
outer one, so gathering the outer axis alone would interleave the rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from . import even_split
from .algebra import B, P
from .layout import local_shape
from .tpu_tiles import has_partial_tiles, keeps_shape, least_in_tiles, sent_shape


@dataclass(frozen=True)
class Step:
    """A conversion on one mesh axis.

    Attributes:
        kind: ``all_gather``, ``psum_scatter``, ``psum``, ``all_to_all``, ``slice`` or ``zero_fill``.
        axis: the mesh axis.
        source: the code on that axis before.
        target: the code on that axis after.
        bytes: the bytes that one device receives over the interconnect.
        price: the bytes that planning charges. S → P moves nothing now, but a reader of the sum has to gather it: it is
            charged as this deferred all-gather, or every mixed sum would be planned as P + P.
        block: bytes of one rank's block with this axis unsharded.
        shape: of that block.
        itemsize: bytes of one element.
        size: ranks on the axis.
    """

    kind: str
    axis: int
    source: int
    target: int
    bytes: int
    price: int
    block: int = 0
    shape: tuple[int, ...] = field(default=(), repr=False)
    itemsize: int = field(default=0, repr=False)
    size: int = field(default=1, repr=False)

    @functools.cached_property
    def held(self) -> int:
        """Bytes of the block as a TPU holds it, in whole tiles."""
        return least_in_tiles(self.shape, self.itemsize)

    @functools.cached_property
    def within_tiles(self) -> bool:
        """Whether a TPU sums the block whole, since shards of it would end within tiles (`tpu_tiles`)."""
        return self.kind == "psum_scatter" and has_partial_tiles(self.shape, self.itemsize, self.size, self.target)

    def is_all_reduce(self, written: tuple[str, ...]) -> bool:
        """Return whether a TPU makes an all-reduce of it.

        Args:
            written: the kinds of which its compiler makes one on this axis (`_core.planner.prices.links`).
        """
        return self.kind in written or self.within_tiles


def kind_of(source: int, target: int) -> str:
    """Return the collective that turns code ``source`` into ``target`` on one axis."""
    if source == B:
        return "zero_fill" if target == P else "slice"
    if source == P:
        return "psum" if target == B else "psum_scatter"
    return "zero_fill" if target == P else "all_gather" if target == B else "all_to_all"


def is_legal_step(codes: tuple[int, ...], axis: int, target: int) -> bool:
    """Return whether ``axis`` may change to ``target``: no inner axis splits a dim that the step changes."""
    changed = {c for c in (codes[axis], target) if c >= 0}
    return not any(c in changed for c in codes[axis + 1 :])


def interconnect_bytes(kind: str, size: int, block_bytes: int) -> int:
    """Return the bytes that one device receives in a step over ``size`` ranks.

    Args:
        kind: see `Step`.
        size: ranks on the axis.
        block_bytes: bytes of one rank's block with this axis unsharded, padding included.
    """
    if kind in ("all_gather", "psum_scatter"):
        return block_bytes * (size - 1) // size
    if kind == "psum":
        return 2 * block_bytes * (size - 1) // size
    if kind == "all_to_all":
        return block_bytes * (size - 1) // (size * size)
    return 0


def make_step(shape, itemsize: int, sizes: tuple[int, ...], codes: tuple[int, ...], axis: int, target: int) -> Step:
    """Return the step that changes ``axis`` of ``codes`` to ``target``."""
    kind = kind_of(codes[axis], target)
    whole = list(local_shape(shape, codes[:axis] + (B,) + codes[axis + 1 :], sizes))
    for code in (codes[axis], target):
        if code >= 0:  # the shards of this axis travel, padding included
            cut = local_shape(shape, codes[:axis] + (code,) + codes[axis + 1 :], sizes)
            whole[code] = cut[code] * sizes[axis]
    block = math.prod(whole) * itemsize
    moved = interconnect_bytes(kind, sizes[axis], block)
    price = interconnect_bytes("all_gather", sizes[axis], block) if kind == "zero_fill" and codes[axis] != B else moved
    return Step(kind, axis, codes[axis], target, moved, price, block, tuple(whole), itemsize, sizes[axis])


class MeshPosition:
    """The position of this rank in the mesh, inside `shard_map`: sizes and names of the axes and its index on each.

    Args:
        sizes: of the axes.
        names: of the axes.
        written: on a TPU, for every axis the kinds of steps that its compiler makes an all-reduce of.
    """

    def __init__(
        self, sizes: tuple[int, ...], names: tuple[str, ...], written: Sequence[tuple[str, ...]] | None = None
    ) -> None:
        self.sizes = sizes
        self.names = names
        self.written = written

    def index(self, axis: int):
        """Return this rank's index on a mesh axis (traced)."""
        return jax.lax.axis_index(self.names[axis]).astype(jnp.int32)

    def part(self, n: int, axes: tuple[int, ...]):
        """Return ``(offset, count)`` of this rank along a dim of ``n`` that ``axes`` split; ints where static."""
        sizes = tuple(self.sizes[a] for a in axes)
        if not axes or math.prod(sizes) == 1:
            return 0, n
        if even_split.even(n, sizes):
            flat = self.index(axes[0])
            for a in axes[1:]:
                flat = flat * self.sizes[a] + self.index(a)
            return flat * (n // math.prod(sizes)), n // math.prod(sizes)
        return even_split.nested_part(n, sizes, tuple(self.index(a) for a in axes))

    def convert(self, x, shape: tuple[int, ...], codes: tuple[int, ...], step: Step):
        """Run one step on this rank's block ``x`` of a tensor of logical ``shape`` under ``codes``."""
        size, name, axis = self.sizes[step.axis], self.names[step.axis], step.axis
        if size == 1:
            return x
        source, target = step.source, step.target
        if math.prod(shape) == 0:  # XLA has no collectives over empty arrays
            return jnp.zeros(local_shape(shape, (*codes[:axis], target, *codes[axis + 1 :]), self.sizes), x.dtype)
        if x.dtype == jnp.bool_ and source == P:  # at most one rank holds True
            return self.convert(x.astype(jnp.uint8), shape, codes, step) != 0
        if step.kind == "psum":
            return jax.lax.psum(x, name)
        if step.kind == "zero_fill" and source == B:
            return jnp.where(self.index(axis) == 0, x, jnp.zeros_like(x))
        if step.kind == "slice":
            cut = _Cut(self, shape, codes, axis, target)
            return cut.take(x, self.index(axis))
        if step.kind == "zero_fill":
            return _Cut(self, shape, codes, axis, source).place(x, self.index(axis))
        if step.kind == "all_gather":
            gathered = jax.lax.all_gather(x, name, axis=source, tiled=True)
            return _Cut(self, shape, codes, axis, source).compact(gathered)
        written = self.written  # None elsewhere than on a TPU
        if step.kind == "psum_scatter" and written is not None and step.is_all_reduce(written[axis]):
            # in place: shards would be a copy
            return _Cut(self, shape, codes, axis, target).take(jax.lax.psum(x, name), self.index(axis))
        if step.kind == "psum_scatter":
            return _scatter_sum(_Cut(self, shape, codes, axis, target).spread(x), name, size, target)
        spread = _Cut(self, shape, codes, axis, target).spread(x)
        if written is not None and source == 0:
            moved = _exchange_rows(spread, name, size, target)
        else:
            moved = jax.lax.all_to_all(spread, name, split_axis=target, concat_axis=source, tiled=True)
        return _Cut(self, shape, codes, axis, source).compact(moved)


def _scatter_sum(x, name: str, size: int, dim: int):
    """Return this rank's shard of the sum of blocks, each rank's shard in one piece where it is sent.

    Left to itself, the TPU compiler (libtpu 0.0.42) pads shards that its buffers do not divide, 64 rows to 72, and
    sends rows where they belong in seven permutes more; shards of 128 lanes it reduces whole and cuts afterwards, which
    is twice the bytes, and joins with other all-reduces. XLA for CPUs transposes the sent data, and back.
    """
    if keeps_shape(x.ndim, dim):
        return jax.lax.psum_scatter(x, name, scatter_dimension=dim, tiled=True)
    shards = _shards(x, size, dim)
    shard = shards.shape[1:]
    sent = jax.lax.psum_scatter(shards.reshape(size, *sent_shape(shard)), name, scatter_dimension=0, tiled=False)
    return sent.reshape(shard)


def _exchange_rows(x, name: str, size: int, dim: int):
    """Return the rows that all ranks have of this rank's shard along ``dim``, one rank's after the other's.

    Left to itself, the TPU compiler transposes adjacent numbers into columns and back: 16 times the block is read or
    written for an all-to-all of 134 MB, here 4 times; often the producer writes shards.
    """
    moved = jax.lax.all_to_all(_shards(x, size, dim), name, split_axis=0, concat_axis=0, tiled=True)
    return moved.reshape(size * x.shape[0], *moved.shape[2:])


def _shards(x, size: int, dim: int):
    """Return a block's shards along a dim, one per rank, the ranks outermost."""
    return jnp.moveaxis(x.reshape(*x.shape[:dim], size, x.shape[dim] // size, *x.shape[dim + 1 :]), dim, 0)


class _Cut:
    """The cut of dim ``dim`` over one axis, given how outer axes have cut it already.

    A block that this axis leaves whole has ``whole`` rows (``count`` of them real); cut, each rank has ``cut``
    rows. *Spread* puts the real rows of a whole block into one shard per rank, *compact* undoes it; both are the
    identity on even dims.
    """

    def __init__(self, here: MeshPosition, shape, codes, axis: int, dim: int) -> None:
        outer = tuple(a for a in range(axis) if codes[a] == dim)
        sizes = tuple(here.sizes[a] for a in outer)
        n = shape[dim]
        self.dim = dim
        self.size = here.sizes[axis]
        self.whole = even_split.shard_size(n, sizes)
        self.cut = even_split.shard_size(n, (*sizes, self.size))
        self.even = even_split.even(n, (*sizes, self.size))
        self.count = self.whole if self.even else here.part(n, outer)[1]

    def take(self, x, index):
        """Return the shard of rank ``index`` out of a whole block."""
        if self.even:
            return jax.lax.dynamic_slice_in_dim(x, index * self.cut, self.cut, self.dim)
        offset, _ = even_split.part(self.count, self.size, index)
        return self._rows(x, offset + jnp.arange(self.cut, dtype=jnp.int32))

    def place(self, x, index):
        """Return a whole block that is zero but for this rank's shard."""
        if self.even:
            zeros = jnp.zeros((*x.shape[: self.dim], self.whole, *x.shape[self.dim + 1 :]), x.dtype)
            return jax.lax.dynamic_update_slice_in_dim(zeros, x, index * self.cut, self.dim)
        offset, count = even_split.part(self.count, self.size, index)
        row = jnp.arange(self.whole, dtype=jnp.int32) - offset
        inside = (row >= 0) & (row < count)
        picked = self._rows(x, jnp.clip(row, 0, self.cut - 1))
        return jnp.where(reshape_mask(inside, self.dim, x.ndim), picked, jnp.zeros_like(picked))

    def spread(self, x):
        """Return a whole block with its rows moved into one shard per rank."""
        if self.even:
            return x
        rank = jnp.arange(self.size, dtype=jnp.int32)
        offset, _ = even_split.part(self.count, self.size, rank)
        row = offset[:, None] + jnp.arange(self.cut, dtype=jnp.int32)
        return self._rows(x, row.reshape(-1))

    def compact(self, x):
        """Return the whole block of the shards of all ranks."""
        if self.even:
            return x
        row = jnp.arange(self.whole, dtype=jnp.int32)
        quotient = self.count // self.size
        rest = self.count - quotient * self.size
        long = rest * (quotient + 1)
        rank = jnp.where(row < long, row // (quotient + 1), rest + (row - long) // jnp.maximum(quotient, 1))
        offset, _ = even_split.part(self.count, self.size, rank)
        return self._rows(x, rank * self.cut + row - offset)

    def _rows(self, x, rows):
        if x.shape[self.dim] == 0:
            return jnp.zeros((*x.shape[: self.dim], rows.shape[0], *x.shape[self.dim + 1 :]), x.dtype)
        return jnp.take(x, jnp.clip(rows, 0, x.shape[self.dim] - 1), axis=self.dim, mode="clip")


def reshape_mask(mask, dim: int, ndim: int):
    """Return a mask of the indices of one dim, to be broadcast over a tensor."""
    return mask.reshape((1,) * dim + (-1,) + (1,) * (ndim - dim - 1))
