"""Criteo's logs of clicks: a label, 13 counts and 26 keys a line, in text or in Parquet; and samples of such arrays.

    1 ⇥ 5 ⇥  ⇥ 12 ⇥ … ⇥ 68fd1e64 ⇥ 80e26c9b ⇥  ⇥ …

Any field but the label may be empty. Counts become ``log(1 + count)``, with 0 for what is missing or negative. Keys are
eight digits in base 16, read as whole numbers; a number beyond 32 bits stands for a missing one, so it is a key too.

    blocks = read_criteo("day_0.gz")                       # Block(labels, dense, keys) of 65,536 lines each
    parts = [Clicks(b.dense, hashed(b.keys, sizes), b.labels) for b in blocks]
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sbpjax.errors import DataError

from .numbered import Shuffled

COUNTS, KEYS = 13, 26
MISSING = np.uint64(1 << 32)


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
        lines: how many a block has.

    Raises:
        DataError: a line has not 40 fields, or a field is no number; the text names the line.
    """
    if str(path).endswith(".parquet"):
        yield from _of_parquet(path, lines)
        return
    opened: Any = gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb")
    with io.BufferedReader(opened) as file:
        first, rows = 1, []
        for row in file:
            rows.append(row.rstrip(b"\r\n").split(b"\t"))
            if len(rows) == lines:
                yield _block(path, rows, first)
                first, rows = first + lines, []
        if rows:
            yield _block(path, rows, first)


def _block(path: Any, rows: list[list[bytes]], first: int) -> Block:
    for number, row in enumerate(rows, first):
        if len(row) != 1 + COUNTS + KEYS:
            rule = f"a line has a label, {COUNTS} counts and {KEYS} keys, separated by tabs: {1 + COUNTS + KEYS} fields"
            raise DataError(f"read_criteo({str(path)!r})", f"{len(row)} fields in line {number}", rule, "look there")
    try:
        return _parsed(rows)
    except ValueError:
        for number, row in enumerate(rows, first):
            try:
                _parsed([row])
            except ValueError as error:
                rule = "the label is 0 or 1, counts are whole numbers, keys are digits in base 16"
                raise DataError(f"read_criteo({str(path)!r})", f"line {number}: {error}", rule, "look there") from None
        raise


def _parsed(rows: list[list[bytes]]) -> Block:
    labels = np.array([int(row[0]) for row in rows], np.int64)
    counts = np.array([[int(x) if x else 0 for x in row[1 : 1 + COUNTS]] for row in rows], np.float64)
    keys = np.array([[int(x, 16) if x else MISSING for x in row[1 + COUNTS :]] for row in rows], np.uint64)
    return Block(labels, _logarithms(counts), keys)


def _logarithms(counts: np.ndarray) -> np.ndarray:
    return np.log1p(np.maximum(counts, 0)).astype(np.float32)


def _of_parquet(path: Any, lines: int) -> Iterator[Block]:
    try:
        from pyarrow import parquet
    except ImportError:
        asked, rule = f"read_criteo({str(path)!r})", "Parquet is read by pyarrow"
        raise DataError(asked, "no module pyarrow", rule, "pip install pyarrow, or the log as text") from None
    file = parquet.ParquetFile(path)
    count = len(file.schema_arrow.names)
    if count != 1 + COUNTS + KEYS:
        rule = f"the columns are a label, {COUNTS} counts and {KEYS} keys"
        raise DataError(
            f"read_criteo({str(path)!r})", f"{count} columns", rule, "parquet.read_table(..., columns=[...])"
        )
    for batch in file.iter_batches(lines):
        columns = [column.to_pylist() for column in batch.columns]
        labels = np.array(columns[0], np.int64)
        counts = np.array([[0 if x is None else x for x in c] for c in columns[1 : 1 + COUNTS]], np.float64).T
        keys = np.array([[_key(x) for x in c] for c in columns[1 + COUNTS :]], np.uint64).T
        yield Block(labels, _logarithms(counts), keys)


def _key(value: Any) -> int:
    if value is None or value == "":
        return int(MISSING)
    return int(value, 16) if isinstance(value, str) else int(value) % (1 << 64)


class Clicks(Shuffled):
    """Samples ``{"dense": (N,) float32, "ids": (F,) int64, "labels": 0 or 1}`` of arrays.

    Args:
        dense: `(S, N)` numbers.
        ids: `(S, F)` integers.
        labels: `(S,)`.
        samples: how many a run takes; one epoch if not given.
        seed: of the order.
        shuffle: False for the order of the arrays.

    Raises:
        DataError: they have not as many rows.

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
