"""Import and export of snapshots: rows computed elsewhere, and trained rows.

with make_persistent_table_writer("/data/tables/sparse", "init", flow.int64, flow.float32, 16) as writer:
writer.write(keys, vectors)                         # (N,) int64, (N, 16) float32, as often as needed
with make_persistent_table_reader("/data/tables/sparse", "step-1000", flow.int64, flow.float32, 16) as reader:
for keys, vectors in reader: ...
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sbpjax.errors import TableError

from .row_files import write_rows
from .snapshots import FORMAT, _commit, open_parts, read_manifest
from .store import VALUE

_BLOCK = 1 << 16


class PersistentTableReader:
    """Iterates over the rows of a snapshot, in blocks of (keys, vectors); made by `make_persistent_table_reader`."""

    def __init__(self, path: str, value_type: Any, storage_dim: int) -> None:
        manifest = read_manifest(path)
        self._parts, self._tables = manifest["parts"], []
        self._columns = [c for c in manifest["row"] if c != VALUE]
        self._files = open_parts(path, manifest, ("keys", "tables", *manifest["row"]))
        for files in self._files:
            value = files[VALUE]
            width = value.width * (1 if storage_dim == value.width else 1 + len(self._columns))
            if storage_dim != width or value.dtype != value_type.np:
                raise TableError(
                    f"a reader of {path}",
                    f"storage_dim={storage_dim}, value_type={value_type.name}",
                    f"its vectors are {value.dtype}[{value.width}], with the states "
                    f"[{value.width * (1 + len(self._columns))}]",
                    f"storage_dim={value.width}",
                )
        self._whole = bool(self._files) and storage_dim > self._files[0][VALUE].width

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(self._parts)

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield keys ``(N,)`` and vectors ``(N, storage_dim)``."""
        for _, keys, values in self.with_tables():
            yield keys, values

    def with_tables(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the table of each key as well: tables ``(N,)``, keys and vectors."""
        for files in self._files:
            names = [VALUE, *self._columns] if self._whole else [VALUE]
            for tables, keys, *rows in zip(*[files[n].blocks(_BLOCK) for n in ("tables", "keys", *names)], strict=True):
                yield tables, keys, rows[0] if len(rows) == 1 else np.concatenate(rows, 1)

    def __enter__(self) -> PersistentTableReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files; nothing is open between two blocks."""


class PersistentTableWriter:
    """Writes the rows of a snapshot; made by `make_persistent_table_writer`. It is there when the writer is closed."""

    def __init__(self, path: str, key_type: Any, value_type: Any, storage_dim: int, num_tables: int, seed: int) -> None:
        self._path, self._partial = path, f"{path}.partial"
        self._dtype, self._key_type, self._width = np.dtype(value_type.np), np.dtype(key_type.np), storage_dim
        self._tables, self._seed = num_tables, seed
        self._parts: list[int] = []
        shutil.rmtree(self._partial, ignore_errors=True)
        os.makedirs(self._partial)

    def write(self, keys: Any, values: Any, tables: Any = None) -> None:
        """Write some rows; every key once in all.

        Args:
            keys: ``(N,)``.
            values: ``(N, storage_dim)``.
            tables: ``(N,)`` the table of each key; 0 by default.
        """
        keys, values = _array(keys), _array(values)
        tables = np.zeros(len(keys), np.int32) if tables is None else _array(tables)
        if values.shape != (len(keys), self._width) or values.dtype != self._dtype or keys.dtype != self._key_type:
            raise TableError(
                "PersistentTableWriter.write",
                f"keys {keys.dtype}{list(keys.shape)}, values {values.dtype}{list(values.shape)}",
                f"keys are {self._key_type}[N] and values {self._dtype}[N, {self._width}]",
                "keys.astype(...), values.astype(...)",
            )
        rows, start = len(keys), os.path.join(self._partial, f"part-{len(self._parts)}.")
        write_rows(f"{start}keys", np.int64, 0, rows, [keys])
        write_rows(f"{start}tables", np.int32, 0, rows, [tables])
        write_rows(f"{start}seen", np.int64, 0, rows, [np.zeros(rows, np.int64)])
        write_rows(f"{start}counts", np.int32, 0, rows, [np.zeros(rows, np.int32)])
        write_rows(f"{start}{VALUE}", self._dtype, self._width, rows, [values])
        self._parts.append(rows)

    def close(self) -> None:
        """Make the snapshot: what was written is there from now on."""
        if os.path.isdir(self._partial):
            _commit(
                self._partial,
                self._path,
                {
                    "format": FORMAT,
                    "columns": [self._width],
                    "dtype": str(self._dtype),
                    "num_tables": self._tables,
                    "seed": self._seed,
                    "step": 0,
                    "row": [VALUE],
                    "parts": self._parts,
                },
            )

    def __enter__(self) -> PersistentTableWriter:
        return self

    def __exit__(self, kind: Any, *error: object) -> None:
        if kind is None:
            self.close()
        else:
            shutil.rmtree(self._partial, ignore_errors=True)


def make_persistent_table_reader(
    paths: str | Sequence[str],
    snapshot_name: str,
    key_type: Any,
    value_type: Any,
    storage_dim: int,
    physical_block_size: int = 4096,
) -> PersistentTableReader:
    """Return what iterates over the keys and vectors of a snapshot.

    Args:
        paths: the directory of the tables, ``<persistent_path>/<name>``; of several the first.
        snapshot_name: which snapshot.
        key_type: of the keys, int64.
        value_type: of the vectors.
        storage_dim: the length of a vector; or of a vector with its optimizer state, to read both.
        physical_block_size: accepted.

    Raises:
        TableError: there is none, it is damaged, or its rows are others.
    """
    return PersistentTableReader(_first(paths, snapshot_name), value_type, storage_dim)


def make_persistent_table_writer(
    paths: str | Sequence[str],
    snapshot_name: str,
    key_type: Any,
    value_type: Any,
    storage_dim: int,
    physical_block_size: int = 4096,
    *,
    num_tables: int = 1,
    seed: int = 0,
) -> PersistentTableWriter:
    """Return what writes a snapshot that `Embedding.load_snapshot` reads.

    Args:
        paths: the directory of the tables, ``<persistent_path>/<name>``; of several the first.
        snapshot_name: which snapshot.
        key_type: of the keys.
        value_type: of the vectors.
        storage_dim: the length of a vector.
        physical_block_size: accepted.
        num_tables: how many tables the embedding has.
        seed: of the embedding, for the keys that are not written.
    """
    path = _first(paths, snapshot_name)
    return PersistentTableWriter(path, key_type, value_type, storage_dim, num_tables, seed)


def _first(paths: str | Sequence[str], name: str) -> str:
    return os.path.join(paths if isinstance(paths, (str, os.PathLike)) else paths[0], name)


def _array(given: Any) -> np.ndarray:
    return given.numpy() if hasattr(given, "numpy") else np.asarray(given)
