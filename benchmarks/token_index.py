"""The index of a million documents, beside Megatron's way of writing it: lists, and NumPy when all is known.

    PYTHONPATH=. python -m benchmarks.token_index

All ways write the same two files, byte by byte, of the same documents. Ours are `TokenFileWriter.add`, document by
document, and `add_many` in chunks, as `python -m sbpjax.train.preprocess` does it. Megatron's are written here by the
description of its format: its builder, which appends each document's length to a list, and what NumPy does at best
where all documents are in one array already. Then the order of an epoch is laid out. Rounds alternate; times are of the
processor.
"""

from __future__ import annotations

import itertools
import os
import platform
import statistics
import struct
import tempfile
import time
from pathlib import Path

import numpy as np

from sbpjax.train.data import PackedTokens, TokenFile, TokenFileWriter

DOCUMENTS, CHUNK, LENGTH, ROUNDS = 1_000_000, 4096, 1024, 5


def lengths() -> np.ndarray:
    """Return how many tokens each document has: 1 to 15."""
    return np.random.default_rng(0).integers(1, 16, DOCUMENTS)


def megatron(prefix: Path, tokens: np.ndarray, sizes: list[int]) -> None:
    """Write both files as Megatron's builder does: a document at a time."""
    written, documents, begin = [], [0], 0
    with open(f"{prefix}.bin", "wb") as file:
        for size in sizes:
            file.write(tokens[begin : begin + size].tobytes(order="C"))
            written.append(size)
            documents.append(len(written))
            begin += size
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, len(written), len(documents)))
        file.write(np.array(written, dtype=np.int32).tobytes(order="C"))
        # Where sequences begin: a running sum, one after the other.
        pointers = itertools.accumulate((size * 2 for size in written[:-1]), initial=0)
        file.write(np.array(list(pointers), dtype=np.int64).tobytes(order="C"))
        file.write(np.array(documents, dtype=np.int64).tobytes(order="C"))


def megatron_numpy(prefix: Path, tokens: np.ndarray, sizes: np.ndarray) -> None:
    """Write both files as fast as NumPy does what Megatron's builder does: all at once."""
    with open(f"{prefix}.bin", "wb") as file:
        file.write(tokens.tobytes(order="C"))
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, len(sizes), len(sizes) + 1))
        file.write(sizes.astype(np.int32).tobytes(order="C"))
        pointers = np.zeros(len(sizes), np.int64)
        np.cumsum(sizes[:-1] * 2, out=pointers[1:])
        file.write(pointers.tobytes(order="C"))
        file.write(np.arange(len(sizes) + 1, dtype=np.int64).tobytes(order="C"))


def ours_in_chunks(prefix: Path, tokens: np.ndarray, sizes: np.ndarray) -> None:
    """Write both files from chunks of documents."""
    ends = np.append(0, np.cumsum(sizes))
    with TokenFileWriter(prefix, np.uint16, overwrite=True) as writer:
        for first in range(0, len(sizes), CHUNK):
            part = sizes[first : first + CHUNK]
            writer.add_many(tokens[ends[first] : ends[first + len(part)]], part)


def ours_one_by_one(prefix: Path, tokens: np.ndarray, sizes: list[int]) -> None:
    """Write both files document by document."""
    begin = 0
    with TokenFileWriter(prefix, np.uint16, overwrite=True) as writer:
        for size in sizes:
            writer.add(tokens[begin : begin + size])
            begin += size


def taken_s(write, prefix: Path, *arguments) -> float:
    """Return the processor's seconds of a way to write."""
    begin = time.process_time()
    write(prefix, *arguments)
    return time.process_time() - begin


def opened_s(prefix: Path) -> tuple[float, float]:
    """Return the seconds to open a file and look at a thousand documents, and those to read all lengths."""
    begin = time.process_time()
    file = TokenFile(prefix)
    for document in range(0, DOCUMENTS, DOCUMENTS // 1000):
        file[document]
    looked = time.process_time()
    assert int(file.lengths.sum()) == file.tokens.size
    return looked - begin, time.process_time() - looked


def ordered_s(prefix: Path, sizes: np.ndarray) -> tuple[float, float, float]:
    """Return the seconds to lay out an epoch of samples of `LENGTH` tokens.

    Megatron's way in NumPy: documents shuffled; for each sample the document and the place where it begins; samples
    shuffled. Ours keeps no index: the seconds until the dataset is there, and then with the place of every sample.
    """
    rng, begin = np.random.default_rng(0), time.process_time()
    documents = rng.permutation(np.arange(len(sizes), dtype=np.int32))
    ends = np.cumsum(sizes[documents])
    starts = np.arange((int(ends[-1]) - 1) // LENGTH + 1, dtype=np.int64) * LENGTH
    within = np.searchsorted(ends, starts, side="right")
    samples = np.stack([within, starts - (ends[within] - sizes[documents[within]])], axis=1)
    rng.permutation(np.arange(len(samples) - 1, dtype=np.uint32))
    theirs = time.process_time() - begin
    begin = time.process_time()
    pieces = PackedTokens(prefix, LENGTH)
    made = time.process_time() - begin
    for number in range(len(pieces)):
        pieces.index(number)
    return theirs, made, time.process_time() - begin


def main() -> None:
    """Measure and print."""
    sizes = lengths()
    tokens = np.random.default_rng(1).integers(0, 50_000, int(sizes.sum())).astype(np.uint16)
    ways = {
        "Megatron's builder, one by one": (megatron, sizes.tolist()),
        "sbpjax, one by one": (ours_one_by_one, sizes.tolist()),
        "Megatron's builder in NumPy, all at once": (megatron_numpy, sizes),
        "sbpjax, in chunks of 4,096": (ours_in_chunks, sizes),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for name, (write, given) in ways.items():
                seconds[name].append(taken_s(write, Path(folder) / write.__name__, tokens, given))
        files = [Path(folder) / f"{write.__name__}{end}" for write, _ in ways.values() for end in (".bin", ".idx")]
        written = {file.read_bytes() for file in files}
        assert len(written) == 2, "the ways write different files"
        looked, read = opened_s(Path(folder) / "ours_in_chunks")
        ordered = [ordered_s(Path(folder) / "ours_in_chunks", sizes) for _ in range(ROUNDS)]
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; NumPy {np.__version__}")
    for name, found in seconds.items():
        median = statistics.median(found)
        print(f"{name:<42} {median:6.3f} s of the processor, {DOCUMENTS / median:>12,.0f} documents/s")
    by_name = list(seconds.values())
    for what, theirs, ours in (("one by one", 0, 1), ("preprocess against the builder", 0, 3), ("all at once", 2, 3)):
        ratio = statistics.median(a / b for a, b in zip(by_name[theirs], by_name[ours], strict=True))
        print(f"pace ratio, {what}: {ratio:.2f}" + (" (bound 1.0)" if theirs == 0 else ""))
    theirs, ours, all_of_them = (statistics.median(column) for column in zip(*ordered))
    print(f"order of an epoch's samples: Megatron's three indexes {theirs:.3f} s, sbpjax {ours:.4f} s before the first")
    print(f"sample, {all_of_them:.3f} s for the places of all; pace ratio {theirs / all_of_them:.2f} (bound 1.0)")
    print(f"opened, a thousand documents looked at: {1e3 * looked:.1f} ms; all lengths: {1e3 * read:.1f} ms")


if __name__ == "__main__":
    main()
