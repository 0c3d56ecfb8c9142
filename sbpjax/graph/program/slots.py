"""State slots: storage of a program's state between calls.

Most tensors of a program's state are inputs of their own. Some are kept otherwise: the same weight of all layers as one
stack, so that a loop over the layers reads it without a copy; a parameter of ZeRO-3 divided over the data-parallel
ranks. The user's tensors are *stored* then (`_core.tensor.storage.offloaded`): they look as ever, and are fetched when
read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager import global_ops
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation.creation import full
from sbpjax._core.tensor.creation.host_constants import put_like
from sbpjax._core.tensor.storage.exchange import Plan
from sbpjax._core.tensor.storage.lazy_constant import constant_of
from sbpjax._core.tensor.storage.offloaded import StackedParameters, stacked_parameters_of
from sbpjax._core.tensor.storage.payload import payload, payload_metadata, payloads
from sbpjax._core.tensor.storage.storage import is_alone
from sbpjax.sbp import Layout
from sbpjax.sbp.algebra import shift_splits
from sbpjax.sbp.layout import layout_of


@dataclass
class StateSlot:
    """One input of a program that is state.

    Attributes:
        places: the positions of its tensors in the state: one, or all of a stack.
        layout: the layout in which the program takes and returns it, None on one device.
        own: whether that is the layout of its one tensor.
    """

    places: tuple[int, ...]
    layout: Layout | None
    own: bool = True
    _stored: StackedParameters | None = None

    def array(self, tensors: Sequence[Tensor]):
        """Return the payload that the program takes for these tensors of the state.

        Tensors that have to be stacked or divided for that stay so: they are stored, and the next call finds them.
        """
        first = tensors[0]
        if self.own:
            return payload(first)
        stack = stacked_parameters_of(first) or self._stored
        # Another graph may have stacked the same tensors in another layout, and a tensor may have been written since.
        if stack is not None and stack.layout is self.layout and stack.holds(tensors):
            return stack.array
        stack = self._stored = StackedParameters(self._make_stack(tensors), self.layout)
        # From here on the tensors read from the stack: with payloads of their own, every weight would be held twice.
        stack.store(tensors, written=False)
        return stack.array

    def _make_stack(self, tensors: Sequence[Tensor]):
        layout = self.layout
        if len(self.places) == 1:
            return conversions.convert(payload(tensors[0]), tensors[0].layout, layout.placement, layout.sbp)[0]
        value = constant_of(tensors)
        if value is not None:
            return self._fill_stack(value, tensors[0])
        arrays, layouts = payloads(tensors), [t.layout for t in tensors]
        # The stack's splits are the tensors', one dim further: each device stacks its own blocks.
        if stacked_layout(layouts[0], len(tensors)) is layout and can_stack_blocks(arrays[0]):
            return stack_blocks(arrays, None if layout is None else layout.sharding)
        if layout is None:
            return _stack(arrays)
        return global_ops.execute(_stack_arrays, (), arrays, layouts, out_sbps=(layout.sbp,))[0][0]

    def _fill_stack(self, value: float, like: Tensor):
        """Return the stack of tensors of one value, none of which is filled."""
        layout = self.layout
        shape = (len(self.places), *like.shape)
        if layout is None:
            return put_like(np.full(shape, value, like.dtype.np), payload_metadata(like))
        return payload(full(shape, value, dtype=like.dtype, placement=layout.placement, sbp=layout.sbp))

    def give(self, tensors: Sequence[Tensor], array) -> None:
        """Take the payload that the program returned."""
        self._stored = StackedParameters(array, self.layout)
        self._stored.store(tensors)

    def plan(self, plan: Plan, tensors: Sequence[Tensor], place: int) -> bool:
        """Add the work of `give`, with the array at a place among future results, to a plan; return whether it can."""
        if self.own:
            return plan.add(tensors[0], place, self.layout)
        stack = StackedParameters(None, self.layout, (stacked_parameters_of(tensors[0]) or self._stored).ndim)
        known = stack.plan_assignments(tensors)
        if known is None:
            return False
        plan.late.append((stack, "array", place))
        plan.known += [*known, (self, "_stored", stack)]
        return True


@jit_without_mesh
def _stack(arrays):
    return jnp.stack(arrays)


def _stack_arrays(*arrays):
    return jnp.stack(arrays)


def can_stack_blocks(array) -> bool:
    """Return whether `stack_blocks` takes arrays like this one: of NumPy's dtypes, on CPU devices of this process."""
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended) or not array.is_fully_addressable:
        return False
    return all(device.platform == "cpu" for device in array.sharding.device_set)


def stack_blocks(arrays: Sequence[jax.Array], sharding) -> jax.Array:
    """Return the stack of arrays that are divided alike, made by NumPy: a program of hundreds of inputs compiles long.

    Args:
        arrays: the arrays, on CPU devices of this process.
        sharding: the sharding of the stack, None for an array on one device.
    """
    if sharding is None:
        return put_like(np.stack([np.asarray(a) for a in arrays]), arrays[0])
    blocks: dict[Any, list[np.ndarray]] = {}
    for array in arrays:
        for shard in array.addressable_shards:
            blocks.setdefault(shard.device, []).append(np.asarray(shard.data))
    made = [jax.device_put(np.stack(found), device, may_alias=False) for device, found in blocks.items()]
    shape = (len(arrays), *arrays[0].shape)
    return jax.make_array_from_single_device_arrays(shape, sharding, made)


def stacked_layout(layout: Layout | None, count: int) -> Layout | None:
    """Return the layout of a stack of tensors with ``layout``: each dim is one further."""
    if layout is None:
        return None
    return layout_of(layout.placement, shift_splits(layout.codes, 1), (count, *layout.shape), layout.dtype)


def slot_of(places: tuple[int, ...], tensors: Sequence[Tensor], stored: Mapping[int, Layout]) -> StateSlot:
    """Return the slot of one tensor of the state, or of a stack of several.

    Args:
        places: their positions in the state.
        tensors: the state.
        stored: position → the layout in which a tensor is stored, if that is not its own.
    """
    own = tensors[places[0]].layout
    layout = stored.get(places[0], own)
    if len(places) == 1:
        return StateSlot(places, layout, layout is own)
    return StateSlot(places, stacked_layout(layout, len(places)), False)


def stackable(t: Tensor) -> tuple | None:
    """Return the comparison key of tensors of one stack, None if a tensor must stay by itself."""
    if not is_alone(t):
        return None  # it shares storage with a view or an alias
    if t.layout is None:
        return tuple(t.shape), t.dtype, getattr(payload_metadata(t), "sharding", None)
    return None if t.layout.partial_axes else (t.layout,)
