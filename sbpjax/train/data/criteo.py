"""Criteo click logs: reader for text and Parquet files (label, 13 counts, 26 keys), and `Clicks` samples.

    1 ⇥ 5 ⇥  ⇥ 12 ⇥ … ⇥ 68fd1e64 ⇥ 80e26c9b ⇥  ⇥ …

Any field but the label may be empty. Counts become ``log(1 + count)``, with 0 for missing or negative ones. Keys are
eight digits in base 16, read as whole numbers; a number beyond 32 bits represents a missing one, so it is a key too.

    blocks = read_criteo("day_0.gz")                       # Block(labels, dense, keys) of 65,536 lines each
    parts = [Clicks(b.dense, hashed(b.keys, sizes), b.labels) for b in blocks]
"""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sbpjax.errors import DataError

from .numbered import Shuffled

COUNTS, KEYS = 13, 26
MISSING = np.uint64(1 << 32)
DIGITS = b"0123456789abcdefABCDEF"
LONGEST = 1 << 12  # bytes of a line; the longest that the fields' bounds allow has less than 600
RULE = "the label is 0 or 1, counts are whole numbers below 2⁶³, keys are up to eight digits in base 16"


class Block(NamedTuple):
    """Lines of a log.

    Attributes:
        labels: `(N,)` int64, 1 for a click.
        dense: `(N, 13)` float32, logarithms of counts.
        keys: `(N, 26)` uint64.
    """

    labels: np.ndarray
    dense: np.ndarray
    keys: np.ndarray


def read_criteo(path: str | os.PathLike, lines: int = 65_536) -> Iterator[Block]:
    """Yield the lines of a file in blocks: tab-separated text, also compressed (``.gz``), or Parquet (``.parquet``).

    Args:
        path: the file. Of Parquet the columns are, in this order, the label, 13 counts and 26 keys; pyarrow reads it.
        lines: the number of lines of a block.

    Raises:
        DataError: a line does not have 40 fields, a label is not 0 or 1, a count is no integer, a key has more than 32
            bits or is no number; the text names the line. Or the file is damaged.
    """
    if str(path).endswith(".parquet"):
        yield from _read_parquet(path, lines)
        return
    opened: Any = gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb")
    with io.BufferedReader(opened) as file:
        first, rows = 1, []
        for row in _lines(file, path):
            rows.append(row.rstrip(b"\r\n").split(b"\t"))
            if len(rows) == lines:
                yield _block(path, rows, first)
                first, rows = first + lines, []
        if rows:
            yield _block(path, rows, first)


def _lines(file: Any, path: Any) -> Iterator[bytes]:
    """Yield the lines of a file, none longer than a line of a log can be."""
    number = 0
    while True:
        try:
            row = file.readline(LONGEST + 1)
        except (OSError, EOFError, zlib.error) as error:  # gzip's: a checksum, an end that is missing
            seen = f"after line {number}: {type(error).__name__}: {error}"
            raise DataError(f"read_criteo({str(path)!r})", seen, "the file is whole", "fetch it again") from None
        if not row:
            if not number and os.fspath(path).endswith(".gz") and not os.path.getsize(path):  # no data to gzip
                seen, rule = "a file of 0 bytes", "a compressed file begins with gzip's header"
                raise DataError(f"read_criteo({str(path)!r})", seen, rule, "fetch it again")
            return
        number += 1
        if len(row) > LONGEST:
            rule = f"a line has at most {LONGEST:,} bytes"
            raise DataError(f"read_criteo({str(path)!r})", f"a longer one: line {number}", rule, "look there")
        yield row


def _block(path: Any, rows: list[list[bytes]], first: int) -> Block:
    operation = f"read_criteo({str(path)!r})"
    for number, row in enumerate(rows, first):
        if len(row) != 1 + COUNTS + KEYS:
            rule = f"a line has a label, {COUNTS} counts and {KEYS} keys, separated by tabs: {1 + COUNTS + KEYS} fields"
            raise DataError(operation, f"{len(row)} fields in line {number}", rule, "look there")
    try:
        return _parse_rows(rows)
    except (ValueError, OverflowError):
        for number, row in enumerate(rows, first):
            try:
                _parse_rows([row])
            except (ValueError, OverflowError) as error:
                raise DataError(operation, f"line {number}: {str(error)[:200]}", RULE, "look there") from None
        raise


def _parse_rows(rows: list[list[bytes]]) -> Block:
    if not all(row[0] in (b"0", b"1") for row in rows):
        raise ValueError(f"the label {next(row[0] for row in rows if row[0] not in (b'0', b'1'))!r}")
    labels = np.array([int(row[0]) for row in rows], np.int64)
    counts = np.array([[int(x) if x else 0 for x in row[1 : 1 + COUNTS]] for row in rows], np.float64)
    keys = np.array([[int(x, 16) if x else MISSING for x in row[1 + COUNTS :]] for row in rows], np.uint64)
    fields = [row[1:] for row in rows]
    if b"".join(x for row in fields for x in row).strip(DIGITS + b"-"):  # int() takes spaces and underscores, too
        raise ValueError("another character than digits")
    given = [x for row in fields for x in row[COUNTS:]]
    if b"-" in b"".join(given) or max(map(len, given)) > 8:
        raise ValueError("a key with a sign, or of more than eight digits")
    _check_counts(counts)
    return Block(labels, _logarithms(counts), keys)


