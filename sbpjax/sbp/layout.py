"""Layouts of global tensors: placement, sbp, logical shape, and the physical array on the devices.

A float32 ``(6, 4)`` tensor as ``(S0, P)`` on a 4 × 2 placement is physically an array of shape ``(2, 8, 4)`` with spec
``("a1", "a0", None)``: one leading dim for the P axis, which holds a summand per rank of that axis, then the logical
dims; dim 0 is padded from 6 to 4 shards of 2 rows, of which by the balanced rule 2, 2, 1, 1 count.

Layouts are interned: equal ones are the same object, so they are cheap keys for caches of compiled programs.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from . import algebra, even_split
from .algebra import P
from .placement import placement as Placement

_INTERNED: dict = {}


class Layout:
    """The layout of one global tensor.

    Args:
        placement: the tensor's placement.
        sbp: the nd-sbp, in any form `algebra.parse` accepts, or codes.
        shape: the logical shape.
        dtype: the dtype of the elements.
    """

    __slots__ = ("__dict__", "codes", "dtype", "placement", "shape")

    placement: Placement
    codes: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype

    def __new__(cls, placement: Placement, sbp, shape, dtype) -> Layout:
        shape = tuple(shape)
        codes = algebra.parse(sbp, placement, len(shape))
        return layout_of(placement, codes, shape, np.dtype(dtype) if not hasattr(dtype, "_rules") else dtype)

    @property
    def sbp(self) -> tuple:
        """The nd-sbp as a tuple of `sbp` objects."""
        return algebra.to_sbp(self.codes)

    @cached_property
    def axes_of_dim(self) -> tuple[tuple[int, ...], ...]:
        """For each logical dim the mesh axes that split it, outer first."""
        return axes_of_dims(self.codes, len(self.shape))

    @cached_property
    def partial_axes(self) -> tuple[int, ...]:
        """The mesh axes of partial sums."""
        return tuple(a for a, c in enumerate(self.codes) if c == P)

    @cached_property
    def is_even(self) -> bool:
        """Whether no dim is padded."""
        sizes = self.placement.hierarchy
        return all(
            even_split.even(n, tuple(sizes[a] for a in axes))
            for n, axes in zip(self.shape, self.axes_of_dim, strict=True)
        )

    @cached_property
    def local_shape(self) -> tuple[int, ...]:
        """The shape of one rank's shard of the logical dims, padding included."""
        return local_shape(self.shape, self.codes, self.placement.hierarchy)

    @cached_property
    def physical_shape(self) -> tuple[int, ...]:
        """The shape of the physical array: a leading dim per P axis, then the padded logical dims."""
        sizes = self.placement.hierarchy
        padded = (
            shard * math.prod(sizes[a] for a in axes)
            for shard, axes in zip(self.local_shape, self.axes_of_dim, strict=True)
        )
        return tuple(sizes[a] for a in self.partial_axes) + tuple(padded)

    @cached_property
    def spec(self):
        """The `PartitionSpec` of the physical array."""
        return physical_spec(self.codes, len(self.shape), self.placement.axis_names)

    @cached_property
    def sharding(self):
        """The `NamedSharding` of the physical array."""
        # Without trailing Nones, as JAX gives the shardings of results: for ``P("a0", None)`` and ``P("a0")`` every
        # program would be lowered and compiled twice.
        entries = list(self.spec)
        while entries and entries[-1] is None:
            entries.pop()
        return NamedSharding(self.placement.auto_mesh, PartitionSpec(*entries))

    @property
    def nbytes(self) -> int:
        """The bytes of the logical tensor."""
        return math.prod(self.shape) * self.dtype.itemsize

    def with_codes(self, codes: tuple[int, ...]) -> Layout:
        """Return the layout of the same tensor under another nd-sbp on the same placement."""
        return layout_of(self.placement, codes, self.shape, self.dtype)

    def parts(self) -> list[tuple[tuple[int, int], ...]]:
        """Return for every rank, in row-major order of the placement, ``(offset, count)`` along each logical dim."""
        sizes = self.placement.hierarchy
        result = []
        for index in np.ndindex(*sizes):
            result.append(
                tuple(
                    even_split.nested_part(n, tuple(sizes[a] for a in axes), tuple(int(index[a]) for a in axes))
                    for n, axes in zip(self.shape, self.axes_of_dim, strict=True)
                )
            )
        return result

    def __repr__(self) -> str:
        return f"Layout({self.dtype}{list(self.shape)} as {algebra.nd_name(self.codes)} on {self.placement!r})"


def layout_of(placement: Placement, codes: tuple[int, ...], shape: tuple[int, ...], dtype) -> Layout:
    """Return the interned layout of checked codes."""
    key = (placement, placement.named, codes, shape, dtype)
    found = _INTERNED.get(key)
    if found is None:
        found = object.__new__(Layout)
        found.placement, _, found.codes, found.shape, found.dtype = key
        found = _INTERNED.setdefault(key, found)
    return found


def axes_of_dims(codes: tuple[int, ...], ndim: int) -> tuple[tuple[int, ...], ...]:
    """Return for each dim the mesh axes that split it, outer first."""
    return tuple(tuple(a for a, c in enumerate(codes) if c == d) for d in range(ndim))


def local_shape(shape: tuple[int, ...], codes: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of one rank's shard under ``codes``, padding included."""
    result = list(shape)
    for dim in {c for c in codes if c >= 0}:
        result[dim] = even_split.shard_size(shape[dim], tuple(n for n, c in zip(sizes, codes, strict=True) if c == dim))
    return tuple(result)


def physical_spec(codes: tuple[int, ...], ndim: int, names: tuple[str, ...]):
    """Return the `PartitionSpec` of the physical array of an ``ndim``-d tensor under ``codes``."""
    partial = [names[a] for a, c in enumerate(codes) if c == P]
    dims = []
    for axes in axes_of_dims(codes, ndim):
        dims.append(None if not axes else names[axes[0]] if len(axes) == 1 else tuple(names[a] for a in axes))
    return PartitionSpec(*partial, *dims)
