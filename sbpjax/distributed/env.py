"""Environment of the process: its rank, the number of devices, and virtual CPU devices.

A notebook on a laptop has one CPU device. To write and try a program for eight, set up eight virtual ones before the
first tensor exists:

    SBPJAX_CPU_DEVICES=8 python train.py          # or, in the program:
    >>> import sbpjax
    >>> sbpjax.env.set_cpu_devices(8)             # doctest: +SKIP

Virtual devices have a trap: XLA runs every device's part of a program on one thread pool with as many threads as there
are cores. On 2 cores, 8 devices that wait for each other in queued collectives fill the pool with waiters, and XLA
aborts the whole process after a while. A larger pool cures it. XLA takes its size from the environment variable
``NPROC`` when the CPU backend starts, so importing sbpjax arranges for it to be set by then. It starts no backend. A
single device never waits, and keeps JAX's own pool.
"""

from __future__ import annotations

import os
import re
from typing import Any

import jax

from sbpjax._core.jax_private import xla_bridge as _xla_bridge
from sbpjax._core.runtime import processes
from sbpjax._core.runtime.lifecycle import at_stage
from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax._core.runtime.processes import devices_started as devices_started
from sbpjax._core.runtime.user_line import warn
from sbpjax._core.serialization import signing
from sbpjax.errors import DeviceStateError, OpValueError, message
from sbpjax.sbp import placement

rendezvous = LazyModule("sbpjax.distributed.rendezvous.start")  # of runs of several processes


MIN_CPU_THREADS = 32  # each launch wakes the pool: with 64 an op on 8 devices costs twice the main-thread time
THREADS_PER_CPU_DEVICE = 4


