"""Start of a run: find the coordinator's address, and call `jax.distributed.initialize`."""

from __future__ import annotations

import logging
import os
from typing import Any

import jax

from sbpjax._core.jax_private import ClusterEnv
from sbpjax._core.runtime import processes as world
from sbpjax._core.serialization import signing
from sbpjax.errors import DeviceStateError, DistributedError, OpValueError, page

from . import client, server
from .failure import FailureMonitor

_HEARTBEAT_S = 100
_watch: FailureMonitor | None = None


def connect(
    coordinator: str | None, num_processes: int | None, process_id: int | None, timeout_s: float, launcher: int = 0
) -> bool:
    """Connect this process with the others; see `sbpjax.env.init`."""
    if jax.distributed.is_initialized():
        return False
    found = _facts(coordinator, num_processes, process_id, timeout_s)
    if found is None:
        return False
    address, size, rank, local_rank = found
    operation = f"env.init({address!r}, {size}, {rank})"
    if not 0 <= rank < size:
        rule = "a rank is at least 0 and below the number of processes"
        raise OpValueError(operation, f"rank {rank} of {size}", rule, f"a process_id in 0 … {size - 1}")
    if world.devices_started():
        raise DeviceStateError(
            operation,
            "JAX has already started its devices",
            "the processes are connected before the first tensor, placement or JAX array is made",
            "call sbpjax.env.init() right after the imports",
        )
    met = client.rendezvous(address, rank, size, timeout_s, _job_key(operation))
    hosts = met.hosts
    same = [r for r in range(size) if hosts[r] == hosts[rank]]
    local_rank = same.index(rank) if local_rank is None else local_rank
    # It warns of proxies, which are not used here.
    logging.getLogger("jax._src.distributed").setLevel(logging.ERROR)
    jax.config.update(
        "jax_enable_preemption_service", False
    )  # it would swallow SIGTERM, with which launchers end ranks
    jax.distributed.initialize(
        address,
        size,
        rank,
        local_device_ids=[local_rank] if len(same) > 1 and not os.environ.get("JAX_LOCAL_DEVICE_IDS") else None,
        cluster_detection_method="deactivate",
        initialization_timeout=max(30, int(timeout_s)),
        heartbeat_timeout_seconds=max(10, min(_HEARTBEAT_S, int(timeout_s))),
        coordinator_bind_address=_bind_address(address) if rank == 0 else None,
    )
    processes = world.Processes(local_rank, len(set(hosts)), met.key)
    world.set_default_world(processes)
    global _watch
    _watch = FailureMonitor(processes, launcher)
    _watch.start()
    return True


def _job_key(operation: str) -> bytes:
    try:
        return signing.job_key()
    except OSError as error:
        rule = (
            "the ranks of a job share a secret that no one else knows; without one it is made of a key of this user's"
        )
        value = f'export {signing.SECRET}="$(openssl rand -hex 32)"'
        fix = f"{value}, the same on all ranks; see {page('explanation/security.md')}"
        raise DistributedError(operation, str(error), rule, fix) from None


def _bind_address(address: str) -> str | None:
    """Return where the coordinator listens: at the address that the others connect to, None for all addresses."""
    host, port = client.split(address)
    bind = server.bind_address(host)
    return (f"[{bind}]:{port}" if ":" in bind else f"{bind}:{port}") if bind else None


def _facts(coordinator: Any, num_processes: Any, process_id: Any, timeout_s: float) -> Any:
    """Return ``(address, size, rank, local rank)``, None if nothing indicates several processes."""
    given = (coordinator, num_processes, process_id)
    if None not in given:
        return (*given, None)
    if any(g is not None for g in given):
        names = ("coordinator", "num_processes", "process_id")
        missing = [n for n, g in zip(names, given, strict=True) if g is None]
        raise DistributedError(
            f"env.init(coordinator={coordinator!r}, num_processes={num_processes}, process_id={process_id})",
            f"{', '.join(missing)} not given",
            "the three are given together, or none of them",
            'sbpjax.env.init("host0:29500", num_processes=4, process_id=0)',
        )
    found = client.from_environment()
    if found is not None:
        return found if found[1] > 1 else None
    return _detect_cluster(timeout_s)


def _detect_cluster(timeout_s: float):
    """Return JAX's detection of the cluster: SLURM, Open MPI, Kubernetes, Cloud TPU."""
    address, size, rank, ids = ClusterEnv.auto_detect_unset_distributed_params(
        None, None, None, None, None, int(timeout_s)
    )
    if address is None or size is None or rank is None or size == 1:
        return None
    return address, size, rank, ids[0] if ids else None
