"""Offloaded and stacked parameters: the payload is kept in another layout or as a slice of a stack.

A graph may keep parameters as it needs them from step to step: divided over the data-parallel ranks (ZeRO-3), or the
same weight of all layers in one stack. The user's tensor does not show that: its shape, dtype, placement and sbp are
unchanged. Its payload is kept on a `StackedParameters`, and is fetched when it is read or written:

    stack = StackedParameters(array, layout)
    stack.store(weights)           # weights[i] is stack[i] from now on; nothing is copied
    weights[3].numpy()             # fetches one slice; the others stay where they are

A fetched tensor that was not written is still on its stack, so reading a weight costs the next step nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import jax

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager import global_ops
from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh

from ..handle.lazy_payload import LazyRoot
from ..handle.mode import mode
from ..handle.tensor import Tensor
from .exchange import Assignment, commit, make_assigner
from .payload import payload
from .storage import defer, is_alone


class StackSlice(LazyRoot):
    """The payload of a tensor that is on a stack.

    Attributes:
        stack: the stack.
        index: the tensor's place there, None if the stack holds this tensor alone.
        layout: the tensor's layout, None if local.
    """

    __slots__ = ("index", "layout", "stack")

    def __init__(self, stack: StackedParameters, index: int | None, x: Tensor) -> None:
        super().__init__(x._array)
        self.stack, self.index, self.layout = stack, index, x._layout

    def materialize(self) -> Any:
        """Fetch the array."""
        array = self.stack.fetch(self.index, self.layout)
        self.stack.remember(self.index, array)
        return array


class StackedParameters:
    """The payload of one tensor, or of a stack of them.

    Attributes:
        array: the payload.
        layout: its layout, None if local.
        ndim: the number of its dims.
        fetched: index → the array that the tensor of that index was given.
    """

    def __init__(self, array, layout, ndim: int | None = None) -> None:
        self.array = array
        self.layout = layout
        self.ndim = len(array.shape if layout is None else layout.shape) if ndim is None else ndim
        self.fetched: dict = {}

    @hide_mesh
    def fetch(self, index: int | None, layout):
        """Return the payload of one tensor in its own layout."""
        if layout is None:
            return self.array if index is None else _slice(self.array, index)
        if index is None:
            return conversions.convert(self.array, self.layout, layout.placement, layout.sbp)[0]
        arrays, _ = global_ops.execute(_take, (("index", index),), [self.array], [self.layout], out_sbps=(layout.sbp,))
        return arrays[0]

    def remember(self, index: int | None, array) -> None:
        """Record the array that a tensor of the stack was given."""
        # Weak: else every weight that was ever read would be held twice.
        self.fetched[index] = weakref.ref(array)

    def store(self, tensors: Sequence[Tensor], written: bool = True) -> None:
        """Make tensors the slices of this stack, or the one tensor that it holds.

        Args:
            tensors: the tensors.
            written: whether their values are new; else the stack was made of them.
        """
        for index, x in enumerate(tensors):
            place = index if self.has_stack_layout(x) else None
            shared = not is_alone(x)
            if shared and not written:
                self.remember(place, x._array)
                continue
            if shared:  # with a view or alias: they must see it
                x._set(self.fetch(place, x._layout), x._layout)
                self.remember(place, x._array)
                continue
            if written and mode.touch is not None:
                mode.touch(x)
            commit(make_assigner(self._slice_assignments(x, place, written)))

    def plan_assignments(self, tensors: Sequence[Tensor]) -> list[Assignment] | None:
        """Return the assignments that make written tensors slices of this stack; None if one has views or aliases."""
        found: list[Assignment] = []
        for index, x in enumerate(tensors):
            if not is_alone(x):
                return None
            if mode.touch is not None:
                mode.touch(x)
            found += self._slice_assignments(x, index if self.has_stack_layout(x) else None, True)
        return found

    def _slice_assignments(self, x: Tensor, place: int | None, written: bool) -> list[Assignment]:
        version = x._cell.version if x._cell is not None else x._ver
        return defer(x, StackSlice(self, place, x), version + written)

    def has_stack_layout(self, x: Tensor) -> bool:
        """Return whether the stack has one dim more than a tensor: its slices are the tensors."""
        return self.ndim > len(x.shape)

    def holds(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether the stack still has the values of all these tensors."""
        for index, x in enumerate(tensors):
            place = index if self.has_stack_layout(x) else None
            if is_stored(x):
                if (x._cell.array.stack, x._cell.array.index) != (self, place):
                    return False
            elif place not in self.fetched or self.fetched[place]() is not payload(x):
                return False
        return True


# The index is an input: one program for all layers.
@jit_without_mesh
def _slice(stack, index):
    return jax.lax.dynamic_index_in_dim(stack, index, 0, keepdims=False)


def _take(stack, /, index: int):
    return jax.lax.index_in_dim(stack, index, 0, keepdims=False)


def stacked_parameters_of(x: Tensor) -> StackedParameters | None:
    """Return the stack that holds the payload of a tensor, None if the tensor holds it itself."""
    return x._cell.array.stack if is_stored(x) else None


def is_stored(x: Tensor) -> bool:
    """Return whether the payload of a tensor is on a stack."""
    return x._cell is not None and x._cell.array.__class__ is StackSlice
