"""`Slots`: slot allocation and eviction of the device cache.

    plan = slots.plan(rows, step, writes=True)     # nothing is given away yet
    plan.slots        # for every row that was asked for its slot
    plan.load         # pairs (slots, rows): to be written into the cache
    plan.save         # pairs (slots, rows): to be read out of it before, since a step changed them
    plan.carry_out()  # the slots are given away, in one call into C: an interrupt finds all of that or nothing

Least recently used rows leave first. All is done for a whole batch at once. The age of slots is not sorted in every
step: a pass over all slots finds candidates for many steps, and one that was used meanwhile is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import starmap
from operator import setitem
from typing import Any, NamedTuple

import numpy as np

from sbpjax.errors import TableError
from sbpjax.utils.interrupts import Assignment, commit, make_assigner

_NEVER = -1


class Plan(NamedTuple):
    """The changes of the cache that a lookup needs.

    Attributes:
        slots: for every row that was asked for its slot, int32.
        load_slots: the slots that get new rows.
        load_rows: these rows.
        save_slots: slots whose old rows have to be saved before.
        save_rows: these rows.
        writes: arrays of the slots' owner, indices and values.
        numbers: attributes of it.
    """

    slots: np.ndarray
    load_slots: np.ndarray
    load_rows: np.ndarray
    save_slots: np.ndarray
    save_rows: np.ndarray
    writes: list[tuple[np.ndarray, Any, Any]]
    numbers: list[Assignment]

    def carry_out(self, *also: Iterable) -> None:
        """Give the slots away, before the next plan is made.

        Args:
            also: iterators that are exhausted in the same call into C.
        """
        commit(starmap(setitem, self.writes), make_assigner(self.numbers), *also)


class Slots:
    """The slots of one process.

    Args:
        name: of the tables, for messages.
        count: how many slots there are.
    """

    def __init__(self, name: str, count: int) -> None:
        self.name, self.count = name, count
        self.hits = self.misses = 0
        self.row_of = np.full(count, _NEVER, np.int64)
        self._last = np.full(count, _NEVER, np.int64)
        self._changed = np.zeros(count, bool)
        self._slot_of = np.full(1024, _NEVER, np.int32)
        self._unused = 0  # slots from here on were never given away
        self._queue = self._queue_last = np.empty(0, np.int64)

    def clear_assignments(self) -> list[Assignment]:
        """Return the assignments that let the slots hold nothing."""
        new = vars(Slots(self.name, self.count))
        return [(self, name, value) for name, value in new.items() if name not in ("hits", "misses")]

    def plan(self, rows: np.ndarray, step: int, writes: bool, oldest: int | None = None) -> Plan:
        """Find a slot for every row.

        Args:
            rows: ``(N,)`` rows of the store, repeated or not.
            step: the time of this lookup.
            writes: whether the rows will be changed on the device.
            oldest: slots that were used at this time or later stay, besides those of this lookup.

        Raises:
            TableError: the rows do not fit beside those that stay.
        """
        self._grow_slots(rows)
        slots = self._slot_of.take(rows)
        lacking = np.flatnonzero(slots < 0)
        missing = rows[lacking]
        empty = np.empty(0, np.int64)
        load_rows = np.unique(missing) if len(missing) else empty
        writes_of: list[tuple[np.ndarray, Any, Any]] = []
        numbers: list[Assignment] = []
        load_slots = save_slots = save_rows = empty
        self._last[slots[slots >= 0] if len(lacking) else slots] = step
        if len(load_rows):
            load_slots, numbers = self._take_slots(len(load_rows), step if oldest is None else min(step, oldest), rows)
            old = self.row_of[load_slots]
            held = old >= 0
            changed = held & self._changed[load_slots]
            save_slots, save_rows = load_slots[changed], old[changed]
            writes_of = [
                (self._slot_of, old[held], _NEVER),
                (self.row_of, load_slots, load_rows),
                (self._slot_of, load_rows, load_slots),
                (self._changed, load_slots, False),
                (self._last, load_slots, step),
            ]
            slots[lacking] = load_slots[np.searchsorted(load_rows, missing)]
        if writes:
            writes_of.append((self._changed, slots, True))
        numbers.append((self, "hits", self.hits + len(rows) - len(missing)))
        numbers.append((self, "misses", self.misses + len(missing)))
        return Plan(slots, load_slots, load_rows, save_slots, save_rows, writes_of, numbers)

    def resident(self) -> np.ndarray:
        """Return the rows that lie in slots."""
        return self.row_of[self.row_of >= 0]

    def changed_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return slots whose rows were changed, and these rows."""
        slots = np.flatnonzero(self._changed)
        return slots, self.row_of[slots]

    def mark_saved(self, before: int | None = None) -> None:
        """Take note that the store has what the slots hold.

        Args:
            before: a step will yet change the rows of slots that were used at this time or later; None for none.
        """
        self._changed[slice(None) if before is None else self._last < before] = False

    def mark_changed(self, slots: np.ndarray) -> None:
        """Take note that a step is about to change rows."""
        self._changed[slots] = True

    def _grow_slots(self, rows: np.ndarray) -> None:
        need = int(rows.max()) + 1 if len(rows) else 0
        if need > len(self._slot_of):
            grown = np.full(max(need, 2 * len(self._slot_of)), _NEVER, np.int32)
            grown[: len(self._slot_of)] = self._slot_of
            self._slot_of = grown

    def _take_slots(self, wanted: int, oldest: int, rows: np.ndarray) -> tuple[np.ndarray, list[Assignment]]:
        """Return slots for new rows, unused ones, then the least recently used; and what changes as they are taken."""
        unused = min(wanted, self.count - self._unused)
        found = [np.arange(self._unused, self._unused + unused)]
        lack = wanted - unused
        scanned = False
        queue, queue_last = self._queue, self._queue_last
        while lack:
            same = (self._last[queue] == queue_last) & (queue_last < oldest)
            good = np.flatnonzero(same)[:lack]
            found.append(queue[good])
            lack -= len(good)
            end = good[-1] + 1 if len(good) else len(queue)
            queue, queue_last = (queue[end:], queue_last[end:]) if lack == 0 else (queue[:0], queue[:0])
            if lack and scanned:
                raise self._too_many_keys_error(rows, wanted, oldest)
            if lack:
                last = self._last[: self._unused].copy()
                if len(found) > 1:
                    last[np.concatenate(found[1:])] = oldest  # taken already
                count = min(len(last), max(4 * lack, self.count // 8))
                part = np.argpartition(last, count - 1)[:count] if count else np.empty(0, np.int64)
                queue = part[np.argsort(last[part], kind="stable")]
                queue_last, scanned = last[queue], True
        numbers = [(self, "_unused", self._unused + unused), (self, "_queue", queue), (self, "_queue_last", queue_last)]
        return np.concatenate(found), numbers

    def _too_many_keys_error(self, rows: np.ndarray, wanted: int, oldest: int) -> TableError:
        distinct = len(np.unique(rows))
        held = int((self._last >= oldest).sum()) + wanted - distinct
        seen = f"{distinct:,} different keys in a step"
        if held > 0:
            seen += f", and {held:,} of lookups before that no optimizer step has followed"
        return TableError(
            f"tables {self.name!r}",
            seen,
            f"the cache has {self.count:,} rows, and it holds all rows of a step at once",
            f"a cache of {2 * (distinct + max(held, 0)):,} rows (cache_budget_mb), or smaller batches",
        )
