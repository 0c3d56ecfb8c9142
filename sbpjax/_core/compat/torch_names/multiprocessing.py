"""`torch.multiprocessing`: Python's own, with a launcher of numbered processes.

Tensors travel by value: an array of a device belongs to the process that made it.
"""

from __future__ import annotations

import multiprocessing as _python
import multiprocessing.connection
import os
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sbpjax._core.runtime.user_line import warn

_strategy = "file_system"
_GRACE_S = 5.0  # for a process whose parent is gone


class ProcessException(Exception):
    """A process that was started here has failed.

    Args:
        msg: the message.
        error_index: its number among those started together.
        pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It raised an exception, whose traceback is the message."""


class ProcessExitedException(ProcessException):
    """It ended by a signal or with an exit code.

    Args:
        msg: the message.
        error_index: its number among those started together.
        pid: its process id.
        exit_code: its exit code.
        signal_name: the name of the signal.
    """

    def __init__(self, msg: str, error_index: int, pid: int, exit_code: int, signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _end_with_parent() -> None:
    """Interrupt this process when its parent is gone, as PyTorch does, and kill it if that is not enough."""

    def wait(parent: Any) -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(_GRACE_S)
        os.kill(os.getpid(), signal.SIGKILL)

    parent = _python.parent_process()
    if parent is not None:
        threading.Thread(target=wait, args=(parent,), daemon=True, name="sbpjax-parent").start()


def _wrap(fn: Callable, i: int, args: tuple, error_file: str) -> None:
    _end_with_parent()
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        Path(error_file).write_text(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """Processes that were started together.

    Args:
        processes: the processes.
        error_files: where each writes its traceback.
    """

    def __init__(self, processes: list, error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return their process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for one of them to end; return whether all have.

        Args:
            timeout: seconds to wait; None waits on.
            grace_period: seconds that the others get to end by themselves when one has failed.

        Raises:
            ProcessRaisedException: one raised an exception; the others are ended.
            ProcessExitedException: one ended with another code than 0; the others are ended.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)  # type: ignore[arg-type]
            self.processes[index].join()
            if self.processes[index].exitcode:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        until = time.monotonic() + (grace_period or 0)
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()) if grace_period else 0)
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()
        self._raise(failed)
        return False

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        text = Path(self.error_files[index]).read_text()
        if text:
            said = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            raise ProcessRaisedException(said, index, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            raise ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, name
            )
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
    **options: Any,
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in a process of its own for each i.

    Args:
        fn: a function of the process's number and the arguments; pickled with ``"spawn"``.
        args: the arguments.
        nprocs: how many processes.
        join: wait for all of them.
        daemon: whether they end with this process.
        start_method: ``"spawn"``, ``"fork"`` or ``"forkserver"``.
        options: accepted.

    Returns:
        None, or without `join` the `ProcessContext`.

    Raises:
        ProcessException: one of them failed.
    """
    context = _python.get_context(start_method)
    processes: list[Any] = []
    error_files = []
    for i in range(nprocs):
        with tempfile.NamedTemporaryFile(prefix="sbpjax-process-", delete=False) as file:
            error_files.append(file.name)
        process = context.Process(target=_wrap, args=(fn, i, args, error_files[i]), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        processes.append(process)
    started = ProcessContext(processes, error_files)
    if not join:
        return started
    try:
        while not started.join():
            pass
    finally:
        for name in error_files:
            Path(name).unlink(missing_ok=True)
    return None


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in a fresh process for each i; see `start_processes`."""
    if start_method != "spawn":
        warn(f"spawn takes no other start_method than 'spawn', not {start_method!r}", FutureWarning)
    return start_processes(fn, args, nprocs, join, daemon, "spawn")


def get_all_sharing_strategies() -> set[str]:
    """Return the ways in which PyTorch shares memory; accepted here, where tensors travel by value."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Return the value given to `set_sharing_strategy`."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept a way of sharing memory."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(f"{new_strategy!r} is none of {sorted(get_all_sharing_strategies())}")
    _strategy = new_strategy


def init_reductions() -> None:
    """Do nothing: tensors travel by value."""


unlink_all_shared_memory = init_reductions


def __getattr__(name: str) -> Any:
    return getattr(_python, name)


def __dir__() -> Sequence[str]:
    return sorted({*globals(), *dir(_python)})