def _check_counts(counts: np.ndarray) -> None:
    if not (np.abs(counts) < 2.0**63).all():  # not for NaN either
        raise ValueError(f"the count {counts.flat[np.argmin(np.abs(counts) < 2.0**63)]}")


def _logarithms(counts: np.ndarray) -> np.ndarray:
    return np.log1p(np.maximum(counts, 0)).astype(np.float32)


def _read_parquet(path: Any, lines: int) -> Iterator[Block]:
    try:
        from pyarrow import ArrowException, parquet  # of the extra `parquet`
    except ImportError:
        operation, rule = f"read_criteo({str(path)!r})", "Parquet is read by pyarrow"
        raise DataError(operation, "no module pyarrow", rule, "pip install pyarrow, or the log as text") from None
    operation = f"read_criteo({str(path)!r})"
    try:
        file = parquet.ParquetFile(path)
    except (ArrowException, OSError, ValueError) as error:
        seen, rule = f"{type(error).__name__}: {error}", "a file that ends in .parquet is one of Parquet"
        raise DataError(operation, seen[:300], rule, "fetch it again") from None
    count = len(file.schema_arrow.names)
    if count != 1 + COUNTS + KEYS:
        rule = f"the columns are a label, {COUNTS} counts and {KEYS} keys"
        raise DataError(operation, f"{count} columns", rule, "parquet.read_table(..., columns=[...])")
    batches, first = file.iter_batches(lines), 1
    while True:
        try:
            batch = next(batches, None)
            if batch is None:
                return
            block = _block_from_columns([column.to_pylist() for column in batch.columns])
        except (ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
            seen = f"after row {first - 1}: {type(error).__name__}: {error}"
            raise DataError(operation, seen[:300], RULE, "fetch it again, or look there") from None
        first += len(block.labels)
        yield block


def _block_from_columns(columns: list[list[Any]]) -> Block:
    labels = np.array(columns[0])
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(f"the label {labels[~np.isin(labels, (0, 1))][0]}")
    counts = np.array([[0 if x is None else x for x in c] for c in columns[1 : 1 + COUNTS]], np.float64).T
    _check_counts(counts)
    keys = np.array([[_key(x) for x in c] for c in columns[1 + COUNTS :]], np.uint64).T
    return Block(labels.astype(np.int64), _logarithms(counts), keys)


def _key(value: Any) -> int:
    if value is None or value == "":
        return int(MISSING)
    if not isinstance(value, str):
        return int(value) % (1 << 64)
    if len(value) > 8 or value.encode().strip(DIGITS):
        raise ValueError(f"the key {value[:40]!r}")
    return int(value, 16)


class Clicks(Shuffled):
    """Samples ``{"dense": (N,) float32, "ids": (F,) int64, "labels": 0 or 1}`` of arrays.

    Args:
        dense: `(S, N)` numbers.
        ids: `(S, F)` integers.
        labels: `(S,)`.
        samples: the number of samples of a run; one epoch if not given.
        seed: of the order.
        shuffle: False for the order of the arrays.

    Raises:
        DataError: their numbers of rows differ.

    Example:
        >>> Clicks(np.zeros((2, 13)), np.ones((2, 3), np.int64), [0, 1], shuffle=False)[1]["ids"]
        array([1, 1, 1])
    """

    def __init__(
        self, dense: Any, ids: Any, labels: Any, *, samples: int | None = None, seed: int = 0, shuffle: bool = True
    ) -> None:
        self.dense, self.ids = np.asarray(dense, np.float32), np.asarray(ids)
        self.labels = np.asarray(labels).astype(np.int64)
        sizes = {len(self.dense), len(self.ids), len(self.labels)}
        if len(sizes) > 1 or self.ids.dtype.kind not in "iu" or self.dense.ndim != 2 or self.ids.ndim != 2:
            seen = f"dense {self.dense.shape}, ids {self.ids.dtype}{list(self.ids.shape)}, labels {self.labels.shape}"
            rule = "dense is (S, N), ids are integers (S, F), labels (S,)"
            raise DataError("Clicks(dense, ids, labels)", seen, rule, "cut them to as many rows")
        super().__init__(len(self.labels), samples, seed, shuffle)

    def sample(self, number: int) -> dict[str, Any]:
        """Return the sample of a number."""
        i = self.index(number)
        return {"dense": self.dense[i], "ids": self.ids[i].astype(np.int64), "labels": self.labels[i]}
