"""Reader of token file indices, ``corpus.idx``, in Megatron's format, with its table of dtypes.

Little-endian:

    9 bytes    MMIDIDX, two zeros
    8          version, 1
    1          dtype of the tokens: a code of `CODES`
    8, 8       number s of sequences; number d of documents, and one
    4 s        tokens of each sequence, int32
    8 s        where each sequence begins in ``corpus.bin``, in bytes, int64
    8 (d + 1)  the first sequence of each document, and s, int64

Lengths, beginnings and ends have to agree everywhere. They do not show a sequence that moved to another document, or
another dtype of the same size; the digest in ``corpus.idx.sha256`` does. `TokenFileWriter` writes it, and ``sha256sum
-c`` checks it. Megatron's files have none, and are read without.

This module is imported by worker processes, which have no JAX.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sbpjax.errors import DataError

MAGIC = b"MMIDIDX\x00\x00"
HEAD = struct.Struct("<9sQBQQ")
# Source: `DType` of Megatron-Core's indexed datasets. 6 and 7 are no dtypes of tokens; Megatron writes them for scores.
CODES = {
    1: np.uint8,
    2: np.int8,
    3: np.int16,
    4: np.int32,
    5: np.int64,
    6: np.float64,
    7: np.float32,
    8: np.uint16,
}
DIGEST = ".sha256"  # appended to the name of the index
_BLOCK = 1 << 20
TOKEN_CODES = {code: dtype for code, dtype in CODES.items() if np.dtype(dtype).kind in "iu"}


class TokenIndex(NamedTuple):
    """Index of a token file: arrays mapped from disk.

    Attributes:
        dtype: of the tokens.
        lengths: tokens of each sequence, `(s,)`.
        pointers: where each sequence begins, in bytes, `(s,)`.
        documents: the first sequence of each document, and s, `(d + 1,)`.
    """

    dtype: np.dtype
    lengths: np.ndarray
    pointers: np.ndarray
    documents: np.ndarray


def _index_error(operation: str, seen: str, rule: str) -> DataError:
    return DataError(operation, seen, rule, "write the two files anew")


def read_index(prefix: str, operation: str, codes: Mapping[int, type] = CODES) -> TokenIndex:
    """Return the index of a token file, checked against the sizes of both files.

    Args:
        prefix: the path without ``.bin`` or ``.idx``.
        operation: the call, for errors.
        codes: the dtypes that are read, by their codes.

    Raises:
        DataError: a file is missing, of another kind or version, damaged, or the two do not belong together.
    """
    path = f"{prefix}.idx"
    for each in (path, f"{prefix}.bin"):
        if not os.path.isfile(each):
            named = prefix.removesuffix(".bin").removesuffix(".idx")
            call = f"{operation.partition('(')[0]}({named!r})"
            fix = call if named != prefix else "python -m sbpjax.train.preprocess writes both"
            raise DataError(operation, f"there is no file {each}", "a path is given without .bin and .idx", fix)
    index = _read(path, operation, codes)
    _check_together(prefix, index, operation)
    _check_digest(path, operation)
    return index


def digest_line(path: str) -> str:
    """Return the line of ``sha256sum`` for a file, under its name without ``.part``."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{digest}  {os.path.basename(path).removesuffix('.part')}\n"


def _check_digest(path: str, operation: str) -> None:
    try:
        with open(f"{path}{DIGEST}", "rb") as file:
            written = file.read(1024)
    except FileNotFoundError:
        return
    if written[:64] != digest_line(path)[:64].encode():
        rule = f"its SHA-256 is that in {path}{DIGEST}, which was written with it"
        fix = f"write the files anew; or remove {os.path.basename(path)}{DIGEST} if another program wrote the index"
        raise DataError(operation, f"{path} has another SHA-256", rule, fix)


