"""Disk errors of a run outside its checkpoints: converted to `TrainError`, and raised on all ranks.

Rank 0 alone writes metrics and configuration. Where it cannot, because the disk is full, all ranks raise: the others
would wait for rank 0 in the next step.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from sbpjax import env
from sbpjax.errors import SbpjaxError, TrainError
from sbpjax.utils import host

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)
_IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST)


class convert_os_errors:  # a class: an error names the user's line, and not that of contextlib
    """Raise errors of the operating system as a `TrainError`.

    Args:
        operation: the name of the operation.
        path: the file.

    Example:
        >>> try:
        ...     with convert_os_errors("reading notes", "run7"):
        ...         _ = open("run7/notes")
        ... except TrainError as error:
        ...     print(str(error).splitlines()[1].strip())
        seen: FileNotFoundError: No such file or directory: run7/notes
    """

    def __init__(self, operation: str, path: str | os.PathLike) -> None:
        self.operation, self.path = operation, os.fspath(path)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, OSError):
            return
        where = os.fspath(error.filename or self.path)
        fix = f"check {where} and its disk"
        if error.errno in _NO_ROOM:
            fix = f"make room on the disk of {self.path}, then --resume; or choose another directory"
        elif error.errno in _NO_RIGHT:
            fix = f"rights to read and write {where}, or another directory"
        elif error.errno in _IN_THE_WAY:
            fix = f"move {where} away, or choose another directory"
        seen = f"{type(error).__name__}: {error.strerror or error}: {where}"
        rule = "a run reads and writes files in its directory"
        raise TrainError(self.operation, seen, rule, fix) from None


def run_on_rank_0(operation: str, work: Callable[[], Any]) -> None:
    """Run a function on rank 0; if it fails, all ranks raise. All processes call it.

    Args:
        operation: the name of the operation, equal on all ranks.
        work: the operation.

    Raises:
        SbpjaxError: that of rank 0.
    """
    failure = None
    if env.get_rank() == 0:
        try:
            work()
        except SbpjaxError as error:
            failure = error
    gathered = host.current().exchange(operation, None if failure is None else str(failure))
    if failure is not None:
        raise failure
    if gathered[0] is not None:
        raise TrainError(f"rank 0: {gathered[0]}")
