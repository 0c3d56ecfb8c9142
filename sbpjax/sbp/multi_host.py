"""Multi-host arrays: put values on devices of several processes, and read this process's part.

With two processes of two devices each, ``placement("cpu", [0, 1, 2, 3])`` spans both, and process 1 can put and read
the blocks of ranks 2 and 3 only. Every process makes its own blocks and names the same sharding; JAX takes them
together as one array. Values that must be equal everywhere are either the same on every process by construction (a
constant, a loaded value), or taken from the first rank (`replicate_from_first`).
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from sbpjax._core.runtime import collective_trace
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax._core.runtime.processes import by_value, current
from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax.errors import AgreementError

from .algebra import B
from .layout import Layout, layout_of
from .placement import placement as Placement


def rendezvous(operation: str, devices: Any, facts: str = "") -> None:
    """Wait until every process that owns some of the devices is about to run a new program on them.

    XLA connects the processes of a program when it runs for the first time, and gives up after 30 seconds (jaxlib 0.10,
    Gloo). This waits as long as ``SBPJAX_TIMEOUT`` instead for one that is late, because it read data meanwhile.

    Args:
        operation: the program.
        devices: where it runs.
        facts: further facts that must be equal on all processes.

    Raises:
        AgreementError: processes differ in them; every process raises it.
        LostRankError: a process did not come.
    """
    world = current()
    members = tuple(sorted({d.process_index for d in devices.flat}))
    if len(members) == 1 or world.rank not in members:
        return
    gathered = world.exchange(f"the first run of {operation} on processes {list(members)}", facts, members)
    ranks = by_value(gathered)
    if len(ranks) > 1:
        seen = "; ".join(f"ranks {ranks_text(some)}: {theirs[:400]}" for theirs, some in ranks.items())
        rule = "all ranks run the same operations, with the same options and numbers, on tensors of the same layouts"
        raise AgreementError(operation, seen, rule, "look for code that depends on the rank")


def together(devices: Any, words: str, detail: str = "", **options: Any) -> collective_trace.Call | None:
    """Return the recorder of a program's runs on devices of several processes, None if there is one process.

    Args:
        devices: where it runs.
        words: its description; as for the others, see `_core.runtime.collective_trace.Call`.
        detail: of any length.
        options: further ones.
    """
    owners = {d.process_index for d in devices.flat}
    return collective_trace.call_of(sorted(owners), words, detail, **options) if jax.process_index() in owners else None


def array_from_blocks(blocks: dict, layout: Layout) -> jax.Array:
    """Return the physical array made of blocks by device; other processes put theirs."""
    here = jax.process_index()
    local = [jax.device_put(block, device) for device, block in blocks.items() if device.process_index == here]
    return jax.make_array_from_single_device_arrays(layout.physical_shape, layout.sharding, local, dtype=layout.dtype)


def from_logical(value, layout: Layout) -> jax.Array:
    """Return the physical array of a value that every process has: each rank gets its part, a sum the first rank.

    Args:
        value: a NumPy array, or a `jax.Array` on devices of this process.
        layout: the target layout.
    """
    blocks = {}
    here = jax.process_index()
    stacked = (1,) * len(layout.partial_axes)
    for index, part in zip(np.ndindex(*layout.placement.hierarchy), layout.parts(), strict=True):
        device: Any = layout.placement.devices[index]
        if device.process_index != here:
            continue
        counts = tuple(count for _, count in part)
        if any(index[a] for a in layout.partial_axes):
            block = np.zeros(layout.local_shape, layout.dtype)
        else:
            block = value[tuple(slice(o, o + c) for o, c in part)]
            if counts != layout.local_shape:
                lack = [(0, n - c) for n, c in zip(layout.local_shape, counts, strict=True)]
                block = (jnp if isinstance(block, jax.Array) else np).pad(block, lack)
        blocks[device] = block.reshape(stacked + layout.local_shape)
    return array_from_blocks(blocks, layout)


def replicate_value(value, placement: Placement) -> jax.Array:
    """Return a value of this process, equal on all, as an array replicated over a placement.

    A key of random numbers is taken from the first process of the placement, because a process that drew numbers of
    its own has counted on.
    """
    sharding = NamedSharding(placement.auto_mesh, PartitionSpec())
    if not isinstance(value, jax.Array) or not jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        value = np.asarray(value)
        return _make_replicated(value, sharding)
    impl = jax.random.key_impl(value)
    return jax.random.wrap_key_data(replicate_from_first(np.asarray(jax.random.key_data(value)), placement), impl=impl)


def put_replicated(value, sharding) -> jax.Array:
    """Return a value, equal on all processes, on the devices of a sharding that leaves it whole."""
    if sharding is None or sharding.is_fully_addressable:
        return jax.device_put(value, sharding)
    return _make_replicated(np.asarray(value), sharding)


def _make_replicated(value: np.ndarray, sharding: NamedSharding) -> jax.Array:
    local = [jax.device_put(value, d) for d in sharding.addressable_devices]
    return jax.make_array_from_single_device_arrays(value.shape, sharding, local, dtype=value.dtype)


def replicate_from_first(value: np.ndarray, placement: Placement) -> jax.Array:
    """Return the first rank's ``value``, whole on every device of a placement; all have the same shape and dtype."""
    layout = layout_of(placement, (B,) * len(placement.hierarchy), value.shape, value.dtype)
    return broadcast_from_first(_make_replicated(value, layout.sharding), layout)


def broadcast_from_first(array: jax.Array, layout: Layout) -> jax.Array:
    """Return the array in which, along broadcast axes, every rank holds the block of the first rank of its group."""
    if all(layout.codes[a] != B for a in range(len(layout.codes))):
        return array
    return _broadcast_program(layout)(array)


@functools.lru_cache(maxsize=128)  # a program of several processes holds 2.5 MB
def _broadcast_program(layout: Layout):
    """Return the program that broadcasts from the first rank along broadcast axes; bits are summed, so it is exact."""
    names = layout.placement.axis_names
    axes = tuple(n for n, c in zip(names, layout.codes, strict=True) if c == B)

    def first(block):
        alone = functools.reduce(jnp.logical_and, [jax.lax.axis_index(n) == 0 for n in axes])
        return from_uint_bits(jax.lax.psum(jnp.where(alone, bits(block), 0), axes), block.dtype)

    rendezvous("broadcasting", layout.placement.devices)
    spec = layout.sharding.spec
    mapped = jax.shard_map(first, mesh=layout.placement.auto_mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return jit_without_mesh(mapped, out_shardings=layout.sharding)


def bits(x: jax.Array) -> jax.Array:
    """Return the bits of an array as unsigned integers that collectives can add; complex gets a dim of two."""
    dtype = x.dtype
    if dtype.kind == "c":
        return bits(jnp.stack([x.real, x.imag], -1))
    if dtype.kind == "b":
        return x.astype(jnp.uint32)
    width = 8 * dtype.itemsize
    wide = jax.lax.bitcast_convert_type(x, getattr(jnp, f"uint{width}"))
    return wide.astype(jnp.uint32) if width < 32 else wide


def from_uint_bits(x: jax.Array, dtype) -> jax.Array:
    """Return the array that `bits` was given."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        both = from_uint_bits(x, part)
        return jax.lax.complex(both[..., 0], both[..., 1])
    if dtype.kind == "b":
        return x.astype(bool)
    narrow = x.astype(getattr(jnp, f"uint{8 * dtype.itemsize}"))
    return jax.lax.bitcast_convert_type(narrow, dtype)
