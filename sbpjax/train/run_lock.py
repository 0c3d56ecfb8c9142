"""`RunLock`: lock of a run's directory, so that only one run at a time writes into it.

    run7/.lock   {"pid": 4711, "host": "node3", "boot": "…", "began_s": 1767225600.0, "beat": 12}

Rank 0 of a run holds an flock(2) on the file. The kernel releases it when the process ends, however it ends, so nothing
has to be cleaned up after a kill. NFS passes such locks on to its server. Other network file systems keep them on one
machine, or have none, so the owner also increments a counter in the file every few seconds: a run of another machine is
alive while its counter grows. A new run watches the counter for some time, and takes the directory if it stays
constant.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from sbpjax.errors import TrainError

from .disk import convert_os_errors

NAME = ".lock"
_HELD = (errno.EWOULDBLOCK, errno.EACCES)
_PATIENCE_S = 3.0  # a process that was killed needs some time to end
_BEAT_S = 5.0
_SILENCE_S = 20.0  # after which an owner on another machine counts as dead
_POLL_S = 0.1
_SIZE = 512  # of the record, padded: writing it again needs no room on the disk


class RunLock:
    """The lock of a directory.

    Args:
        directory: of the run; made if it is missing.

    Example:
        >>> lock = RunLock(Path("run7"))
        >>> lock.take()
        >>> lock.read()["pid"] == os.getpid()
        True
        >>> lock.release()
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / NAME
        self._descriptor: int | None = None
        self._using = threading.Lock()
        self._end = threading.Event()

    def take(self) -> None:
        """Take the lock; do nothing if this object holds it.

        Raises:
            TrainError: a live run holds the lock, or the directory cannot be written to.
        """
        if self._descriptor is not None:
            return
        operation = f"beginning a run in {self.directory}"
        with convert_os_errors(operation, self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
            try:
                is_locked = _lock(descriptor)
                if is_locked is False or self._is_owner_alive(is_locked is None):
                    raise self._lock_held_error(operation)
                _write(descriptor, record := _record())
            except BaseException:
                os.close(descriptor)
                raise
        self._descriptor = descriptor
        _LOCKS.add(self)
        self._end = threading.Event()
        threading.Thread(target=self._beat, args=(record, self._end), daemon=True, name="sbpjax-run-lock").start()

    def release(self) -> None:
        """Release the lock."""
        self._end.set()
        with self._using:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, 0)
                os.close(descriptor)

    def read(self) -> dict[str, Any]:
        """Return the record of the owner, empty if that cannot be read."""
        try:
            found = json.loads(self.path.read_bytes())  # opened again: NFS then reads from the server
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _is_owner_alive(self, is_without_locks: bool) -> bool:
        """Return whether the recorded owner is alive, where no flock decides it."""
        first, here = self.read(), _record()
        is_here = first.get("host") == here["host"] or first.get("boot") == here["boot"]
        if not first or (is_here and not is_without_locks):
            return False
        end = time.monotonic() + _SILENCE_S
        while time.monotonic() < end:
            time.sleep(_POLL_S)
            if (now := self.read()) != first:
                return bool(now)
        return False

    def _beat(self, record: dict[str, Any], end: threading.Event) -> None:
        while not end.wait(_BEAT_S):
            record["beat"] += 1
            with self._using, contextlib.suppress(OSError):
                if self._descriptor is not None:
                    _write(self._descriptor, record)

    def _lock_held_error(self, operation: str) -> TrainError:
        owner = self.read()
        pid, host, began_s = (owner.get(name) for name in ("pid", "host", "began_s"))
        seen = f"a run of process {pid} on {host}" if owner else "a run of another process"
        if isinstance(began_s, (int, float)):
            seen += f", which began {_age(time.time() - began_s)} ago"
        fix = f"another directory, as trainer.out={self.directory}-2, or wait until that run has ended"
        rule = "one run at a time writes into a directory; it lets go when its process ends"
        return TrainError(operation, seen, rule, fix)


def _lock(descriptor: int) -> bool | None:
    """Lock a file; return False if another process has it, None where the file system has no locks."""
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _HELD:
                return None
            if time.monotonic() > end:
                return False
            time.sleep(_POLL_S)
        else:
            return True


def _write(descriptor: int, record: dict[str, Any]) -> None:
    os.pwrite(descriptor, json.dumps(record).ljust(_SIZE - 1).encode() + b"\n", 0)


def _record() -> dict[str, Any]:
    """Return the record of this process. Containers of one machine differ in host names, not in the boot id."""
    host = socket.gethostname()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = host
    return {"pid": os.getpid(), "host": host, "boot": boot, "began_s": time.time(), "beat": 0}


def _age(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


_LOCKS: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _forget_in_child() -> None:
    """Close the files of locks in a forked child, which would keep them locked after its parent's end."""
    for lock in _LOCKS:
        descriptor, lock._descriptor = lock._descriptor, None
        lock._using = threading.Lock()
        if descriptor is not None:
            os.close(descriptor)


os.register_at_fork(after_in_child=_forget_in_child)
