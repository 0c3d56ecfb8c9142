"""Slots: how a program keeps its state from call to call.

Most tensors of a program's state are inputs of their own. Some are kept otherwise: the same weight of all layers as one
stack, so that a loop over the layers reads it without a copy; a parameter of ZeRO-3 divided over the data-parallel
ranks. The user's tensors are *parked* then (`sbpjax.tensor.parked`): they look as ever, and are fetched when read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sbpjax.sbp import Layout, eager
from sbpjax.sbp.layout import layout_of
from sbpjax.tensor import Tensor
from sbpjax.tensor.parked import Parked, Shelf


@dataclass
class Slot:
    """One input of a program that is state.

    Attributes:
        tensors: the tensors that it stands for: one, or all of a stack.
        layout: the layout in which the program takes and returns it, None on one device.
    """

    tensors: list[Tensor]
    layout: Layout | None
    _shelf: Shelf | None = None

    @property
    def is_stack(self) -> bool:
        """Whether it stands for several tensors."""
        return len(self.tensors) > 1

    @property
    def is_plain(self) -> bool:
        """Whether it is one tensor in the tensor's own layout."""
        return not self.is_stack and self.layout is self.tensors[0]._layout

    def array(self):
        """Return the payload that the program takes."""
        first = self.tensors[0]
        if self.is_plain:
            return first._fresh()._array
        shelf = first._cell.shelf if first._cell.__class__ is Parked else self._shelf
        if shelf is not None and shelf.layout is self.layout and shelf.holds(self.tensors):
            return shelf.array
        arrays = [t._fresh()._array for t in self.tensors]
        if self.layout is None:
            return _stack(arrays)
        if not self.is_stack:
            return eager.convert(arrays[0], first._layout, self.layout.placement, self.layout.sbp)[0]
        layouts = [t._layout for t in self.tensors]
        return eager.execute(_stacked, (), arrays, layouts, out_sbps=(self.layout.sbp,))[0][0]

    def give(self, array) -> None:
        """Take the payload that the program returned."""
        if self.is_plain:
            self.tensors[0]._set(array, self.layout)
            return
        self._shelf = Shelf(array, self.layout)
        self._shelf.park(self.tensors)


@jax.jit
def _stack(arrays):
    return jnp.stack(arrays)


def _stacked(*arrays):
    return jnp.stack(arrays)


def stacked_layout(tensors: Sequence[Tensor]) -> Layout | None:
    """Return the layout of a stack of tensors that lie alike: each dim is one further."""
    layout = tensors[0]._layout
    if layout is None:
        return None
    codes = tuple(c + 1 if c >= 0 else c for c in layout.codes)
    return layout_of(layout.placement, codes, (len(tensors), *layout.shape), layout.dtype)
