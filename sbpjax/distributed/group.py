"""Process groups, and `run`, which executes every collective on local tensors.

Rank 2 of four calls ``all_reduce(x)`` with its local ``float32[3]``. The four tensors are one array of shape
``(12,)`` over a mesh of one device per rank, on which a compiled `shard_map` program runs ``psum``; rank 2 takes its
own block of the result. Nothing is copied on the way in or out. The first time that a rank uses a program it compares
name, shapes and dtypes with the others (always with ``SBPJAX_CHECK=always``), so that a mismatch is an error on all
ranks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sbpjax._core.runtime import collective_trace
from sbpjax._core.runtime import processes as _world
from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh
from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax._core.tensor.handle.tensor import Tensor
from sbpjax._core.tensor.storage.payload import payload, payloads, refresh_tensor
from sbpjax.errors import AgreementError, DistributedError, MixedTensorError, OpTypeError, OpValueError


class ReduceOp(Enum):
    """Reductions over ranks."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "prod"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's class of the members


class ProcessGroup:
    """A group of ranks of the run, in a given order.

    Args:
        ranks: ranks of the run; the k-th is rank k of the group.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        self.ranks = tuple(ranks)

    def size(self) -> int:
        """Return the number of ranks in the group."""
        return len(self.ranks)

    def rank(self) -> int:
        """Return this process's rank in the group, -1 if it is not in it."""
        me = _world.current().rank
        return self.ranks.index(me) if me in self.ranks else -1

    def index(self, rank: int, operation: str) -> int:
        """Return the position of a rank of the run in the group.

        Raises:
            OpValueError: the rank is not in the group.
        """
        if rank not in self.ranks:
            rule = f"the rank is one of the group's: {list(self.ranks)}"
            raise OpValueError(operation, f"rank {rank}", rule, f"e.g. {operation.split('(')[0]}(..., {self.ranks[0]})")
        return self.ranks.index(rank)

    def __repr__(self) -> str:
        return f"ProcessGroup({list(self.ranks)})"


class GroupMember:
    """Constants under the name of `torch.distributed`."""

    NON_GROUP_MEMBER = None
    WORLD = None


def group_of(group: ProcessGroup | None) -> ProcessGroup:
    """Return a group, the one of all ranks for None."""
    return _world_group(_world.current().size) if group is None else group


@functools.lru_cache(maxsize=16)
def _world_group(size: int) -> ProcessGroup:
    return ProcessGroup(range(size))


def new_group(ranks: Sequence[int] | None = None, timeout=None, backend=None) -> ProcessGroup:
    """Return a group of some ranks. Every rank may call it; nothing is communicated.

    Args:
        ranks: ranks of the run; all by default.
        timeout: kept for its spelling; ``SBPJAX_TIMEOUT`` sets how long ranks wait.
        backend: kept for its spelling; the devices decide: Gloo on CPU, NCCL on GPU, ICI on TPU.

    Raises:
        OpValueError: a rank does not exist or is named twice.
    """
    size = _world.current().size
    chosen = list(range(size)) if ranks is None else [int(r) for r in ranks]
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= r < size for r in chosen):
        rule = f"a group has at least one rank of 0 … {size - 1}, each once"
        raise OpValueError("new_group(ranks)", f"{chosen}", rule, f"new_group({list(range(size))})")
    return ProcessGroup(chosen)


