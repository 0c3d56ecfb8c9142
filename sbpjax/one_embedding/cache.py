"""`Cache`: moves the rows of a batch between the store and the cache on the devices.

It is what `host_input` calls before a step. Its parts know one thing each: `RowStore` the rows of keys, `Slots` which
row lies in which slot, `DeviceRows` the tensors, `sbpjax.one_embedding.ranks` who owns a key. Here is the order:

    rows that left before → store │ keys → rows │ rows → slots, who leaves, who comes │ programs move both

An interrupt (`_core.tensor.storage.exchange`) finds the state before the lookup or after it. The slots are given away
in the same call into C that notes the lookup in `unapplied`; whatever comes next, a lookup, a flush or a snapshot,
first moves the rows of what is noted there. A move that was cut off is repeated: it writes the same rows once more.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import sbpjax as flow
from sbpjax.errors import TableError
from sbpjax.graph import Request
from sbpjax.optim import mark_row_table
from sbpjax.utils.interrupts import commit, make_assigner

from . import ranks
from .device_rows import DeviceRows, host, initial_state_value
from .prefetch import PrefetchedBatch
from .slots import Plan, Slots
from .store import MASTER, VALUE, RowStore


class Cache:
    """The rows of all tables of an `Embedding`.

    Args:
        name: of the tables.
        weight: the cache, a parameter ``(slots, width)``.
        store: this process's rows.
        num_tables: how many tables there are.
        key_type: of the ids.
        padding_idx: an id whose vector is zero.
        size_factor: how long a row is with its state, in rows; 1 for what the optimizer needs.
    """

    def __init__(
        self,
        name: str,
        weight: Any,
        store: RowStore,
        num_tables: int,
        key_type: Any,
        padding_idx: int | None,
        size_factor: int,
    ) -> None:
        self.name, self.weight, self.store = name, weight, store
        self.num_tables, self.key_type, self.padding_idx = num_tables, key_type, padding_idx
        self.size_factor = size_factor
        self.device = DeviceRows(name, weight)
        mark_row_table(weight, self._join_optimizer)
        self.slots: Slots | None = None  # made when it is known on how many processes
        self.offset = 0  # the first slot of this process
        self.step = 0  # counts lookups
        self.oldest = 0  # slots used since then stay
        self.saving: list[tuple[np.ndarray, list]] = []  # rows that left, and the tensors that hold them
        self.unapplied: list[PrefetchedBatch] = []  # plans whose rows did not move yet
        self.announced: deque[PrefetchedBatch] = deque()  # batches that were handed out, and not looked up yet
        self.lock = threading.RLock()
        self._version = -1  # of the weight, behind the last lookup
        self._moved = -1  # the lookup whose rows were moved last
        self._moves = False  # whether a move has begun, which may have written into the weight
        self.loading: Callable[[], None] | None = None  # takes the rest of a snapshot
        self.begins_anew = False  # whether a loop over announced batches has begun since the last lookup
        self._waits = False  # whether rows were looked up in eager code that an optimizer has yet to update

    def prepare(self, requests: Sequence[Request], whole_step: bool) -> list[flow.Tensor]:
        """Bring the rows of keys into the cache and return their slots; see `sbpjax.graph.host_input`."""
        error = None
        try:
            parts = [self.keys_of(request.keys, request.note[0]) for request in requests]
        except TableError as why:
            if not self.device.spans_processes:
                raise
            error = why  # the other processes wait for this one's keys
            parts = [(np.empty(0, np.int64), np.empty(0, np.int64)) for _ in requests]
        writes = any(request.note[1] for request in requests)
        tables, keys = (np.concatenate(p) if len(p) > 1 else p[0] for p in zip(*parts, strict=True))
        with self.lock:
            self.finish_loading()
            if whole_step or (self.weight._version != self._version and not self._moves):
                self._waits = False  # an optimizer has made its step since
            if self.begins_anew and self.weight.grad is None:
                self._waits = False  # an exception has ended the loop before, and its last step with it
            self.begins_anew = False
        slots = self._take_prefetched(tables, keys, writes)
        with self.lock:
            if slots is None:
                slots = self._slots_of(tables, keys, writes, error)
            self._version = self.weight._version
            self._waits |= writes and not whole_step
        found, start = [], 0
        for request, part in zip(requests, parts, strict=True):
            found.append(_slots_tensor_like(slots[start : start + len(part[0])], request.keys, request.note[0]))
            start += len(part[0])
        return found

    def _take_prefetched(self, tables: np.ndarray, keys: np.ndarray, writes: bool) -> np.ndarray | None:
        """Return the slots that a thread found for this lookup, None if it found none."""
        while self.announced:
            entry = self.announced[0]
            entry.ready.wait()  # without the lock, which the thread takes to make the plan
            with self.lock:
                if not entry.applied.is_set():
                    self._check_waits()
                    if entry.plan is None and entry.error is None:
                        self._plan_deferred(entry, writes)
                    self.apply(entry)
                at = entry.next_part(tables, keys)
                if at is None:  # a batch that was not looked up, or another lookup
                    self.announced.popleft()
                    continue
                if entry.is_used_up:
                    self.announced.popleft()
                if entry.error is not None:
                    raise entry.error
                # A lookup between may have evicted what was prepared; then it is looked up anew, mostly with hits.
                is_good = entry.plan is not None and entry.step == self._moved and self.device.is_current()
                if not is_good or (writes and not entry.writes):
                    return None
                if writes:  # once more: a snapshot may have been made since
                    self.slots_now().mark_changed(entry.plan.slots[at])
                return self._pad_slots(entry.plan.slots[at], tables, keys)
        return None

    def _plan_deferred(self, entry: PrefetchedBatch, writes: bool) -> None:
        """Make a plan that the thread left, since the optimizer's state was not there yet."""
        if entry in self.unapplied:
            self.unapplied.remove(entry)
        self.begin()
        self.oldest, entry.writes = self.step + 1, writes
        try:
            self.enter(entry, *self.plan(entry, writes))
        except TableError as error:
            entry.error = error

    def _check_waits(self) -> None:
        """Raise if rows that an optimizer has yet to update would leave the cache."""
        if self._waits and any(entry.is_coming for entry in self.unapplied):
            raise TableError(
                f"a lookup in tables {self.name!r}",
                "ids unknown to prefetch, and rows of the next batch that come",
                "in eager code the rows of a step stay until the optimizer's step",
                "prefetch(loader, keys=lambda batch: [ids of every lookup of the step, in order])",
            )

    def _slots_of(
        self, tables: np.ndarray, keys: np.ndarray, writes: bool, error: TableError | None = None
    ) -> np.ndarray:
        self._check_waits()
        while self.unapplied:
            self.apply(self.unapplied[0])
        self.begin()
        if not self._waits:
            self.oldest = self.step + 1
        if self.device.spans_processes:
            operation = f"a lookup in tables {self.name!r}"
            given, back = ranks.exchange(tables, keys, operation, error)
            entry = PrefetchedBatch([given])
            try:
                plan, values = self.plan(entry, writes)
            except TableError as why:
                error = why
            ranks.raise_on_all(operation, error, ranks.all_reduce_max(int(error is not None))[0])
            self.enter(entry, plan, values)
            self.apply(entry)
            return self._pad_slots(back(plan.slots + np.int32(self.offset)), tables, keys)
        entry = PrefetchedBatch([(tables, keys)])
        plan, values = self.plan(entry, writes)
        self.enter(entry, plan, values)
        self.apply(entry)
        return self._pad_slots(plan.slots, tables, keys)

    def plan(self, entry: PrefetchedBatch, writes: bool) -> tuple[Plan, list[np.ndarray]]:
        """Find what moves for a lookup, and read the rows that come."""
        self.take_saved()
        self.step += 1
        slots = self.slots_now()
        rows = self.store.rows_of(entry.tables, entry.keys, self.step, slots.resident)
        plan = slots.plan(rows, self.step, writes, self.oldest)
        return plan, [self.store.read(name, plan.load_rows) for name in self.device.names]

    def enter(self, entry: PrefetchedBatch, plan: Plan, values: list[np.ndarray]) -> None:
        """Give the slots of a plan away and note its rows as those that move next."""
        known = [(entry, "plan", plan), (entry, "values", values), (entry, "step", self.step)]
        plan.carry_out(make_assigner(known), map(self.unapplied.append, (entry,)))

    def _move(self, entry: PrefetchedBatch, plan: Plan) -> None:
        agreed = len(plan.save_slots), len(plan.load_slots)
        if self.device.spans_processes:
            agreed = ranks.all_reduce_max(*agreed)
        if not entry.is_read:  # later its slots hold other rows
            out = self.device.gather(plan.save_slots + self.offset, agreed[0])
            left = [(plan.save_rows, out)] if len(plan.save_rows) else []
            is_known = self.weight._version == self._version
            commit(
                make_assigner([(entry, "is_read", True), (entry, "is_known", is_known), (self, "_moves", True)]),
                map(self.saving.append, left),
            )
        self.device.scatter(plan.load_slots + self.offset, entry.values, agreed[1])
        done = [(self, "_moved", entry.step), (self, "_moves", False)]
        if entry.is_known:  # else an optimizer has made a step, which the next lookup notices
            done.append((self, "_version", self.weight._version))
        commit(make_assigner(done), map(self.unapplied.remove, (entry,)))

    def take_saved(self) -> None:
        """Write the rows that left the cache into the store; the tensors may have to be computed first."""
        for rows, tensors in self.saving:
            for name, tensor in zip(self.device.names, tensors, strict=True):
                self.store.write(name, rows, host(tensor)[: len(rows)])
        self.saving.clear()

    def _pad_slots(self, slots: np.ndarray, tables: np.ndarray, keys: np.ndarray) -> np.ndarray:
        if self.padding_idx is None:
            return slots
        return np.where(keys == self.padding_idx, np.int32(len(self.weight) - 1), slots)

    def keys_of(self, given: flow.Tensor, operation: str) -> tuple[np.ndarray, np.ndarray]:
        """Return tables and keys of a lookup, flat, as int64."""
        keys = host(given)
        if operation == "given":
            keys, tables = keys[0].reshape(-1), keys[1].reshape(-1)
            wrong = tables[(tables < 0) | (tables >= self.num_tables)]
            if len(wrong):
                rule = f"tables are numbered 0 to {self.num_tables - 1}"
                raise TableError(f"{self.name}(ids, table_ids)", f"table {wrong[0]}", rule, "a number of those")
        else:
            tables = np.arange(self.num_tables) if operation == "columns" else np.zeros(1, np.int64)
            tables = np.broadcast_to(tables, keys.shape).reshape(-1)
            keys = keys.reshape(-1)
        if keys.dtype.itemsize > self.key_type.itemsize and len(keys):
            info = np.iinfo(self.key_type.np)
            if keys.min() < info.min or keys.max() > info.max:
                worst = keys.min() if keys.min() < info.min else keys.max()
                rule = f"key_type={self.key_type.name} holds {info.min} to {info.max}"
                raise TableError(f"{self.name}(ids)", f"the id {worst}", rule, "key_type=flow.int64")
        return tables.astype(np.int64, copy=False), keys.astype(np.int64, copy=False)

    # -- the cache -------------------------------------------------------------------------------------------------

    def _join_optimizer(self, optimizer: Any) -> None:
        self.device.optimizer = weakref.ref(optimizer)

    def slots_now(self) -> Slots:
        if self.slots is None:
            self.device.check_layout()
            count = len(self.weight)
            if self.device.spans_processes:
                mine = len(self.weight.to_local())
                held = [0] * ranks.size()
                flow.distributed.all_gather_object(held, mine)
                self.offset = sum(held[: ranks.rank()])
                count = mine + (ranks.rank() != ranks.size() - 1)
            self.slots = Slots(self.name, count - 1)  # the last one is padding's
        return self.slots

    def begin(self) -> None:
        """Take over what the optimizer holds of each row now."""
        found = self.device.new_states()
        if found is None:
            return
        self.flush()
        states = [name for name in found if name != VALUE]
        self._check_states(states)
        columns = dict(self.store.columns)
        for name in states:
            fill = 0.0 if name == MASTER else initial_state_value(found[name])
            if name in columns:
                columns[name].fill = fill
            else:
                columns[name] = self.store.new_column(found[name].dtype.np, fill)
                if name == MASTER:
                    live = self.store.live()
                    columns[name].data[live] = self.store.read(VALUE, live)
        # What the new tensors hold belongs to no row.
        cleared = [] if self.slots is None else self.slots.clear_assignments()
        commit(make_assigner([(self.store, "columns", columns), *self.device.assignments_to_take(found), *cleared]))

    def _check_states(self, states: list[str]) -> None:
        optimizer = self.device.optimizer()
        kind, there = type(optimizer).__name__, [n for n in self.store.columns if n != VALUE]
        lacking = [n for n in states if n not in there]
        if there and lacking:
            raise TableError(
                f"tables {self.name!r} with {kind}",
                f"rows with the state {there}",
                f"{kind} needs {lacking} of every row",
                "the optimizer that the rows were trained with, or load_snapshot(name, states=False)",
            )
        factor = self.size_factor
        if 1 < factor < 1 + len(states):
            raise TableError(
                f"tables {self.name!r} with {kind}",
                f"size_factor={factor}",
                f"{kind} keeps {len(states)} numbers beside each number of a row ({', '.join(states)})",
                f"size_factor={1 + len(states)} in the store's options",
            )

    def apply(self, entry: PrefetchedBatch) -> None:
        """Move the rows of a plan, after those of all plans that were made before it."""
        while entry in self.unapplied:
            first_one = self.unapplied[0]
            if first_one.plan is None:
                self.unapplied.remove(first_one)
            else:
                self._move(first_one, first_one.plan)
            first_one.applied.set()
        entry.applied.set()

    def flush(self) -> None:
        """Write all rows that steps have changed into the store."""
        self.finish_loading()
        while self.unapplied:
            self.apply(self.unapplied[0])
        self.take_saved()
        slots, rows = self.slots_now().changed_rows()
        agreed = (lambda n: ranks.all_reduce_max(n)[0]) if self.device.spans_processes else (lambda n: n)
        for name, values in self.device.read(slots + self.offset, agreed).items():
            self.store.write(name, rows, values)
        self.slots_now().mark_saved(self.oldest if self._waits else None)

    def finish_loading(self) -> None:
        """Take the rest of a snapshot, if that was interrupted."""
        if self.loading is not None:
            self.loading()

    @property
    def hit_rate(self) -> float:
        """The part of the ids so far whose rows were in this process's cache; NaN before the first lookup."""
        slots = self.slots
        total = 0 if slots is None else slots.hits + slots.misses
        return float("nan") if slots is None or not total else slots.hits / total


def _slots_tensor_like(slots: np.ndarray, keys: flow.Tensor, operation: str) -> flow.Tensor:
    """Return slots as a tensor of the shape and the layout of keys; of both rows where tables stand beside the ids."""
    shape = tuple((keys.to_local() if keys.is_global else keys).shape)
    slots = slots.astype(np.int32, copy=False)
    both = np.broadcast_to(slots.reshape(shape[1:]), shape) if operation == "given" else slots.reshape(shape)
    if not keys.is_global:
        return flow.tensor(np.ascontiguousarray(both), device=keys.device)
    return flow.tensor(np.ascontiguousarray(both)).to_global(keys.placement, keys.sbp)
