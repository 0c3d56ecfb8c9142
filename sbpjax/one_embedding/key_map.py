"""`KeyMap`: hash map from (table, 64-bit key) to row, for a whole batch at once.

    rows = keys.find(tables, ids)                       # -1 for keys that were never seen
    keys.insert(tables[rows < 0], ids[rows < 0], numbers)

A hash table with open addressing in one NumPy array of pairs (key, table and row in one integer), so that a probe
reads one cache line. A batch probes in rounds: all its keys at their first place, those that met another key at their
next, and so on; at 60 % load 100,000 keys are done in some twenty rounds, of which all but the first are small.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sbpjax.utils.interrupts import commit, make_assigner

_LOAD = 0.6
# A pair's second integer is table · 2⁴⁰ + row: up to 10¹² rows and 8 million tables.
ROW_BITS = 40
_ROW_MASK = (1 << ROW_BITS) - 1
_EMPTY = -1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix_bits(x: np.ndarray) -> np.ndarray:
    """Return well spread uint64 for uint64: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    x = x ^ (x >> np.uint64(30))
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def hash_keys(tables: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the uint64 hash of keys of tables; it also decides which process owns a key."""
    with np.errstate(over="ignore"):
        salt = (tables.astype(np.uint64) + np.uint64(1)) * _GOLDEN
        return mix_bits(keys.astype(np.int64).view(np.uint64) + salt)


class KeyMap:
    """The rows of keys.

    Args:
        room: for how many keys there is room at first.
    """

    def __init__(self, room: int = 1024) -> None:
        self._count = 0
        self._pairs = _empty(room)
        self._begun: list[np.ndarray] = []  # the places that an insertion takes, until all its keys are entered

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The size of the map in bytes."""
        return self._pairs.nbytes

    def find(self, tables: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return the rows of keys, -1 for unknown ones.

        Args:
            tables: ``(N,)`` the table of each key.
            keys: ``(N,)`` int64; a key may stand there several times.
        """
        self._undo()
        pairs, mask = self._pairs, np.uint64(len(self._pairs) - 1)
        h = hash_keys(tables, keys)
        place, stride = h & mask, _strides(h)
        rows = np.full(len(keys), -1, np.int64)
        active = None  # all
        while True:
            found = pairs.take(place.view(np.int64), axis=0)  # ten times as fast as pairs[place]
            held = found[:, 1]
            here = (found[:, 0] == keys) & ((held >> ROW_BITS) == tables)
            if active is None:
                rows[here] = held[here] & _ROW_MASK
            else:
                rows[active[here]] = held[here] & _ROW_MASK
            on = np.flatnonzero(~here & (held >= 0))
            if not len(on):
                return rows
            active = on if active is None else active[on]
            stride, keys, tables = stride[on], keys[on], tables[on]
            place = (place[on] + stride) & mask

    def insert(self, tables: np.ndarray, keys: np.ndarray, rows: np.ndarray, *also: Iterable) -> None:
        """Enter keys that are not there yet, each once; all of them or, if that is interrupted, none.

        Args:
            tables: ``(N,)`` the table of each key.
            keys: ``(N,)`` int64.
            rows: ``(N,)`` int64, all different.
            also: iterators that are exhausted in the same call into C that makes the keys known.
        """
        self._undo()
        count = self._count + len(keys)
        pairs = self._grow_pairs(count)
        begun = self._begun if pairs is self._pairs else []  # a larger array is visible once it is full
        _put(pairs, tables, keys, (tables.astype(np.int64) << ROW_BITS) | rows, begun)
        commit(
            make_assigner([(self, "_pairs", pairs), (self, "_count", count)]), map(list.clear, (self._begun,)), *also
        )

    def clear(self) -> None:
        """Forget all keys."""
        new = [(self, "_pairs", _empty(1024)), (self, "_count", 0)]
        commit(make_assigner(new), map(list.clear, (self._begun,)))

    def _undo(self) -> None:
        """Free the places of an insertion that was interrupted: nothing was entered after it."""
        if self._begun:
            for at in self._begun:
                self._pairs[at] = _EMPTY
            self._begun.clear()

    def _grow_pairs(self, count: int) -> np.ndarray:
        """Return pairs with room for so many keys."""
        old = self._pairs
        if count <= _LOAD * len(old):
            return old
        made = _empty(count)
        block = 1 << 20  # bounds the memory that is needed besides
        for start in range(0, len(old), block):
            part = old[start : start + block]
            part = part[part[:, 1] >= 0]
            _put(made, part[:, 1] >> ROW_BITS, part[:, 0], part[:, 1], [])
        return made


def _put(pairs: np.ndarray, tables: np.ndarray, keys: np.ndarray, held: np.ndarray, begun: list[np.ndarray]) -> None:
    """Enter keys; the list gets the places that are taken, before they are."""
    mask = np.uint64(len(pairs) - 1)
    h = hash_keys(tables, keys)
    place, stride = h & mask, _strides(h)
    while len(keys):
        at = place.view(np.int64)
        free = pairs[at, 1] < 0
        begun.append(at[free])
        pairs[at[free]] = np.stack([keys[free], held[free]], 1)
        # Of several that want one free place the last has it now: the others see that it is not theirs.
        on = np.flatnonzero(pairs[at, 1] != held)
        keys, held, stride = keys[on], held[on], stride[on]
        place = (place[on] + stride) & mask


def _empty(room: int) -> np.ndarray:
    size = 1 << max(10, int(np.ceil(np.log2(max(room, 1) / _LOAD))))
    return np.full((size, 2), _EMPTY, np.int64)


def _strides(h: np.ndarray) -> np.ndarray:
    # Odd, so that it comes past every place of a table of 2ⁿ; of other bits than the place.
    return (h >> np.uint64(40)) | np.uint64(1)
