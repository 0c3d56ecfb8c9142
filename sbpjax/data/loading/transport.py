"""Transport of batches from workers: small objects pickled over a socket, arrays through shared memory.

A worker puts all arrays of a batch side by side into one *region*, memory without a name that both processes have
mapped: its descriptor is sent over the socket once. The arrays of the training process are views of the region; when
the last of them is gone, the region's number goes back with the next task, and the worker writes the next batch
there. So a batch is copied once, and a killed process leaves nothing behind.

Source of the descriptor passing: unix(7), SCM_RIGHTS.
"""

from __future__ import annotations

import collections
import io
import mmap
import os
import pickle
import socket
import struct
import tempfile
import weakref
from typing import Any

import numpy as np

ALIGNMENT_BYTES = 64  # arrays that begin here can be used by XLA without a copy
INLINE_BYTES = 2048  # smaller batches are pickled
_HEAD = struct.Struct("<QB")


def send(sock: socket.socket, data: bytes, descriptors: list[int] | None = None) -> None:
    """Send a message and descriptors with it."""
    head = _HEAD.pack(len(data), len(descriptors or ()))
    if descriptors:
        socket.send_fds(sock, [head], descriptors)
    else:
        sock.sendall(head)
    sock.sendall(data)


def receive(sock: socket.socket) -> tuple[bytearray, list[int]]:
    """Return the next message; EOFError if the other side is gone."""
    head, descriptors, _, _ = socket.recv_fds(sock, _HEAD.size, 4)
    if not head:
        raise EOFError
    while len(head) < _HEAD.size:
        head += _receive_exactly(sock, _HEAD.size - len(head))
    size, _ = _HEAD.unpack(head)
    return _receive_exactly(sock, size), list(descriptors)


def _receive_exactly(sock: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        n = sock.recv_into(view[got:])
        if not n:
            raise EOFError
        got += n
    return data


def memory(size: int) -> int:
    """Return the descriptor of new memory without a name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("sbpjax-data", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


class Region(np.ndarray):
    """The bytes of a region; views of it keep it alive, which plain views of a plain array would not."""


class Place:
    """Position of an array in its batch's region."""

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...], offset: int, kind: str) -> None:
        self.dtype, self.shape, self.offset, self.kind = dtype, shape, offset, kind

    def __reduce__(self):
        return Place, (self.dtype, self.shape, self.offset, self.kind)


class _Packer(pickle.Pickler):
    """Pickles a batch with its arrays taken out."""

    def __init__(self, file: Any, tensor: type) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.tensor, self.arrays, self.size = tensor, [], 0

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, np.ndarray) or obj.dtype.hasobject or type(obj) not in (np.ndarray, self.tensor):
            return None
        offset = -(-self.size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self.size = offset + obj.nbytes
        self.arrays.append((obj, offset))
        return Place(obj.dtype, obj.shape, offset, "tensor" if isinstance(obj, self.tensor) else "array")


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: Any, region: Any, make: Any) -> None:
        super().__init__(file)
        self.region, self.make = region, make

    def persistent_load(self, pid: Any) -> Any:
        if self.region is None or not all(pid.shape):
            array = np.empty(pid.shape, pid.dtype)
        else:
            array = np.ndarray(pid.shape, pid.dtype, self.region, pid.offset)
        return self.make(array) if pid.kind == "tensor" else array


class Arena:
    """A worker's regions.

    Args:
        tensor: the class of arrays that arrive as tensors.
    """

    def __init__(self, tensor: type) -> None:
        self._tensor = tensor
        self._maps: dict[int, mmap.mmap] = {}
        self._free: list[int] = []
        self._count = 0

    def free(self, regions: list[int]) -> None:
        """Take back regions that nothing views any more."""
        self._free += regions

    def pack(self, value: Any) -> tuple[bytes, dict[str, Any], list[int]]:
        """Return a value pickled, where its arrays are, and the descriptor of a new region to be sent along."""
        file = io.BytesIO()
        packer = _Packer(file, self._tensor)
        packer.dump(value)
        if packer.size <= INLINE_BYTES:
            plain = bytearray(packer.size)
            _fill(plain, packer.arrays)
            return file.getvalue(), {"inline": bytes(plain)}, []
        where, descriptors = self._region(packer.size)
        _fill(self._maps[where["region"]], packer.arrays)
        return file.getvalue(), where, descriptors

    def _region(self, size: int) -> tuple[dict[str, Any], list[int]]:
        """Return a free region that is large enough, or a new one in the place of the free ones that are not."""
        fitting = [r for r in self._free if len(self._maps[r]) >= size]
        if fitting:
            region = min(fitting, key=lambda r: len(self._maps[r]))
            self._free.remove(region)
            return {"region": region}, []
        dropped, self._free = self._free, []
        for region in dropped:
            self._maps.pop(region).close()
        rounded = -(-size * 9 // 8 // mmap.PAGESIZE) * mmap.PAGESIZE  # batches differ a little in size
        region, self._count = self._count, self._count + 1
        descriptor = memory(rounded)
        self._maps[region] = mmap.mmap(descriptor, rounded)
        return {"region": region, "size": rounded, "dropped": dropped}, [descriptor]


def _align_bytes(data: bytes) -> np.ndarray | None:
    """Return bytes in memory of their own that begins at a multiple of `ALIGNMENT_BYTES`."""
    if not data:
        return None
    room = np.empty(len(data) + ALIGNMENT_BYTES, np.uint8)
    begin = -room.ctypes.data % ALIGNMENT_BYTES
    whole = room[begin : begin + len(data)]
    whole[...] = np.frombuffer(data, np.uint8)
    return whole


def _fill(buffer: Any, arrays: list) -> None:
    for array, offset in arrays:
        if array.size:
            np.ndarray(array.shape, array.dtype, buffer, offset)[...] = array


class Views:
    """The training process's side of a worker's regions.

    Args:
        make: makes a tensor of an array.
    """

    def __init__(self, make: Any) -> None:
        self._make = make
        self._maps: dict[int, mmap.mmap] = {}
        self.released: collections.deque[int] = collections.deque()

    def unpack(self, data: Any, where: dict[str, Any], descriptors: list[int]) -> Any:
        """Return the value that `Arena.pack` was given."""
        if "inline" in where:
            plain = _align_bytes(where["inline"])
            return _Unpacker(io.BytesIO(data), plain, self._make).load()
        number = where["region"]
        if descriptors:
            for dropped in where["dropped"]:
                self._maps.pop(dropped, None)
            self._maps[number] = mmap.mmap(descriptors[0], where["size"])
            os.close(descriptors[0])
        mapped = self._maps[number]
        region = Region((len(mapped),), np.uint8, mapped)
        weakref.finalize(region, self.released.append, number)
        return _Unpacker(io.BytesIO(data), region, self._make).load()

    def pop_released(self) -> list[int]:
        """Return the regions that nothing views any more, once."""
        found = []
        while self.released:
            found.append(self.released.popleft())
        return found
