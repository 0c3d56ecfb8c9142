"""Row files: one array per file, with header and checksum.

    8 bytes  "SBPROWS2" │ 56 bytes  dtype, width, rows, CRC-32 of the rows, of the header │ the rows, little-endian

The CRC-32 of the header covers the name of the file, too: a column is not taken for another one.

A snapshot (`sbpjax.one_embedding.snapshots`) is a directory of them. Nothing in one is code: a file is read as numbers
of the dtype that its header names, and a header that does not fit the file's length is refused.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sbpjax.errors import TableError

from .columns import allocate, no_space

_MAGIC = b"SBPROWS2"
_HEADER = struct.Struct("<8s16sQQII16x")
_COVERED = 44  # bytes of a header before its own checksum
_BLOCK_BYTES = 1 << 24
_DTYPES = {
    str(np.dtype(d)): np.dtype(d) for d in (np.float16, np.float32, np.float64, np.int32, np.int64, ml_dtypes.bfloat16)
}


def write_rows(path: str, dtype: Any, width: int, rows: int, blocks: Iterable[np.ndarray]) -> int:
    """Write a file of rows, through to the disk, and return its checksum.

    Args:
        path: of the file.
        dtype: of its numbers.
        width: of a row; 0 for one number per row.
        rows: how many there are.
        blocks: the rows, some at a time.

    Raises:
        TableError: the disk is full.
    """
    dtype = np.dtype(dtype)
    size = rows * max(1, width) * dtype.itemsize
    try:
        with open(path, "wb") as file:
            allocate(file.fileno(), 0, _HEADER.size + size)
            file.seek(_HEADER.size)
            crc = 0
            for block in blocks:
                data = np.ascontiguousarray(block, dtype).view(np.uint8).reshape(-1)
                crc = zlib.crc32(data, crc)
                file.write(data)
            file.seek(0)
            head = _HEADER.pack(_MAGIC, str(dtype).encode(), width, rows, crc, 0)
            file.write(_HEADER.pack(_MAGIC, str(dtype).encode(), width, rows, crc, _head_crc(path, head)))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise no_space(os.path.dirname(path), size, error) from error
    return crc


class RowFile:
    """A file of rows that is read in blocks.

    Args:
        path: of the file.

    Raises:
        TableError: it is no such file, or damaged.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                head = file.read(_HEADER.size)
                size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise damaged_error(path, error.strerror or str(error)) from error
        if len(head) < _HEADER.size:
            raise damaged_error(path, f"{len(head)} bytes, less than a header")
        magic, name, self.width, self.rows, self.crc, head_crc = _HEADER.unpack(head)
        if magic != _MAGIC:
            raise damaged_error(path, f"it begins with {magic!r}, not with {_MAGIC!r}")
        found = _DTYPES.get(name.rstrip(b"\0").decode("ascii", "replace"))
        if found is None:
            raise damaged_error(path, f"the dtype {name!r}")
        self.dtype = found
        wanted = _HEADER.size + self.rows * max(1, self.width) * found.itemsize
        if size != wanted:
            raise damaged_error(path, f"{size:,} bytes, and its header has {wanted:,}")
        if head_crc != _head_crc(path, head):
            raise damaged_error(path, "a header with another checksum, or of a file with another name")

    def check(self) -> None:
        """Raise a TableError if the checksum is not that of the rows."""
        crc = 0
        for block in self.blocks(max(1, _BLOCK_BYTES // (max(1, self.width) * self.dtype.itemsize))):
            crc = zlib.crc32(np.ascontiguousarray(block).view(np.uint8).reshape(-1), crc)
        if crc != self.crc:
            raise damaged_error(self.path, f"checksum {crc:08x}, and its header has {self.crc:08x}")

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        """Yield the rows, so many at a time."""
        width = max(1, self.width)
        with open(self.path, "rb") as file:
            file.seek(_HEADER.size)
            for start in range(0, self.rows, rows):
                count = min(rows, self.rows - start)
                block = np.fromfile(file, self.dtype, count * width)
                yield block.reshape(count, width) if self.width else block


def _head_crc(path: str, head: bytes) -> int:
    return zlib.crc32(head[:_COVERED], zlib.crc32(os.path.basename(path).encode()))


def damaged_error(path: str, seen: str) -> TableError:
    """Return the error of a file that is not what it should be."""
    return TableError(
        f"the file {path}",
        seen,
        "a snapshot's files are as they were written; a changed byte is found by its length or checksum",
        "another snapshot: table.snapshot_names() lists them",
    )
