"""Snapshots of tables: atomic directories of all rows.

    /data/tables/sparse/step-1000/table.json                     what it is, the rows of each part, a checksum of these
                                  part-0.keys, .tables, .seen, .counts, .value, .exp_avg, …
                                  part-1.…                       one part per process that wrote

It is written under another name, through to the disk, and then renamed. A checkpoint of the model holds the *name* of a
snapshot (`Embedding` puts it into its state dict after the snapshot is complete), so that whichever of the two a crash
cut off, the checkpoint that is complete names rows that are complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax.errors import TableError
from sbpjax.utils.interrupts import commit, make_assigner

from . import ranks
from .columns import no_space
from .row_files import RowFile, damaged_error, write_rows
from .store import VALUE

FORMAT = "sbpjax table 2"
MANIFEST = "table.json"
_BLOCK = 1 << 16
_META = {"keys": np.int64, "tables": np.int32, "seen": np.int64, "counts": np.int32}
_NAME = r"(?!\.)[\w.-]+"
_AUTOMATIC = re.compile(r"state-(\d{8})")


class LoadedSnapshot:
    """A snapshot that was found whole.

    Attributes:
        name: its name.
        manifest: the contents of its ``table.json``.
        files: of each part, its files by column.
    """

    def __init__(self, name: str, manifest: dict[str, Any], files: list[dict[str, RowFile]]) -> None:
        self.name, self.manifest, self.files = name, manifest, files


class Snapshots:
    """The snapshots of an `Embedding`.

    Args:
        cache: its rows.
        path: the store's path.
        columns: the sizes of a row's columns.
        seed: of first values.
    """

    def __init__(self, cache: Any, path: str, columns: list[int], seed: int) -> None:
        self.cache, self.folder = cache, os.path.join(path, cache.name)
        self.columns, self.seed = columns, seed

    def save(self, name: str) -> None:
        """Write a snapshot; see `Embedding.save_snapshot`."""
        if not re.fullmatch(_NAME, name):
            rule = "the name is that of a directory: letters, digits, '_', '-' and '.', the last not in front"
            raise TableError("save_snapshot(name)", f"name={name!r}", rule, 'save_snapshot("step-1000")')
        path = os.path.join(self.folder, name)
        partial = f"{path}.partial"
        error = None
        try:
            if ranks.rank() == 0:
                shutil.rmtree(partial, ignore_errors=True)
                os.makedirs(partial)
            ranks.barrier()
            rows = self._write_part(partial)
        except OSError as why:
            error = no_space(self.folder, 0, why)
        except TableError as why:
            error = why
        # All know whether all have written: a part that lacks is no snapshot.
        failed = ranks.all_reduce_max(int(error is not None))[0]
        if failed:
            ranks.barrier()
            if ranks.rank() == 0:
                shutil.rmtree(partial, ignore_errors=True)
            raise error or no_space(self.folder, 0, OSError(0, "another process could not write its part"))
        parts = [rows] * ranks.size()
        if ranks.size() > 1:
            flow.distributed.all_gather_object(parts, rows)
        if ranks.rank() == 0:
            _commit(partial, path, self._manifest(parts))
        ranks.barrier()

    def _write_part(self, folder: str) -> int:
        store = self.cache.store
        rows = store.live()
        sources = {name: getattr(store, name) for name in _META} | store.columns
        for name, column in sources.items():
            file = os.path.join(folder, f"part-{ranks.rank()}.{name}")
            write_rows(file, column.dtype, column.width, len(rows), _blocks(column, rows))
        return len(rows)

    def _manifest(self, parts: list[int]) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.cache.name,
            "columns": self.columns,
            "dtype": str(np.dtype(self.cache.weight.dtype.np)),
            "num_tables": self.cache.num_tables,
            "seed": self.seed,
            "step": self.cache.step,
            "row": list(self.cache.store.columns),
            "parts": parts,
        }

    def open_snapshot(self, name: str) -> LoadedSnapshot:
        """Return a snapshot after it was checked as a whole; nothing of the table changes.

        Raises:
            TableError: there is none, it is damaged, or of other tables.
        """
        folder = self.folder
        if not re.fullmatch(_NAME, name):
            rule = f"it is a directory in {folder}"
            raise TableError(
                f"load_snapshot({name!r:.80})", "no name of a snapshot", rule, "snapshot_names() lists them"
            )
        path = _existing_path(folder, name)
        if not os.path.isdir(path):
            found = self.names()
            seen = f"snapshots there: {', '.join(found[-4:])}" if found else "no snapshot there"
            raise TableError(f"load_snapshot({name!r})", seen, f"it is a directory in {folder}", "one of those")
        manifest = read_manifest(path)
        own = self._manifest([])
        wrong = [k for k in ("columns", "dtype", "num_tables", "seed") if manifest.get(k) != own[k]]
        if wrong:
            seen = ", ".join(f"{k}={manifest.get(k)}" for k in wrong)
            rule = "a snapshot is of tables like these: " + ", ".join(f"{k}={own[k]}" for k in wrong)
            raise TableError(f"load_snapshot({name!r})", seen, rule, "tables with the options of those that were saved")
        files = open_parts(path, manifest, (*_META, *manifest["row"]))
        width, dtype = sum(self.columns), self.cache.weight.dtype.np
        for file in (each[column] for each in files for column in manifest["row"]):
            if file.width != width:
                raise damaged_error(file.path, f"rows of {file.width} numbers, and those of the tables have {width}")
        for value in (each[VALUE] for each in files):
            if value.dtype != dtype:
                raise damaged_error(value.path, f"values of {value.dtype}, and those of the tables are {dtype}")
        mine = sum(int(_is_own_key(tables, keys).sum()) for tables, keys in _all_keys(files))
        if mine > self.cache.store.capacity:
            seen, rule = f"{mine:,} rows", f"the store has {self.cache.store.capacity:,} rows at most"
            raise TableError(f"load_snapshot({name!r})", seen, rule, f"capacity={mine:,} in the store's options")
        return LoadedSnapshot(name, manifest, files)

    def take(self, read: LoadedSnapshot, states: bool) -> None:
        """Replace a table's rows by those of a snapshot; if that is interrupted, the next lookup or save goes on."""
        for entry in list(self.cache.unapplied):
            self.cache.apply(entry)
        self.cache.announced.clear()
        self.cache.loading = partial(self._replace, read, states)
        self._replace(read, states)

    def _replace(self, read: LoadedSnapshot, states: bool) -> None:
        self.cache.saving.clear()
        store = self.cache.store
        store.clear()
        row = read.manifest["row"] if states else [VALUE]
        for name in row:
            if name != VALUE:
                # New rows hold the initial state of the optimizer, which sets it later.
                store.add_column(name, read.files[0][name].dtype if read.files else np.float32, 0.0)
        for part in read.files:
            columns = [part[name].blocks(_BLOCK) for name in (*_META, *row)]
            for keys, tables, seen, counts, *values in zip(*columns, strict=True):
                own = _is_own_key(tables, keys)
                found = {name: v[own] for name, v in zip(row, values, strict=True)}
                store.put(tables[own], keys[own], {**found, "seen": seen[own], "counts": counts[own]})
        step, slots = max(self.cache.step, int(read.manifest["step"])), self.cache.slots
        cleared = [] if slots is None else slots.clear_assignments()
        done = [
            (self.cache, "step", step),
            (self.cache, "loading", None),
            *self.cache.device.assignments_to_reset(),
            *cleared,
        ]
        commit(make_assigner(done))

    def names(self) -> list[str]:
        """Return the names of the snapshots of a table, oldest first."""
        folder = self.folder
        if not os.path.isdir(folder):
            return []
        found = [n for n in os.listdir(folder) if os.path.exists(os.path.join(folder, n, MANIFEST))]
        whole = [n for n in found if not n.endswith((".partial", ".replaced"))]
        return sorted(whole, key=lambda n: (os.stat(os.path.join(folder, n, MANIFEST)).st_mtime_ns, n))

    def next_name(self) -> str:
        """Return the name of a snapshot that a state dict makes: numbered, and none that is there."""
        numbers = [int(m[1]) for n in self.names() if (m := _AUTOMATIC.fullmatch(n))] if ranks.rank() == 0 else []
        return str(ranks.agree_value(f"state-{max(numbers, default=-1) + 1:08d}"))

    def prune(self, keep: int) -> None:
        """Remove all but the newest snapshots; see `Embedding.prune_snapshots`."""
        if keep < 1:
            raise TableError("prune_snapshots(keep)", f"keep={keep}", "one has to stay", "keep=2")
        if ranks.rank() == 0:
            for name in self.names()[:-keep]:
                path = os.path.join(self.folder, name)
                # What is half removed is no snapshot any more.
                os.remove(os.path.join(path, MANIFEST))
                shutil.rmtree(path, ignore_errors=True)
        ranks.barrier()