class Work:
    """The handle of an asynchronous collective: its results are in the tensors at once, as values to come.

    Args:
        tensors: the outputs of the collective.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = list(tensors)

    def wait(self, timeout=None) -> bool:
        """Wait until the results are there."""
        jax.block_until_ready(payloads(self._tensors))
        return True

    def is_completed(self) -> bool:
        """Return whether the results are there."""
        return all(payload(t).is_ready() for t in self._tensors)

    def is_success(self) -> bool:
        """Return whether the collective succeeded; a failure is raised where its results are read."""
        return self.is_completed()

    def result(self) -> list[Tensor]:
        """Return the tensors that the collective wrote."""
        self.wait()
        return list(self._tensors)


def local_array(operation: str, x) -> jax.Array:
    """Return the payload of a local tensor.

    Raises:
        OpTypeError: the value is no tensor.
        MixedTensorError: the tensor is global.
    """
    if not isinstance(x, Tensor):
        rule = "collectives take local tensors"
        raise OpTypeError(operation, f"a {type(x).__name__}", rule, "sbpjax.tensor(value)")
    refresh_tensor(x)
    if x.layout is not None:
        rule = "collectives are for local tensors; the layout of a global tensor decides the communication"
        fix = "x.to_global(sbp=sbpjax.sbp.broadcast), or x.to_local() first"
        raise MixedTensorError(operation, f"global {x.dtype.name}{list(x.shape)} as {x.sbp}", rule, fix)
    if x.is_lazy:
        rule = "a compiled program communicates through layouts"
        fix = "make the tensor global and use to_global inside the graph"
        raise DistributedError(operation, "a tensor inside a traced program", rule, fix)
    return payload(x)


@hide_mesh
def run(operation: str, body: Callable, group: ProcessGroup, arrays: Sequence[jax.Array], static: tuple = ()) -> list:
    """Run ``body`` on every rank of a group and return this rank's results.

    Args:
        operation: the collective, for errors.
        body: ``body(*blocks, axis, n, **static)`` with this rank's arrays, the mesh axis and its size; returns a tuple.
        group: the ranks that take part, this one included.
        arrays: this rank's arrays, of the same shapes and dtypes on all ranks.
        static: ``(name, value)`` pairs, equal on all ranks.
    """
    world = _world.current()
    facts = tuple((a.shape, str(a.dtype)) for a in arrays)
    key = (group.ranks, body, static, facts)
    if key not in world.agreed or collective_trace.mode() == "always":
        _agree(operation, world.exchange(operation, (facts, static), group.ranks))
        world.agreed.add(key)
    platform = next(iter(arrays[0].devices())).platform
    devices = tuple(world.device(r, platform) for r in group.ranks)
    program, sharding = _program(body, static, devices, tuple(len(s) for s, _ in facts))
    me = group.ranks.index(world.rank)
    call = _call(operation, key, isinstance(world, _world.Processes))
    if call is not None:
        call.note()

    def together(values: dict[int, Any]):
        whole = []
        for i, a in enumerate(arrays):
            shape = (len(devices) * a.shape[0], *a.shape[1:]) if a.ndim else (len(devices),)
            local = []
            for rank, given in values.items():
                block = given[i] if given[i].ndim else given[i].reshape(1)
                local.append(jax.device_put(block, devices[group.ranks.index(rank)]))
            whole.append(jax.make_array_from_single_device_arrays(shape, sharding, local))
        return program(*whole)

    outs = world.share(operation, tuple(arrays), together, group.ranks)
    mine = devices[me]
    return [world.to_local_device(next(s.data for s in o.addressable_shards if s.device == mine)) for o in outs]


@functools.lru_cache(maxsize=4096)
def _call(operation: str, key: tuple, processes: bool) -> collective_trace.Call | None:
    """Return the entry of a collective in the trace; None among threads, which share their programs."""
    ranks, body, static, facts = key
    shown = f"{', '.join(f'{d}{list(s)}' for s, d in facts)} {dict(static) or ''}".rstrip()
    return (
        collective_trace.call_of(ranks, f"{operation} {shown}", f"{body.__qualname__} {ranks}") if processes else None
    )


@functools.lru_cache(maxsize=4096)
def _program(body: Callable, static: tuple, devices: tuple, ndims: tuple[int, ...]):
    mesh = Mesh(np.asarray(devices, dtype=object), ("r",))
    spec = PartitionSpec("r")

    def local(*blocks):
        blocks = [b if n else b.reshape(()) for b, n in zip(blocks, ndims, strict=True)]
        outs = body(*blocks, axis="r", n=len(devices), **dict(static))
        return tuple(o if o.ndim else o.reshape(1) for o in outs)

    program = jit_without_mesh(jax.shard_map(local, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
    return program, NamedSharding(mesh, spec)


def _agree(operation: str, given: dict[int, Any]) -> None:
    """Raise if ranks have different shapes, dtypes or options."""
    kinds = _world.by_value(given)
    if len(kinds) > 1:
        seen = "; ".join(
            f"ranks {ranks_text(ranks)}: {', '.join(f'{d}{list(s)}' for s, d in facts)} {dict(static) or ''}".rstrip()
            for (facts, static), ranks in kinds.items()
        )
        rule = "all ranks of the group pass tensors of one shape and dtype, and the same options"
        raise AgreementError(operation, seen, rule, "give all ranks the same shape: pad, or gather the sizes first")
