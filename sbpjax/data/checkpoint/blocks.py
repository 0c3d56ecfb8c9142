"""Block files of a checkpoint: one binary file and index per process, with the position of each shard.

    arrays/00003.bin     the shards that process 3 holds, one after the other, each from a multiple of 64 bytes on
    arrays/00003.json    [[tensor, [start …], [shape …], offset, size, crc], …]: one line per shard

Tensor 5 of shape (8, 4), split over two processes, is the block ``[5, [0, 0], [4, 4], 0, 64, …]`` of one file and
``[5, [4, 0], [4, 4], 0, 64, …]`` of the other. CRC-32 and size cover the padding too, so no byte of a file goes
unchecked. Files are mapped into memory when they are read, and a process reads the parts that it needs.
"""

from __future__ import annotations

import json
import math
import operator
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ARRAYS = "arrays"
_ALIGN = 64
_CHUNK_BYTES = 1 << 20  # checksum and write go through the cache together


class Block(NamedTuple):  # made in a third of a dataclass's time: a checkpoint of 4,096 processes has millions
    """A shard of a tensor in a file.

    Attributes:
        tensor: the number of the tensor.
        start: its position in the tensor.
        shape: its shape.
        offset: its position in the file.
        size: its bytes there, padding included.
        crc: their CRC-32.
    """

    tensor: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    offset: int
    size: int
    crc: int


def names(process: int) -> tuple[str, str]:
    """Return the relative names of a process's block file and of its index."""
    return f"{ARRAYS}/{process:05d}.bin", f"{ARRAYS}/{process:05d}.json"


def write(directory: Path, process: int, shards: Iterable[tuple[int, tuple[int, ...], np.ndarray]]) -> None:
    """Write the shards of a process, ``(number of the tensor, start, values)`` each, and their index.

    A file that is there is overwritten in place: in memory this takes half of the time, because its pages are reused.
    """
    data_name, index_name = names(process)
    blocks = []
    with open(directory / data_name, "r+b" if (directory / data_name).exists() else "wb", buffering=0) as file:
        offset = 0
        for number, start, values in shards:
            size, crc = _write_block(file, values)
            blocks.append([number, list(start), list(values.shape), offset, size, crc])
            offset += size
        file.truncate()
        os.fsync(file.fileno())
    with open(directory / index_name, "w", encoding="utf-8") as file:
        json.dump(blocks, file)
        file.flush()
        os.fsync(file.fileno())


def _write_block(file, values: np.ndarray) -> tuple[int, int]:
    data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    crc = 0
    for begin in range(0, data.size, _CHUNK_BYTES):
        chunk = memoryview(data[begin : begin + _CHUNK_BYTES])
        crc = zlib.crc32(chunk, crc)
        _write_all(file, chunk)
    padding = bytes(-data.size % _ALIGN)
    _write_all(file, memoryview(padding))
    return data.size + len(padding), zlib.crc32(padding, crc)


def _write_all(file, chunk: memoryview) -> None:
    while chunk:
        chunk = chunk[file.write(chunk) :]


@dataclass
class Files:
    """Reader of the block files of a checkpoint.

    Attributes:
        directory: the checkpoint.
        blocks: by tensor number, its blocks and the process that wrote each.
        folders: where the files of a process are, if not in `directory`.
    """

    directory: Path
    blocks: dict[int, list[tuple[int, Block]]] = field(default_factory=dict)
    folders: dict[int, Path] = field(default_factory=dict)
    _maps: dict[int, Any] = field(default_factory=dict)

    def add(self, process: int, index: Any) -> None:
        """Add the entries of a process's index.

        Raises:
            ValueError, TypeError: the index is invalid, or does not fit its file.
        """
        length = self._data_path(process).stat().st_size
        end = 0
        for tensor, start, shape, offset, size, crc in index:
            block = Block(tensor, tuple(start), tuple(shape), offset, size, crc)
            numbers = (tensor, offset, size, crc, *start, *shape)
            is_valid = set(map(type, numbers)) == {int} and min(numbers) >= 0
            if not is_valid or offset != end or len(start) != len(shape):
                raise ValueError(f"a block {block}")
            end += size
            self.blocks.setdefault(tensor, []).append((process, block))
        if end != length:
            raise ValueError(f"{names(process)[0]} has {length} bytes, {end} were written")

    def count_elements(self, number: int, shape: tuple[int, ...], itemsize: int) -> int:
        """Return how many elements of a tensor the blocks have; raise a ValueError if one is not inside it."""
        count = 0
        for _, block in self.blocks.get(number, []):
            size = math.prod(block.shape)
            inside = len(block.shape) == len(shape) and not any(
                map(operator.gt, map(operator.add, block.start, block.shape), shape)
            )
            if not inside or size * itemsize > block.size:
                raise ValueError(f"tensor {number} of shape {list(shape)} has a block {block}")
            count += size
        return count

    def all_blocks(self) -> list[tuple[int, Block]]:
        """Return all blocks, and the process of each, in an order that is the same everywhere."""
        return [pair for number in sorted(self.blocks) for pair in self.blocks[number]]

    def is_intact(self, process: int, block: Block) -> bool:
        """Return whether a block has the checksum that it was written with."""
        data, crc = self._map(process), 0
        for begin in range(block.offset, block.offset + block.size, _CHUNK_BYTES):
            crc = zlib.crc32(data[begin : min(begin + _CHUNK_BYTES, block.offset + block.size)], crc)
        return crc == block.crc

    def has(self, number: int, shape: tuple[int, ...], index: tuple[slice, ...]) -> bool:
        """Return whether the blocks of a tensor, which do not overlap, have all of a part of it."""
        box = [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
        found = sum(
            math.prod(max(0, b - a) for a, b in _overlap(box, block)) for _, block in self.blocks.get(number, [])
        )
        return found == math.prod(b - a for a, b in box)

    def read(self, number: int, shape: tuple[int, ...], dtype: np.dtype, index: tuple[slice, ...]) -> np.ndarray:
        """Return a part of a tensor as an array of its own."""
        box = [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
        result = np.empty([max(0, b - a) for a, b in box], dtype)
        for process, block in self.blocks.get(number, []):
            both = _overlap(box, block)
            if any(a >= b for a, b in both):
                continue
            count = math.prod(block.shape) * dtype.itemsize
            data = self._map(process)[block.offset : block.offset + count]
            values = data.view(dtype).reshape(block.shape)
            there = tuple(slice(a - s, b - s) for (a, b), s in zip(both, block.start, strict=True))
            here = tuple(slice(a - s, b - s) for (a, b), (s, _) in zip(both, box, strict=True))
            result[here] = values[there]
        return result

    def _map(self, process: int) -> np.ndarray:
        if process not in self._maps:
            self._maps[process] = np.memmap(self._data_path(process), np.uint8, "r")
        return self._maps[process]

    def _data_path(self, process: int) -> Path:
        return self.folders.get(process, self.directory) / names(process)[0]


def _overlap(box: list[tuple[int, int]], block: Block) -> list[tuple[int, int]]:
    """Return begin and end along each dim of the part that a box and a block share; without one, an end is smaller."""
    return [(max(a, s), min(b, s + n)) for (a, b), s, n in zip(box, block.start, block.shape, strict=True)]