def _read(path: str, operation: str, codes: Mapping[int, type]) -> TokenIndex:
    with open(path, "rb") as file:
        head = file.read(HEAD.size)
    if not head.startswith(MAGIC):
        rule = f"an index of tokens begins with {MAGIC!r}"
        raise DataError(operation, f"{path} begins with {head[: len(MAGIC)]!r}", rule, "another path")
    if len(head) < HEAD.size:
        raise _index_error(operation, f"{path} has {len(head)} bytes", f"an index has a head of {HEAD.size} bytes")
    _, version, code, sequences, documents = HEAD.unpack(head)
    if version != 1:
        raise _index_error(operation, f"{path} is of version {version}", "version 1 is read")
    if code not in codes:
        numbers = "whole numbers" if codes is TOKEN_CODES else "numbers"
        rule = f"tokens are {numbers}: " + ", ".join(f"{code} {np.dtype(t)}" for code, t in codes.items())
        raise _index_error(operation, f"{path} has dtype code {code}", rule)
    size, wanted = os.path.getsize(path), HEAD.size + 12 * sequences + 8 * documents
    if size != wanted or not documents:
        rule = f"{sequences} sequences and {documents} ends of documents (one at least) make {wanted} bytes"
        raise _index_error(operation, f"{path} has {size} bytes", rule)
    raw, begin = np.memmap(path, np.uint8, "r").view(np.ndarray), HEAD.size
    arrays = []
    for dtype, count in (("<i4", sequences), ("<i8", sequences), ("<i8", documents)):
        arrays.append(np.frombuffer(raw, dtype, count, begin))
        begin += arrays[-1].nbytes
    return TokenIndex(np.dtype(codes[code]), *arrays)


def _check_together(prefix: str, index: TokenIndex, operation: str) -> None:
    """Raise for an index that contradicts itself, or the size of the tokens."""
    lengths, pointers, documents = index.lengths, index.pointers, index.documents
    size, tokens = os.path.getsize(f"{prefix}.bin"), 0
    for start in range(0, len(lengths), _BLOCK):
        some = lengths[start : start + _BLOCK].astype(np.int64)
        ends = tokens + np.cumsum(some)
        wrong = np.flatnonzero((some < 0) | (pointers[start : start + _BLOCK] != (ends - some) * index.dtype.itemsize))
        if len(wrong):
            n = start + int(wrong[0])
            seen = f"sequence {n:,} of {int(lengths[n]):,} tokens at byte {int(pointers[n]):,}"
            begin = int(ends[wrong[0]] - some[wrong[0]]) * index.dtype.itemsize
            rule = f"sequences have 0 tokens or more and follow each other: this one begins at byte {begin:,}"
            raise _index_error(operation, seen, rule)
        tokens = int(ends[-1])
    if size != tokens * index.dtype.itemsize or size == 0:
        rule = f"its index speaks of {tokens * index.dtype.itemsize} bytes, and there is one token at least"
        raise _index_error(operation, f"{prefix}.bin has {size} bytes", rule)
    if documents[0] != 0 or documents[-1] != len(lengths):
        seen = f"documents from {documents[0]} to {documents[-1]}"
        raise _index_error(operation, seen, f"documents go from sequence 0 to {len(lengths)}")
    for start in range(0, len(documents), _BLOCK):
        steps = np.diff(documents[start : start + _BLOCK + 1])
        if len(steps) and int(steps.min()) < 0:
            n = start + int(np.argmin(steps))
            seen = f"document {n:,} of the sequences {documents[n]:,} to {documents[n + 1]:,}"
            raise _index_error(operation, seen, "a document ends where it begins, or later")


def check_tokens(tokens: np.ndarray, where: str, operation: str) -> np.ndarray:
    """Return tokens of a file, which are no less than 0.

    Raises:
        DataError: one is negative.
    """
    if tokens.dtype.kind == "i" and tokens.size and int(tokens.min()) < 0:
        at = int(np.argmin(tokens))
        raise _index_error(operation, f"token {int(tokens[at])} at {where} + {at}", "tokens are 0 or more")
    return tokens
