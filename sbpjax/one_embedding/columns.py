"""Columns of a row store: growing arrays in memory or in memory-mapped files.

A file takes its blocks from the disk before anything is written into it, so a full disk is an error where a table
grows, and never a crash of the process later (writing to a mapped page without a block raises a signal, not an
exception). It has no name: whatever ends the process, the system takes the space back. What lasts is a snapshot.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import Any

import numpy as np

from sbpjax.errors import TableError

_LEAST_ROWS = 1 << 12
_LEAST_GROWTH_BYTES = 1 << 26


class MemoryColumn:
    """An array of rows in memory.

    Args:
        width: the length of a row; 0 for one number per row.
        dtype: of its numbers.
        fill: what new rows hold.
    """

    def __init__(self, width: int, dtype: Any, fill: float = 0.0) -> None:
        self.width, self.dtype, self.fill = width, np.dtype(dtype), fill
        self.data = self._make_rows(_LEAST_ROWS)

    def _make_rows(self, rows: int) -> np.ndarray:
        shape = (rows, self.width) if self.width else (rows,)
        return np.zeros(shape, self.dtype) if self.fill == 0 else np.full(shape, self.fill, self.dtype)

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all."""
        if rows > len(self.data):
            old = self.data
            made = self._make_rows(max(rows, 2 * len(old)))
            made[: len(old)] = old
            self.data = made

    def close(self) -> None:
        """Let the memory go."""
        self.data = self._make_rows(0)


class FileColumn:
    """An array of rows in a mapped file without a name.

    Args:
        width: the length of a row.
        dtype: of its numbers.
        fill: what new rows hold.
        folder: where the file lies.
    """

    def __init__(self, width: int, dtype: Any, fill: float, folder: str) -> None:
        self.width, self.dtype, self.fill = width, np.dtype(dtype), fill
        self._row_bytes, self._folder = width * self.dtype.itemsize, folder
        try:
            os.makedirs(folder, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder, prefix=".rows-")  # closed by `close`
        except OSError as error:
            raise no_space(folder, 0, error) from error
        weakref.finalize(self, self._file.close)
        self.data = np.empty((0, width), self.dtype)

    def reserve(self, rows: int) -> None:
        """Make room for so many rows in all.

        Raises:
            TableError: the disk has not so much; nothing has changed.
        """
        old = len(self.data)
        if rows <= old:
            return
        more = max(rows - old, old // 4, _LEAST_GROWTH_BYTES // self._row_bytes)
        try:
            self._allocate(old, more)
        except OSError:
            more = rows - old  # the last space there is, before it is an error
            try:
                self._allocate(old, more)
            except OSError as error:
                raise no_space(self._folder, more * self._row_bytes, error) from error
        shape = (old + more, self.width)
        made = np.memmap(self._file, self.dtype, "r+", 0, shape)
        if self.fill != 0:
            made[old:] = self.fill
        self.data = made

    def _allocate(self, old: int, more: int) -> None:
        allocate(self._file.fileno(), old * self._row_bytes, more * self._row_bytes)

    def close(self) -> None:
        """Give the space back."""
        self.data = np.empty((0, self.width), self.dtype)
        self._file.close()


def allocate(descriptor: int, start_bytes: int, count_bytes: int) -> None:
    """Take blocks of a disk for a part of a file.

    Raises:
        OSError: there are not so many; the file is as long as before.
    """
    try:
        os.posix_fallocate(descriptor, start_bytes, count_bytes)
    except OSError:
        os.ftruncate(descriptor, start_bytes)
        raise


def no_space(folder: str, count_bytes: int, error: OSError) -> TableError:
    """Return the error of a disk that takes no more."""
    wanted = f"{count_bytes / 2**20:.0f} MiB more" if count_bytes else "a file"
    return TableError(
        f"rows of a table in {folder}",
        f"{wanted}: {error.strerror}",
        "space is taken before it is written to; nothing was changed",
        'free some space, another persistent_path, or capacity=... with evict="frequency"',
    )
