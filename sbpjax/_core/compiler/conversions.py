"""Conversions of global tensors: between layouts and placements, from and to logical values.

A tensor of 8 rows with sbp ``S0`` on ranks 0 to 3 becomes ``B`` there by one compiled all-gather (`global_ops.box`),
goes to ranks 4 to 7 of the same process by `jax.device_put` (`between_placements`), and to the ranks of another process
by a program over the devices of both (`between_processes`). `convert` chooses.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import ArrayImpl
from sbpjax._core.runtime.ambient_mesh import evaluate_global, hide_mesh
from sbpjax.sbp import Layout, abstract, algebra, multi_host
from sbpjax.sbp.no_alias import copy_without_alias
from sbpjax.sbp.placement import flat_placement, one_per_process
from sbpjax.sbp.placement import placement as Placement

from . import between_placements as transfer
from . import between_processes as shipping
from .eager import global_ops

# A jax.Array, or an `abstract.Abstract` in the place of one.
Payload = Any


def convert(array, layout: Layout, placement: Placement, sbp) -> tuple[Payload, Layout]:
    """Box a global tensor to another layout, on the same placement or another."""
    target = Layout(placement, sbp, layout.shape, layout.dtype)
    return move(array, layout, target), target


def move(array, source: Layout, target: Layout) -> Payload:
    """Return the physical array of ``target`` made from that of ``source``, a layout of the same tensor."""
    if target is source:
        return array
    if array.__class__ is abstract.Abstract:
        return abstract.of_layout(target)
    old, new = source.placement, target.placement
    if not new.is_present:
        raise abstract.absent(f"to_global({new!r}, ...)", repr(source), new)
    if old == new:
        return global_ops.box(array, source, target)
    return _move_elsewhere(array, source, target)


@evaluate_global
def _move_elsewhere(array, source: Layout, target: Layout) -> Payload:
    """Return the physical array of a layout on another placement."""
    old, new = source.placement, target.placement
    # Over the same devices in the same order nothing has to be sent, however many processes own them.
    if (new.spans_processes or old.spans_processes) and flat_placement(old) != flat_placement(new):
        return shipping.transfer_across(array, source, target)
    return transfer.transfer(array, source, target)


@evaluate_global
@hide_mesh
def from_logical(value, placement: Placement, sbp, own: bool = False) -> tuple[Payload, Layout]:
    """Return the physical array of a logical value: each rank gets its part, a partial sum is on the first rank.

    Args:
        value: a NumPy array, a local jax array or a nested list, of any shape.
        placement: the target placement.
        sbp: the target nd-sbp.
        own: in memory of its own, for a tensor that an optimizer may write.
    """
    if not isinstance(value, (np.ndarray, jax.Array, abstract.Abstract)):
        value = np.asarray(value)
    layout = Layout(placement, sbp, value.shape, value.dtype)
    if isinstance(value, abstract.Abstract):
        return abstract.of_layout(layout), layout
    if not placement.is_present:
        seen = f"{value.dtype}{list(value.shape)} with data"
        raise abstract.absent(f"to_global({placement!r}, ...)", seen, placement)
    if placement.spans_processes:
        return multi_host.from_logical(value, layout), layout
    alias = None
    if value.__class__ is ArrayImpl and placement.type == "cpu" and any(c != algebra.B for c in layout.codes):
        # Views of the array in memory: JAX would compile a program that slices, for every shape.
        if value.is_fully_addressable and next(iter(value.devices())).platform == "cpu":
            value, alias = np.asarray(value), False
    if layout.is_even and not layout.partial_axes:
        value = copy_without_alias(value, layout.sharding) if own else value
        return jax.device_put(value, layout.sharding, may_alias=alias), layout
    # On the device already: one transfer of the whole and a planned slice, and nothing comes to the host.
    if isinstance(value, jax.Array):
        whole = layout.with_codes((algebra.B,) * len(layout.codes))
        return move(jax.device_put(value, whole.sharding), whole, layout), layout
    blocks = {}
    for index, part in zip(np.ndindex(*placement.hierarchy), layout.parts(), strict=True):
        block = np.zeros(layout.local_shape, value.dtype)
        # The value is the summand of the first rank, and those of the others are zero.
        if all(index[a] == 0 for a in layout.partial_axes):
            block[tuple(slice(0, count) for _, count in part)] = value[tuple(slice(o, o + c) for o, c in part)]
        blocks[placement.devices[index]] = block.reshape((1,) * len(layout.partial_axes) + block.shape)
    local = [jax.device_put(b, d) for d, b in blocks.items()]
    return jax.make_array_from_single_device_arrays(layout.physical_shape, layout.sharding, local), layout


def to_logical(array, layout: Layout, own: bool = False) -> Payload:
    """Return the logical value as an array on one device of this process.

    Where the tensor is on devices of several processes, all of them call this, unless it is broadcast over them all; so
    do those that own none of its devices.
    """
    if array.__class__ is abstract.Abstract:
        return abstract.Abstract(layout.shape, layout.dtype)
    if not layout.placement.covers_processes:
        # Also to processes that own no device of the placement: by way of one that has a device of each.
        everyone = one_per_process(layout.placement.type)
        whole, _ = convert(array, layout, everyone, (algebra.broadcast,))
        return whole.addressable_data(0)
    whole = move(array, layout, layout.with_codes((algebra.B,) * len(layout.codes)))
    value = whole.addressable_data(0)
    return copy_without_alias(value) if own and whole is array else value


def local_shards(array, layout: Layout) -> dict[int, np.ndarray]:
    """Return the data of each rank of this process: its part without padding, or its summand."""
    if array.__class__ is abstract.Abstract:
        raise abstract.no_data("x.local_shards()", repr(layout))
    parts = dict(
        zip(layout.placement.devices.flat, zip(layout.placement.ranks.flat, layout.parts(), strict=True), strict=True)
    )
    result = {}
    for shard in array.addressable_shards:
        rank, part = parts[shard.device]
        block = np.asarray(shard.data).reshape(layout.local_shape)
        result[int(rank)] = block[tuple(slice(0, count) for _, count in part)]
    return dict(sorted(result.items()))
