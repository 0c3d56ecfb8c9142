"""`torch.distributed`: names beside the collectives; these are `sbpjax.distributed`."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import jax

from sbpjax import distributed as _own
from sbpjax.distributed.group import GroupMember as GroupMember
from sbpjax.distributed.group import ProcessGroup as ProcessGroup
from sbpjax.distributed.group import group_of

from .absent import absent

default_pg_timeout = timedelta(seconds=_own.default_pg_timeout)
default_pg_nccl_timeout = default_pg_timeout
_WHY = "processes meet through the environment or at tcp://host:port"
_USE = "sbpjax.distributed.init_process_group()"
Store = absent("torch.distributed.Store", _WHY, _USE)
TCPStore = absent("torch.distributed.TCPStore", _WHY, _USE)
FileStore = absent("torch.distributed.FileStore", _WHY, _USE)
HashStore = absent("torch.distributed.HashStore", _WHY, _USE)
PrefixStore = absent("torch.distributed.PrefixStore", _WHY, _USE)


class group:
    """Constants: the group of all ranks."""

    WORLD = None


class Backend(str):
    """The name of what collectives run over, in small letters."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    ICI = "ici"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, ICI]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "tpu": ICI}

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {name!r}")
        return super().__new__(cls, name.lower())


def is_nccl_available() -> bool:
    """Return whether JAX has GPUs, between which it speaks through NCCL."""
    return jax.default_backend() == "gpu"


def is_gloo_available() -> bool:
    """Return True: CPUs speak through it."""
    return True


def is_mpi_available() -> bool:
    """Return False."""
    return False


is_ucc_available = is_xccl_available = is_mpi_available


def is_torchelastic_launched() -> bool:
    """Return whether PyTorch's launcher started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_backend_available(backend: str) -> bool:
    """Return whether collectives run over a backend here."""
    return backend.lower() == _own.get_backend()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return this process's rank on its machine."""
    return _own.get_local_rank()


def get_global_rank(group: ProcessGroup | None, group_rank: int) -> int:
    """Return the rank in the run of a rank in a group."""
    return group_of(group).ranks[group_rank]


def get_group_rank(group: ProcessGroup | None, global_rank: int) -> int:
    """Return the rank in a group of a rank in the run."""
    return group_of(group).index(global_rank, f"get_group_rank(group, {global_rank})")


_get_global_rank = get_global_rank


def _rank_not_in_group(group: ProcessGroup | None) -> bool:
    """Return whether this process is not in a group."""
    return group is not None and group.rank() < 0


def _get_default_group() -> ProcessGroup:
    """Return the group of all ranks."""
    return group_of(None)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait for all ranks; one that does not come is named by the error after ``SBPJAX_TIMEOUT``."""
    _own.barrier(group)


def _all_gather_base(output: Any, input: Any, group: Any = None, async_op: bool = False) -> Any:
    """Gather every rank's tensor into one; the old name of `all_gather_into_tensor`."""
    return _own.all_gather_into_tensor(output, input, group=group, async_op=async_op)


def _reduce_scatter_base(output: Any, input: Any, op: Any = None, group: Any = None, async_op: bool = False) -> Any:
    """Reduce, and keep this rank's part; the old name of `reduce_scatter_tensor`."""
    kind = _own.ReduceOp.SUM if op is None else op
    return _own.reduce_scatter_tensor(output, input, op=kind, group=group, async_op=async_op)


_broadcast_coalesced = _own.broadcast_coalesced


def __getattr__(name: str) -> Any:
    if name in ("init_device_mesh", "DeviceMesh"):
        from . import sharded

        return getattr(sharded, name)
    raise AttributeError(name)
