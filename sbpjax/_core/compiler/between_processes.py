"""Boxing between placements whose devices belong to several processes.

`jax.device_put` moves an array between any devices of one process, but not across processes. There, the devices of both
placements form one mesh, and a compiled program sends blocks along it (`ppermute`). Two placements of four ranks send
one block each in any layout: partial sums and padded parts travel as they are. From two ranks to three, the two hold
the whole value first and send it in two rounds.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh
from sbpjax.errors import BoxingError
from sbpjax.sbp.algebra import B
from sbpjax.sbp.layout import Layout, layout_of
from sbpjax.sbp.multi_host import rendezvous, together
from sbpjax.sbp.placement import placement as Placement

from .between_placements import transfer
from .eager import global_ops


@hide_mesh
def transfer_across(array, source: Layout, target: Layout) -> jax.Array:
    """Return the physical array of ``target`` made from the one of ``source``; all members call it."""
    here, there = source.placement, target.placement
    _check_platform(here, there)
    # As many ranks there as here: converted to the target layout before it leaves, and each block goes to one rank.
    # Else the whole goes to every rank, which keeps its part.
    if here.size == there.size:
        shaped = Placement.of_devices(here.devices.reshape(there.hierarchy), here.type)
        leave, landing = layout_of(shaped, target.codes, target.shape, target.dtype), target
    else:
        leave = source.with_codes((B,) * len(source.codes))
        landing = target.with_codes((B,) * len(target.codes))
    array = _send_blocks(transfer(array, source, leave), leave, landing)
    return global_ops.box(array, landing, target)


def _check_platform(here: Placement, there: Placement) -> None:
    kinds = [p.devices.flat[0].platform for p in (here, there)]
    if kinds[0] != kinds[1]:
        raise BoxingError(
            f"x.to_global({there!r}, ...)",
            f"a tensor on {here!r}",
            f"across processes a tensor moves between devices of one kind, not from {kinds[0]} to {kinds[1]}",
            "x.to_local().to(device).to_global(placement, sbp)",
        )


def _send_blocks(array, leave: Layout, landing: Layout) -> jax.Array:
    """Return the blocks of ``leave`` on the devices of ``landing``: the k-th rank gets the (k mod n)-th block."""
    sources, targets = list(leave.placement.devices.flat), list(landing.placement.devices.flat)
    block_shape = (1,) * len(leave.partial_axes) + leave.local_shape
    union = tuple(sources + [d for d in targets if d not in set(sources)])
    process = jax.process_index()
    local: list[Any] = []
    if any(d.process_index == process for d in union):
        held = {s.device: s.data for s in array.addressable_shards}
        # Every member of a collective gives a block, also a rank that only receives.
        empty = np.zeros((1, *block_shape), leave.dtype)
        for device in union:
            if device.process_index == process:
                block = held[device].reshape((1, *block_shape)) if device in held else jax.device_put(empty, device)
                local.append(block)
        sharding = NamedSharding(Mesh(np.asarray(union, dtype=object), ("u",)), PartitionSpec("u"))
        spread_out = jax.make_array_from_single_device_arrays(
            (len(union), *block_shape), sharding, local, dtype=leave.dtype
        )
        program, call = _program(union, tuple(sources), tuple(targets))
        if call is not None:
            call.note()
        sent = program(spread_out)
        arrived = {s.device: s.data for s in sent.addressable_shards}
        local = [arrived[d].reshape(block_shape) for d in targets if d.process_index == process]
    return jax.make_array_from_single_device_arrays(
        landing.physical_shape, landing.sharding, local, dtype=landing.dtype
    )


# On every process the same calls hit and miss, since all call `transfer_across` in one order: compilation, with its
# rendezvous, happens everywhere or nowhere.
@functools.lru_cache(maxsize=256)
def _program(union: tuple, sources: tuple, targets: tuple):
    place = {d: i for i, d in enumerate(union)}
    count = len(sources)
    rounds = [
        [(place[sources[k]], place[t]) for k, t in enumerate(targets[start : start + count])]
        for start in range(0, len(targets), count)
    ]

    def body(block):
        me = jax.lax.axis_index("u")
        out = jnp.zeros_like(block)
        for pairs in rounds:
            mine = jnp.isin(me, np.asarray([t for _, t in pairs]))
            out = jnp.where(mine, jax.lax.ppermute(block, "u", pairs), out)
        return out

    devices = np.asarray(union, dtype=object)
    # Once per pair of placements, when it is compiled; later sends only enter the collective trace.
    rendezvous("sending between placements", devices)
    mesh, spec = Mesh(devices, ("u",)), PartitionSpec("u")
    program = jit_without_mesh(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
    ranks = [[d.id for d in side] for side in (sources, targets)]
    return program, together(devices, f"sending between placements, devices {ranks[0]} to {ranks[1]}")
