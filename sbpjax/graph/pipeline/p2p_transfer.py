"""Point-to-point transfer between stages: copies within a process, compiled sends between processes.

Let stage 0 be on process 0, stage 1 on process 1. Every process knows the whole schedule; of the transfers it issues
those that begin or end on one of its devices, all in the one order that follows from the schedule:

    process 0   F0 ─send─┐          F1 ─send─┐
    process 1            └─receive─ B0       └─receive─ B1

A transfer between processes is a program over the devices of both placements in which block k goes to rank k
(`ppermute`). Such a program waits on both sides until the other one is there, and two traps come with that:

* XLA:CPU runs the programs that one thread issues to one device in order, so a waiting receive would hold up the task
  after it. Where a process has one device of a placement, a thread of its own issues transfers. Programs on several
  devices, and those of accelerators, go in order whoever issues them; there the schedule's clock keeps the waits short.
* Programs of next to no work run while they are issued, which would make the issuing thread wait; so a send also
  multiplies a few numbers (see `_ENOUGH`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sbpjax._core.compiler.between_placements import transfer
from sbpjax._core.jax_private import xla_client
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh
from sbpjax.sbp import multi_host
from sbpjax.sbp.layout import Layout
from sbpjax.sbp.placement import placement as Placement

from .partition import Send

# XLA:CPU (jaxlib 0.10) runs programs of fewer than 1,000 flops in the thread that issues them.
_ENOUGH = 2048


class PendingReceive:
    """A value that another thread receives.

    Args:
        future: of the thread's results.
        place: the position among these results.
    """

    __slots__ = ("_future", "_place")

    def __init__(self, future: Future, place: int) -> None:
        self._future = future
        self._place = place

    def array(self) -> jax.Array:
        """Return the array, as soon as its transfer is issued."""
        return self._future.result()[self._place]


def owns_device(placement: Placement) -> bool:
    """Return whether this process owns a device of a placement."""
    if not placement.spans_processes:
        return True
    mine = jax.process_index()
    return any(d.process_index == mine for d in placement.devices.flat)


# One array per layout: it holds no data here, only the shape and sharding that the call of a program needs.
@functools.lru_cache(maxsize=4096)
def make_remote_array(layout: Layout) -> jax.Array:
    """Return the array of a tensor of whose devices this process owns none."""
    return jax.make_array_from_single_device_arrays(layout.physical_shape, layout.sharding, [], dtype=layout.dtype)


class P2PTransfer:
    """Moves values between the stages of one pipeline.

    Args:
        layouts: the layouts of all values between tasks.
        placements: the stages.
    """

    def __init__(self, layouts: dict, placements: Sequence[Placement]) -> None:
        self._layouts = layouts
        # By id, with the list beside it, so that the id stays its own.
        self._parcels: dict[int, tuple[Any, list]] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._latest: Future | None = None
        self._failure: BaseException | None = None
        self.far = jax.process_count() > 1
        # One thread, not several: transfers of one process must keep the schedule's order, or two processes wait for
        # each other.
        if self.far and placements[0].type == "cpu" and _one_device_per_process(placements):
            self._pool = ThreadPoolExecutor(1, "sbpjax-transfers")

    def parcels(self, sends: Sequence[Send]) -> list:
        """Return the transfers of this process for a list of sends; the same list always gives the same."""
        found = self._parcels.get(id(sends))
        if found is None:
            found = self._parcels[id(sends)] = (sends, self._make_parcels(sends))
        return found[1]

    def send(self, sends: Sequence[Send], env: dict) -> None:
        """Move values of ``env``, and put the arriving ones into it, maybe as `PendingReceive`."""
        if sends:
            for parcel in self.parcels(sends):
                self.move(parcel, parcel.arrays_to_send(env), env)

    def move(self, parcel, arrays: list, env: dict) -> None:
        """Move the values that a parcel took, and put the arriving ones into ``env``."""
        if self._pool is None or not parcel.far:
            env.update(zip(parcel.arrived, parcel.move(arrays), strict=False))
            return
        future = self._latest = self._pool.submit(self._move_parcel, parcel, arrays)
        for place, v in enumerate(parcel.arrived):
            env[v] = PendingReceive(future, place)

    def wait(self) -> None:
        """Wait until nothing that this process sends or receives is on its way.

        The script's next work may use the same connections; two programs there at once would mix their values.
        """
        latest, self._latest = self._latest, None
        if latest is not None:
            latest.result()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if self.far:
            jax.block_until_ready(Shipment.latest)

    def drain(self) -> None:
        """Wait for work that the script issued before, for the same reason."""
        if self._pool is not None:
            for device in jax.local_devices(backend="cpu"):
                _device_marker(device).block_until_ready()

    def _move_parcel(self, parcel: Parcel, arrays: list) -> Sequence:
        try:
            return parcel.move(arrays)
        except BaseException as error:  # of a send without a reader
            self._failure = error
            raise

    def _make_parcels(self, sends: Sequence[Send]) -> list:
        groups: dict[tuple, list[Send]] = {}
        for send in sends:
            source = self._layouts[send.value]
            # One program per pair of placements: a transfer costs 50 µs to issue at any size, and each is a
            # rendezvous.
            groups.setdefault((source.placement, send.target, self._kind(source, send)), []).append(send)
        found = []
        for (source, target, kind), group in groups.items():
            # `ppermute` over the devices of both placements, not `device_put`: across processes every process would
            # have to issue every `device_put`, also those it takes no part in (with four processes, those that skipped
            # one hung; jax 0.10).
            if owns_device(source) or owns_device(target):
                pairs = [(self._layouts[s.value], self._layouts[s.arrived]) for s in group]
                found.append(kind([s.value for s in group], [s.arrived for s in group], pairs))
        return found

    def _kind(self, source: Layout, send: Send) -> type:
        if not source.placement.spans_processes and not send.target.spans_processes:
            return Copy
        landing = self._layouts[send.arrived]
        same = source.placement.hierarchy == send.target.hierarchy and source.codes == landing.codes
        whole = all(code == -1 for code in (*source.codes, *landing.codes))
        return Shipment if same or whole else Conversion


def _one_device_per_process(placements: Sequence[Placement]) -> bool:
    """Return whether no process has two devices of a placement, and no placement is within another one."""
    sets = [set(p.devices.flat) for p in placements]
    if any(a is not b and a <= b for a in sets for b in sets):
        return False
    return all(len({d.process_index for d in s}) == len(s) for s in sets)


class Parcel:
    """Values that go together from one placement to another.

    Args:
        values: the variables to send.
        arrived: the variables of the arrived values.
        pairs: their layouts here and there.
    """

    far = True

    def __init__(self, values: list, arrived: list, pairs: list[tuple[Layout, Layout]]) -> None:
        self.values = values
        self.pairs = pairs
        self._sends = owns_device(pairs[0][0].placement)
        self.arrived = arrived if owns_device(pairs[0][1].placement) else []

    def arrays_to_send(self, env: dict) -> list:
        """Return the arrays to send; None for each on a process that only receives."""
        if not self._sends:
            return [None] * len(self.values)
        arrays = [env[v] for v in self.values]
        return [a.array() if a.__class__ is PendingReceive else a for a in arrays]

    def move(self, arrays: list) -> Sequence:
        """Return the arrays that arrive."""
        raise NotImplementedError


class Copy(Parcel):
    """A transfer between placements of this process."""

    far = False

    def __init__(self, values: list, arrived: list, pairs: list) -> None:
        super().__init__(values, arrived, pairs)
        self._shardings = [there.sharding for _, there in pairs]
        self._direct: tuple | None = None
        if all(a.placement.hierarchy == b.placement.hierarchy and a.codes == b.codes for a, b in pairs):
            self._direct = _fast_copy_arguments(self._shardings)

    def move(self, arrays):
        if self._direct is None:
            return jax.device_put(arrays, self._shardings)
        return _COPY(arrays, *self._direct)


# `jax.device_put` takes 40 µs per array to find out that its blocks go as they are; this takes 8 (jax 0.10).
_COPY = getattr(xla_client, "batched_copy_array_to_devices_with_sharding", None)


def _fast_copy_arguments(shardings: list) -> tuple | None:
    """Return the arguments of `_COPY` besides arrays; None if this version of JAX does without."""
    try:
        devices = [s._internal_device_list.addressable_device_list for s in shardings]
        semantics = [xla_client.ArrayCopySemantics.REUSE_INPUT] * len(shardings)
    except AttributeError:
        return None
    return None if _COPY is None else (devices, shardings, semantics)


class Conversion(Parcel):
    """Placements of unlike grids in several processes, by way of a layout that both have: weights, once a step."""

    def move(self, arrays):
        found = []
        for array, (leave, arrive) in zip(arrays, self.pairs, strict=True):
            found.append(transfer(make_remote_array(leave) if array is None else array, leave, arrive))
        # Its programs and those of other transfers do not know of each other.
        jax.block_until_ready(found)
        return found


class Shipment(Parcel):
    """Blocks of one placement go to the ranks of another one, in several processes."""

    # Ready when the last issued shipment is done.
    latest: Any = None

    def __init__(self, values: list, arrived: list, pairs: list) -> None:
        super().__init__(values, arrived, pairs)
        leave, arrive = pairs[0]
        sources, targets = list(leave.placement.devices.flat), list(arrive.placement.devices.flat)
        mine = jax.process_index()
        union = sources + [d for d in targets if d not in set(sources)]
        self._union = [d for d in union if d.process_index == mine]
        held = [d for d in sources if d.process_index == mine]
        self._held = len(held)
        self._from = [held.index(d) if d in held else None for d in self._union]
        self._to = [self._union.index(d) for d in targets if d.process_index == mine]
        self._sharding = NamedSharding(Mesh(np.asarray(union, dtype=object), ("u",)), PartitionSpec("u"))
        self._blocks = [tuple(source.sharding.shard_shape(source.physical_shape)) for source, _ in pairs]
        self._shapes = [(len(union) * max(b[:1], default=1), *b[1:]) for b in self._blocks]
        self._zeros = [
            [jax.device_put(np.zeros(b or (1,), s.dtype), d) for d in self._union]
            for b, (s, _) in zip(self._blocks, pairs, strict=True)
        ]
        work = [jax.device_put(np.zeros(_ENOUGH, np.float32), d) for d in self._union]
        self._work = self._join_blocks(work, (len(union) * _ENOUGH,), np.dtype(np.float32))
        facts = tuple((b or (1,), s.dtype) for b, (s, _) in zip(self._blocks, pairs, strict=True))
        self._program = _program(tuple(union), tuple(sources), tuple(targets), facts)

    def _join_blocks(self, blocks: list, shape: tuple, dtype) -> jax.Array:
        return jax.make_array_from_single_device_arrays(shape, self._sharding, blocks, dtype=dtype)

    def warm_up(self) -> None:
        """Run once on zeros: processes are connected when a program first runs, and have 30 seconds for it."""
        jax.block_until_ready(self.move([None] * len(self.values)))
        jax.block_until_ready(Shipment.latest)

    def move(self, arrays):
        given = [self._spread(array, i) for i, array in enumerate(arrays)]
        done, *sent = self._program(self._work, *given)
        Shipment.latest = done
        if not self.arrived:
            return ()
        return [self._land_array(array, i) for i, array in enumerate(sent)]

    def _spread(self, array, i: int) -> jax.Array:
        blocks = self._zeros[i]
        if array is not None:
            # `addressable_data` of a replicated array is always its first block.
            own = [array.addressable_data(0)] if self._held == 1 else [s.data for s in array.addressable_shards]
            if not self._blocks[i]:
                own = [block.reshape(1) for block in own]
            blocks = [blocks[k] if place is None else own[place] for k, place in enumerate(self._from)]
        return self._join_blocks(blocks, self._shapes[i], self.pairs[i][0].dtype)

    def _land_array(self, array, i: int) -> jax.Array:
        landing = self.pairs[i][1]
        blocks = [array.addressable_data(k) for k in self._to]
        if not self._blocks[i]:
            blocks = [block.reshape(()) for block in blocks]
        return jax.make_array_from_single_device_arrays(
            landing.physical_shape, landing.sharding, blocks, dtype=landing.dtype
        )


def connect_placement(placement: Placement) -> None:
    """Connect the processes of a placement for collectives along any of its axes, before a task needs it."""
    names = placement.axis_names
    groups = [g for n in range(1, len(names) + 1) for g in itertools.combinations(names, n)]

    def body(x):
        return sum(jax.lax.psum(x, group) for group in groups)

    mesh, spec = placement.auto_mesh, PartitionSpec()
    run = jit_without_mesh(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
    jax.block_until_ready(run(multi_host.replicate_value(np.zeros((), np.float32), placement)))


# Compiled here, once, and not at the first call: that would come between two transfers, where others already wait.
@functools.lru_cache(maxsize=1024)
def _program(union: tuple, sources: tuple, targets: tuple, facts: tuple) -> Any:
    """Return the compiled program that sends blocks of these shapes and dtypes: the k-th rank gets block k mod n."""
    place = {d: i for i, d in enumerate(union)}
    count = len(sources)
    rounds = [
        [(place[sources[k]], place[t]) for k, t in enumerate(targets[start : start + count])]
        for start in range(0, len(targets), count)
    ]

    def body(work, *blocks):
        me = jax.lax.axis_index("u")
        found = []
        for block in blocks:
            out = jax.lax.ppermute(block, "u", rounds[0])
            for pairs in rounds[1:]:
                mine = jnp.isin(me, np.asarray([t for _, t in pairs]))
                out = jax.lax.select(mine, jax.lax.ppermute(block, "u", pairs), out)
            found.append(out)
        # A chain of flops that XLA cannot fold away, with a result that is ready when the transfer is done.
        return (0.5 * work + 1.0, *found)

    mesh, spec = Mesh(np.asarray(union, dtype=object), ("u",)), PartitionSpec("u")
    sharding = NamedSharding(mesh, spec)
    run = jit_without_mesh(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
    structs = [
        jax.ShapeDtypeStruct((len(union) * b[0], *b[1:]), dtype, sharding=sharding)
        for b, dtype in (((_ENOUGH,), np.dtype(np.float32)), *facts)
    ]
    return run.lower(*structs).compile()


@functools.cache
def _compile_dummy_work(device) -> Any:
    work = jax.device_put(np.zeros(_ENOUGH, np.float32), device)
    return jit_without_mesh(lambda x: 0.5 * x + 1.0).lower(work).compile(), work


def _device_marker(device) -> jax.Array:
    """Return an array that is ready when the device has done the earlier work of this thread."""
    run, work = _compile_dummy_work(device)
    return run(work)
