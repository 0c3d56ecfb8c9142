"""`torch.distributed`: names besides the collectives of `sbpjax.distributed`."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import jax

from sbpjax import distributed as _own
from sbpjax.distributed.group import GroupMember as GroupMember
from sbpjax.distributed.group import ProcessGroup as ProcessGroup
from sbpjax.distributed.group import group_of

from .dtensor.mesh import DeviceMesh as DeviceMesh
from .dtensor.mesh import init_device_mesh as init_device_mesh

default_pg_timeout = timedelta(seconds=_own.default_pg_timeout)
_REASON = "the rendezvous is through the environment or at tcp://host:port"
_USE = "sbpjax.distributed.init_process_group()"


class group:
    """Constants: the group of all ranks."""

    WORLD = None


class Backend(str):
    """The name of the backend of collectives, in small letters."""

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


def get_global_rank(group: ProcessGroup | None, group_rank: int) -> int:
    """Return the rank in the run of a rank in a group."""
    return group_of(group).ranks[group_rank]


_get_global_rank = get_global_rank


def _get_default_group() -> ProcessGroup:
    """Return the group of all ranks."""
    return group_of(None)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait for all ranks; one that does not come is named by the error after ``SBPJAX_TIMEOUT``."""
    _own.barrier(group)


def get_default_backend_for_device(device: Any) -> str:
    """Return the transport of collectives between devices of a kind."""
    return Backend.default_device_backend_map.get(str(device).partition(":")[0], Backend.UNDEFINED)


def is_torchelastic_launched() -> bool:
    """Return whether a launcher that restarts processes started this one."""
    return "RESTART_COUNT" in os.environ
