"""`RowStore`: key-value store of rows, in memory or in files; new keys get initial values.

    rows = store.rows_of(tables, keys, step)     # numbers of rows, new keys included
    store.read("value", rows), store.write("exp_avg", rows, moments)

A row is a number; its value and each state of the optimizer are a column of their own (`sbpjax.one_embedding.columns`),
so a column comes when an optimizer does. Beside them stand, in memory, the row's key and table, the step that looked it
up last, and how many steps did: some 50 bytes a row with the map from keys to rows.

New keys get their rows, and rows that make room go, in one call into C (`_core.tensor.storage.exchange`): an interrupt
finds all of a lookup's keys or none of the new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import starmap
from operator import setitem
from typing import Any

import numpy as np

from sbpjax.errors import TableError
from sbpjax.utils.interrupts import commit, make_assigner

from .columns import FileColumn, MemoryColumn
from .initializers import RowInitializer
from .key_map import KeyMap

VALUE = "value"
# The state of an optimizer that holds a float32 copy of a value of lower precision.
MASTER = "master"
_BLOCK = 1 << 16
# A sixteenth of the rows makes room at once: the map of keys is made anew for it.
_EVICTED_PART = 16


class RowStore:
    """The rows of one process.

    Args:
        name: of the tables, for messages.
        width: the length of a row.
        dtype: of the values, NumPy's.
        initial: makes first values.
        capacity: the most rows.
        folder: where files lie; None for memory.
        evict: which rows make room, see `sbpjax.one_embedding.options`.
        evict_after: drop rows that were not looked up in so many steps.
    """

    def __init__(
        self,
        name: str,
        width: int,
        dtype: Any,
        initial: RowInitializer,
        capacity: int,
        folder: str | None = None,
        evict: str = "",
        evict_after: int = 0,
    ) -> None:
        self.name, self.width, self.capacity = name, width, capacity
        self._initial, self._folder, self._dtype = initial, folder, np.dtype(dtype)
        self._evict, self._evict_after = evict, evict_after
        self._map = KeyMap()
        self.columns: dict[str, Any] = {}
        self.keys, self.tables = MemoryColumn(0, np.int64), MemoryColumn(0, np.int32)
        self.seen, self.counts = MemoryColumn(0, np.int64, -1), MemoryColumn(0, np.int32)
        self._free = np.empty(0, np.int64)
        self._used = 0  # rows that were ever given away
        self.add_column(VALUE, dtype, 0.0)

    def __len__(self) -> int:
        return self._used - len(self._free)

    def live(self) -> np.ndarray:
        """Return the numbers of the rows that have a key."""
        return self._live(self._free)

    def _live(self, free: np.ndarray) -> np.ndarray:
        rows = np.arange(self._used)
        return rows if not len(free) else np.delete(rows, free)

    def new_column(self, dtype: Any, fill: float) -> Any:
        """Return a column whose rows all hold `fill`; it is not of the store yet."""
        made: Any = MemoryColumn(self.width, dtype, fill)
        if self._folder is not None:
            made = FileColumn(self.width, dtype, fill, self._folder)
        made.reserve(self._used)
        return made

    def add_column(self, name: str, dtype: Any, fill: float) -> None:
        """Add a column whose rows all hold `fill`."""
        self.columns[name] = self.new_column(dtype, fill)

    def read(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return rows of a column, ``(N, width)``."""
        return self.columns[name].data.take(rows, axis=0)

    def write(self, name: str, rows: np.ndarray, values: np.ndarray) -> None:
        """Write rows of a column."""
        self.columns[name].data[rows] = values

    def rows_of(
        self, tables: np.ndarray, keys: np.ndarray, step: int, fixed: Callable[[], np.ndarray] | None = None
    ) -> np.ndarray:
        """Return the rows of keys; those of new keys are made.

        Args:
            tables: ``(N,)`` the table of each key.
            keys: ``(N,)`` int64, repeated or not.
            step: counts the lookups, for eviction.
            fixed: returns the rows that must not be evicted.

        Raises:
            TableError: the new keys do not fit; none is taken then.
        """
        rows = self._map.find(tables, keys)
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            order = np.lexsort((keys[unknown], tables[unknown]))
            k, t = keys[unknown][order], tables[unknown][order]
            first = np.ones(len(k), bool)
            first[1:] = (k[1:] != k[:-1]) | (t[1:] != t[:-1])
            protected = rows[rows >= 0]
            made = self._make(t[first], k[first], step, protected, fixed)
            found = np.empty(len(k), np.int64)
            found[order] = made[np.cumsum(first) - 1]
            rows[unknown] = found
        counts = self.counts.data
        # Once per step: NumPy writes a repeated place once.
        commit(starmap(setitem, [(self.seen.data, rows, step), (counts, rows, counts[rows] + 1)]))
        return rows

    def _make(self, tables: np.ndarray, keys: np.ndarray, step: int, known: np.ndarray, fixed: Any) -> np.ndarray:
        lack, free, key_map = len(self) + len(keys) - self.capacity, self._free, self._map
        if lack > 0:
            if not self._evict and not self._evict_after:
                raise self._store_full_error(len(keys))
            kept = known if fixed is None else np.concatenate([known, fixed()])
            free = np.concatenate([free, self._evict_rows(lack, len(keys), step, kept)])
            kept_rows = self._live(free)
            key_map = KeyMap(len(kept_rows))
            key_map.insert(self.tables.data[kept_rows], self.keys.data[kept_rows], kept_rows)
        fresh = max(0, len(keys) - len(free))
        self._reserve(self._used + fresh)  # may find the disk full: before anything changes
        rows = np.concatenate([free[: len(keys)], np.arange(self._used, self._used + fresh)])
        values = self._first_values(tables, keys)
        # Not before all is known: the rows may be those of keys that go.
        writes = [(self.keys.data, rows, keys), (self.tables.data, rows, tables), (self.counts.data, rows, 0)]
        for name, column in self.columns.items():
            writes.append((column.data, rows, values if name in (VALUE, MASTER) else column.fill))
        own = [(self, "_map", key_map), (self, "_free", free[len(keys) :]), (self, "_used", self._used + fresh)]
        key_map.insert(tables, keys, rows, starmap(setitem, writes), make_assigner(own))
        return rows

    def _first_values(self, tables: np.ndarray, keys: np.ndarray) -> np.ndarray:
        values = np.empty((len(keys), self.width), self._dtype)
        for i in range(0, len(keys), _BLOCK):
            part = slice(i, i + _BLOCK)
            values[part] = self._initial.rows(tables[part], keys[part])
        return values

    def put(self, tables: np.ndarray, keys: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        """Enter keys that are not there yet, each once, with their rows, as a snapshot has them.

        Raises:
            TableError: they do not fit.
        """
        if len(self) + len(keys) > self.capacity:
            raise self._store_full_error(len(keys))
        self._reserve(self._used + len(keys))
        rows = np.arange(self._used, self._used + len(keys))
        self.keys.data[rows], self.tables.data[rows] = keys, tables
        for name, values in columns.items():
            where = {"seen": self.seen, "counts": self.counts}.get(name) or self.columns[name]
            where.data[rows] = values
        self._map.insert(tables, keys, rows, make_assigner([(self, "_used", self._used + len(keys))]))

    def clear(self) -> None:
        """Forget all rows, and all columns but the values."""
        for column in self.columns.values():
            column.close()
        self.columns, self._used, self._free = {}, 0, np.empty(0, np.int64)
        self._map.clear()
        self.seen = MemoryColumn(0, np.int64, -1)
        self.counts = MemoryColumn(0, np.int32)
        self.add_column(VALUE, self._dtype, 0.0)

    def close(self) -> None:
        """Let memory and files go."""
        for column in self.columns.values():
            column.close()

    def _reserve(self, rows: int) -> None:
        for column in (*self.columns.values(), self.keys, self.tables, self.seen, self.counts):
            column.reserve(rows)

    def _evict_rows(self, lack: int, wanted: int, step: int, kept: np.ndarray) -> np.ndarray:
        """Return the rows that make room, at least as many as are lacking."""
        live = self.live()
        may_go = np.ones(self._used, bool)
        may_go[kept] = False
        live = live[may_go[live]]
        old = self.seen.data[live]
        gone = live[step - old > self._evict_after] if self._evict_after else live[:0]
        if len(gone) < lack and self._evict:
            more = min(max(lack, len(self) // _EVICTED_PART), len(live))
            by_age = np.lexsort((old,) if self._evict == "age" else (old, self.counts.data[live]))
            gone = np.union1d(gone, live[by_age[:more]])
        if len(gone) < lack:
            raise self._store_full_error(wanted, len(gone))
        return gone

    def _store_full_error(self, wanted: int, evictable: int | None = None) -> TableError:
        rule = f"a store has {self.capacity:,} rows at most"
        if evictable is not None:
            rule += f", and {evictable:,} of them may make room (those on the device and of this batch stay)"
        return TableError(
            f"tables {self.name!r}",
            f"{wanted:,} new keys, and {len(self):,} rows",
            rule,
            f'capacity={2 * (len(self) + wanted):,}, or evict="frequency" of a cached store',
        )
