"""Process group initialization and queries (ranks, sizes, backend) under PyTorch's names."""

from __future__ import annotations

from typing import Any

import jax

from sbpjax._core.runtime import processes
from sbpjax.errors import DistributedError

from . import env
from .group import ProcessGroup, group_of

default_pg_timeout = processes.DEFAULT_TIMEOUT_S


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store=None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Connect the processes; under the launcher they are already. See `sbpjax.env.init`.

    Args:
        backend: kept for its spelling; the devices decide: Gloo on CPU, NCCL on GPU, ICI on TPU.
        init_method: ``"env://"`` or ``"tcp://host:port"``.
        timeout: seconds or a timedelta.
        world_size: the number of processes, with ``tcp://``.
        rank: this process's rank, with ``tcp://``.
        store: not supported.
        group_name: kept for its spelling.
        pg_options: kept for its spelling.
        device_id: kept for its spelling: a process's devices are its own from the start.

    Raises:
        DistributedError: another kind of rendezvous is requested.
    """
    seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
    if store is None and init_method in (None, "env://"):
        env.init(timeout=seconds)
    elif store is None and str(init_method).startswith("tcp://"):
        env.init(str(init_method)[6:], world_size, rank, timeout=seconds)
    else:
        raise DistributedError(
            f"init_process_group(init_method={init_method!r})",
            f"init_method={init_method!r}, store={store!r}",
            "the rendezvous is through the environment or at tcp://host:port",
            'init_process_group(init_method="tcp://127.0.0.1:29500", world_size=2, rank=0)',
        )
    processes.current().is_initialized = True


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Reset `is_initialized` to False; the processes stay connected until they end."""
    if group is None or group.size() == get_world_size():
        processes.current().is_initialized = False


def is_available() -> bool:
    """Return whether collectives can be used: always."""
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` was called, or the launcher or `sbpjax.simulate` connected this rank."""
    world = processes.current()
    if world.is_initialized is not None:
        return world.is_initialized
    return jax.distributed.is_initialized() or world.size > 1


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return this process's rank in the run, or in a group (-1 if it is not in it)."""
    return processes.current().rank if group is None else group.rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks of the run, or of a group (-1 if this process is not in it)."""
    if group is None:
        return processes.current().size
    return group.size() if group.rank() >= 0 else -1


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """Return the ranks of the run that form a group."""
    return list(group_of(group).ranks)


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the transport of collectives: ``gloo`` on CPU, ``nccl`` on GPU, ``ici`` on TPU."""
    return {"cpu": "gloo", "gpu": "nccl", "tpu": "ici"}.get(jax.default_backend(), jax.default_backend())