def set_cpu_devices(count: int) -> None:
    """Set the number of virtual CPU devices; call it before the first tensor, placement or JAX array is made.

    Args:
        count: the number of CPU devices, at least 1; the ranks of ``placement("cpu", ...)`` are 0 to ``count - 1``.

    Raises:
        DeviceStateError: the devices were started already with another count.
        ValueError: ``count`` is not a positive integer.

    Example:
        >>> sbpjax.env.set_cpu_devices(8)
        >>> sbpjax.placement.all("cpu").ranks
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise OpValueError(
            f"env.set_cpu_devices({count!r})",
            f"a {type(count).__name__}",
            "the number of CPU devices is an integer of at least 1",
            "sbpjax.env.set_cpu_devices(8)",
        )
    if devices_started():
        have = len(jax.devices("cpu"))
        if have == count:
            return
        raise DeviceStateError(
            f"env.set_cpu_devices({count})",
            f"JAX has already started its devices, {have} of them CPU",
            "the number of CPU devices is fixed when the first tensor, placement or JAX array is made",
            f"start the program with SBPJAX_CPU_DEVICES={count}, or call this after the imports",
        )
    _ensure_thread_pool(count)
    jax.config.update("jax_num_cpu_devices", count)


def prepare_process() -> None:
    """Read ``SBPJAX_CPU_DEVICES``, size XLA's CPU thread pool and connect the processes that the launcher started.

    Importing sbpjax calls this once.

    Raises:
        ValueError: ``SBPJAX_CPU_DEVICES`` is not a positive integer.

    Warns:
        RuntimeWarning: JAX has already started with another number of CPU devices, which stays, or with several of them
            on a small pool of threads.
    """
    wanted = os.environ.get("SBPJAX_CPU_DEVICES", "")
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise OpValueError(
                "importing sbpjax",
                f"SBPJAX_CPU_DEVICES={wanted!r} in the environment",
                "the number of CPU devices is an integer of at least 1",
                "SBPJAX_CPU_DEVICES=8",
            )
        if devices_started() and len(jax.devices("cpu")) != int(wanted):
            have = len(jax.devices("cpu"))
            seen = f"SBPJAX_CPU_DEVICES={wanted} in the environment, and JAX has already started with {have} of them"
            rule = "the number of CPU devices is fixed when the first JAX array is made, and stays"
            fix = "import sbpjax before the first JAX array is made"
            warn(message("importing sbpjax", seen, rule, fix), RuntimeWarning)
        else:
            set_cpu_devices(int(wanted))
    if not devices_started():
        _size_pool_at_start()
    elif _pool_threads() < MIN_CPU_THREADS and jax.default_backend() == "cpu" and jax.local_device_count("cpu") > 1:
        devices = jax.local_device_count("cpu")
        warn(
            message(
                "importing sbpjax",
                f"{devices} CPU devices were started before, on a pool of {_pool_threads()} threads",
                f"queued collectives over virtual devices need {MIN_CPU_THREADS} threads, or XLA may abort the process",
                "import sbpjax before the first JAX array is made, or set NPROC=32 in the environment",
            ),
            RuntimeWarning,
        )
    launcher = os.environ.pop("SBPJAX_LAUNCHED", "")  # so children of this process are no ranks
    if launcher:
        rendezvous.connect(None, None, None, processes.timeout_s(), int(launcher))
        os.environ.pop(signing.SECRET, None)  # stored; child processes and logs do not need it


def _pool_threads() -> int:
    value = os.environ.get("NPROC", "")
    return int(value) if value.isdecimal() else os.cpu_count() or 1


def _size_pool_at_start() -> None:
    """Size the pool when the CPU backend starts, for devices that are set up after the import."""
    entry = _xla_bridge._backend_factories.get("cpu")  # jax 0.10 has no public hook before a backend starts
    if entry is None or getattr(entry.factory, "sizes_pool", False):
        return
    start = entry.factory

    def size_pool(*arguments, **options):
        config: Any = jax.config
        count = config.jax_num_cpu_devices
        if count < 0:
            flag = re.search(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
            count = int(flag[1]) if flag else 1
        _ensure_thread_pool(count, alone=not jax.distributed.is_initialized())
        return start(*arguments, **options)

    size_pool.sizes_pool = True
    entry.factory = size_pool


def _ensure_thread_pool(devices: int, alone: bool = True) -> None:
    """Raise ``NPROC`` to the need of `devices` virtual CPU devices; a larger value of the user's stays.

    The only device of a single process never waits for others. There a large pool only cuts products into more pieces
    than there are cores: a GPT step cost 1.3 times the CPU time with 32 threads on 2 cores.
    """
    if devices == 1 and alone:
        return
    needed = max(MIN_CPU_THREADS, THREADS_PER_CPU_DEVICE * devices)
    if _pool_threads() < needed:
        os.environ["NPROC"] = str(needed)


def init(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    timeout: float | None = None,
) -> bool:
    """Connect the processes of this run; call it before the first tensor, placement or JAX array is made.

    Under ``python -m sbpjax.distributed.launch`` importing sbpjax does it. Without arguments they come from the
    environment: ``MASTER_ADDR``, ``MASTER_PORT``, ``WORLD_SIZE`` and ``RANK``, as launchers set them, else from JAX's
    detection of SLURM, Open MPI, Kubernetes indexed jobs and Cloud TPU. On CPU collectives run over Gloo, on GPU over
    NCCL, on TPU over its own links.

    Args:
        coordinator: ``host:port`` of process 0.
        num_processes: the number of processes.
        process_id: this process's rank.
        timeout: seconds to wait for the others; by default ``SBPJAX_TIMEOUT``, else 600.

    Returns:
        Whether processes were connected: False with one process, and when they are connected already.

    Raises:
        LostRankError: ranks did not connect within the timeout; the text names them.
        AgreementError: two processes claim the same rank, or run other versions.
        DistributedError: rank 0 cannot use the port, or only a part of the arguments is given.
        DeviceStateError: the devices were started before.
    """
    timeout = processes.timeout_s() if timeout is None else float(timeout)
    if not timeout > 0:
        raise OpValueError(
            f"env.init(timeout={timeout})", f"{timeout} s", "a timeout is positive", "env.init(timeout=60)"
        )
    return rendezvous.connect(coordinator, num_processes, process_id, timeout)


def get_world_size() -> int:
    """Return the number of ranks of this run (processes, not devices); 1 without a launcher."""
    return processes.current().size


def get_rank() -> int:
    """Return this process's index among all processes; 0 without a launcher."""
    return processes.current().rank


def get_local_rank() -> int:
    """Return this process's index among the processes of its own machine; 0 without a launcher."""
    return processes.current().local_rank


def get_node_size() -> int:
    """Return the number of machines of this run; 1 without a launcher."""
    return processes.current().nodes


def is_multi_client() -> bool:
    """Return whether every process runs the program itself; always true: sbpjax has no single-client mode."""
    return True


@at_stage("pre-alpha")
def rdma_is_initialized() -> bool:
    """Return whether sbpjax itself set up RDMA: never. NCCL and the TPU runtime choose their transports themselves."""
    return False


@at_stage("pre-alpha")
def init_rdma() -> None:
    """Do nothing: whether collectives go over RDMA is decided by NCCL or the TPU runtime, not by sbpjax.

    On CPU, Gloo uses TCP. ``NCCL_DEBUG=INFO`` in the environment makes NCCL log its transport.
    """


def all_device_placement(device_type: str):
    """Return the 1-D placement of every device of a type, under OneFlow's name; see `sbpjax.placement.all`."""
    return placement.all(device_type)
