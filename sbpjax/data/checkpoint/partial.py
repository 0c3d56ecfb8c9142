"""Staging directory of a checkpoint: a locked ``.partial`` directory, renamed when complete.

    run7/step_000000300.partial     written to by all processes of the run
    run7/.step_000000300.lock       locked by rank 0 as long as it lives and writes

The kernel releases the lock when its process ends, however it ends. So a ``.partial`` whose lock is free has no owner
and is removed; one whose lock is held belongs to a live writer and is kept, whatever its age and machine. On a file
system without locks, only the next save of the same name removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
from pathlib import Path

from sbpjax.errors import CheckpointError

from .blocks import ARRAYS
from .manifest import CHECKSUMS

_HELD = (errno.EWOULDBLOCK, errno.EACCES)


class _HeldError(Exception):
    """Another writer has the lock."""


class Partial:
    """The staging directory that is renamed to ``target`` when it is complete.

    Args:
        target: the path of the checkpoint to write.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(target.name + ".partial")
        self._lock: int | None = None
        self._own = False

    def make(self) -> None:
        """Take the lock and create the directory, empty.

        Raises:
            CheckpointError: another writer is alive, or the directory cannot be made; nothing is left then.
        """
        try:
            self._make()
        except OSError as error:
            seen = f"{type(error).__name__}: {error}"
            if isinstance(error, (FileExistsError, NotADirectoryError)):
                seen += ": something above it is no directory"
            fix = "check the path, its rights and the room on its disk"
            raise CheckpointError(f"saving {str(self.target)!r}", seen, "rank 0 makes a directory", fix) from None

    def _make(self) -> None:
        self.target.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock = _lock(self.target)
        except _HeldError:
            rule = "one run at a time writes a checkpoint"
            fix = "give each run a directory of its own"
            seen = f"{self.path.name} is being written by a process that is alive"
            raise CheckpointError(f"saving {str(self.target)!r}", seen, rule, fix) from None
        self._own = True
        try:
            shutil.rmtree(self.path, ignore_errors=True)
            (self.path / ARRAYS).mkdir(parents=True)
        except BaseException:
            self.remove()
            raise

    def commit(self) -> None:
        """Rename the complete directory to its target; the previous target is removed."""
        old = self.target.with_name(self.target.name + ".old")
        if self.target.exists():  # otherwise a crash came between these two renames, and the checkpoint is the old one
            shutil.rmtree(old, ignore_errors=True)
            self.target.rename(old)
        self.path.rename(self.target)
        _sync(self.target.parent)
        shutil.rmtree(old, ignore_errors=True)
        self._unlock()

    def remove(self) -> None:
        """Remove the written files, if this process began to write."""
        if self._own:
            shutil.rmtree(self.path, ignore_errors=True)
            self._unlock()

    def _unlock(self) -> None:
        lock, self._lock, self._own = self._lock, None, False
        if lock is not None:
            _release(self.target, lock)


def sweep(directory: Path, is_checkpoint) -> None:
    """Remove the leftovers of killed runs in a directory, and nothing of a live writer.

    Args:
        directory: the directory of the checkpoints.
        is_checkpoint: whether a name is that of a checkpoint there.
    """
    for entry in list(directory.iterdir()):
        name, _, left = entry.name.rpartition(".")
        target = directory / name
        complete = (target / CHECKSUMS).exists()
        if left not in ("partial", "old") or not is_checkpoint(name) or (left == "old" and not complete):
            continue
        with contextlib.suppress(_HeldError, OSError):
            lock = _lock(target)
            if lock is not None:
                shutil.rmtree(entry, ignore_errors=True)
                _release(target, lock)


def _lock_file(target: Path) -> Path:
    return target.with_name(f".{target.name}.lock")


def _lock(target: Path) -> int | None:
    """Return the descriptor of the lock of a target, None on a file system without locks."""
    path = _lock_file(target)
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:  # else the previous owner removed it
                return descriptor
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(descriptor)
            if error.errno in _HELD:
                raise _HeldError from None
            return None
        os.close(descriptor)


def _release(target: Path, descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.unlink(_lock_file(target))
    os.close(descriptor)


def _sync(directory: Path) -> None:
    """Sync the names in a directory to the disk, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