def _blocks(column: Any, rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), _BLOCK):
        yield column.data[rows[start : start + _BLOCK]]


def _commit(partial: str, path: str, manifest: dict[str, Any]) -> None:
    try:
        with open(os.path.join(partial, MANIFEST), "w") as file:
            json.dump(manifest | {"sha256": _digest(manifest)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise no_space(os.path.dirname(path), 0, error) from error
    _sync(partial)
    replaced = f"{path}.replaced"
    if os.path.exists(path):
        # Between the two renames the old one is found under its other name, see `_existing_path`.
        shutil.rmtree(replaced, ignore_errors=True)
        os.rename(path, replaced)
    os.rename(partial, path)
    _sync(os.path.dirname(path))
    shutil.rmtree(replaced, ignore_errors=True)


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _existing_path(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    replaced = f"{path}.replaced"
    return replaced if not os.path.exists(path) and os.path.exists(replaced) else path


def _digest(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest without the one that it holds."""
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_manifest(path: str) -> dict[str, Any]:
    """Return the contents of the ``table.json`` of a snapshot.

    Raises:
        TableError: it is none, or damaged.
    """
    file = os.path.join(path, MANIFEST)
    try:
        with open(file, encoding="utf-8") as opened_file:
            manifest = json.load(opened_file)
    except (OSError, ValueError, RecursionError) as error:
        raise damaged_error(file, str(error)) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        seen = manifest.get("format") if isinstance(manifest, dict) else type(manifest).__name__
        raise damaged_error(file, f"format={seen!r:.80}, and this version reads {FORMAT!r}")
    parts, row, step = manifest.get("parts"), manifest.get("row"), manifest.get("step")
    if not isinstance(parts, list) or not all(type(n) is int and n >= 0 for n in parts):
        raise damaged_error(file, "it does not list the parts")
    if not isinstance(row, list) or len(set(map(str, row))) != len(row) or VALUE not in row:
        raise damaged_error(file, "it does not list the columns of a row")
    if not all(isinstance(name, str) and re.fullmatch(r"\w+", name) and name not in _META for name in row):
        raise damaged_error(file, f"columns {row!r:.80}")
    if type(step) is not int or not 0 <= step < 2**63:
        raise damaged_error(file, f"step={step!r:.80}")
    if manifest.get("sha256") != _digest(manifest):
        raise damaged_error(file, "another checksum than the one that was written with it")
    return manifest


def open_parts(path: str, manifest: dict[str, Any], columns: Iterable[str]) -> list[dict[str, RowFile]]:
    """Return the files of each part of a snapshot, by column, after all of them were read and compared.

    Raises:
        TableError: one is missing, damaged, or not of the part.
    """
    files: list[dict[str, RowFile]] = []
    for part, rows in enumerate(manifest["parts"]):
        files.append({})
        for column in columns:
            file = RowFile(os.path.join(path, f"part-{part}.{column}"))
            if file.rows != rows:
                raise damaged_error(file.path, f"{file.rows:,} rows, and {MANIFEST} has {rows:,}")
            if column in _META and (file.width, file.dtype) != (0, np.dtype(_META[column])):
                raise damaged_error(
                    file.path, f"{file.dtype}[{file.width}], where {np.dtype(_META[column])} are written"
                )
            if column not in _META and file.dtype.kind not in "fV":
                raise damaged_error(file.path, f"values of {file.dtype}")
            file.check()
            files[part][column] = file
    return files


def _all_keys(files: list[dict[str, RowFile]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for part in files:
        yield from zip(part["tables"].blocks(_BLOCK), part["keys"].blocks(_BLOCK), strict=True)


def _is_own_key(tables: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return which keys belong to this process."""
    if ranks.size() == 1:
        return np.ones(len(keys), bool)
    return ranks.owner_of(tables.astype(np.int64), keys, ranks.size()) == ranks.rank()
