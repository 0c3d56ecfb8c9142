"""Prefetch thread: finds and reads the rows of the next batch while the current step runs.

    thread   batch k+1 → keys │ wait until step k has its rows │ rows, slots, values of k+1 │ batch k+2 …
    program  step k: rows move, compiled step ················ │ step k+1: rows move, …

Slots are given away in the order of the batches, and rows that leave the cache are read out of it when their step
begins. So the values are those of a run without a thread, whatever it finds in which order.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import sbpjax as flow

from .slots import Plan

_END = object()
_CHECK_S = 0.05


class PrefetchedBatch:
    """The lookups of a batch that comes, or one that is there.

    Args:
        parts: tables and keys of each lookup.
        loop: a weak reference to the loop that hands the batch out; None for a lookup that was not announced.

    Attributes:
        tables: the table of each key.
        keys: the keys, of all lookups of the step behind each other.
        plan: what moves for it.
        values: the rows that come.
        error: what was raised instead.
        step: which lookup it was.
        writes: whether the step changes the rows.
        ready: whether the plan is made.
        applied: whether the rows were moved.
        is_read: whether the rows that leave were read, so that others may be in their slots.
        is_known: whether the table has counted all writes into the weight that came before.
    """

    def __init__(
        self, parts: list[tuple[np.ndarray, np.ndarray]], loop: Callable[[], _Loop | None] | None = None
    ) -> None:
        self.loop, self.is_read, self.is_known = loop, False, False
        self.tables, self.keys = (np.concatenate(p) if len(p) > 1 else p[0] for p in zip(*parts, strict=True))
        ends = np.cumsum([len(keys) for _, keys in parts])
        # One compiled step asks for all at once, eager code for one lookup after the other.
        self._parts = [slice(0, int(ends[-1]))]
        if len(parts) > 1:
            self._parts += [slice(int(end) - len(keys), int(end)) for end, (_, keys) in zip(ends, parts, strict=True)]
        self._next = 0
        self.plan: Plan | None = None
        self.values: list[np.ndarray] = []
        self.error: Exception | None = None
        self.step = -1
        self.writes = False
        self.ready, self.applied = threading.Event(), threading.Event()

    def next_part(self, tables: np.ndarray, keys: np.ndarray) -> slice | None:
        """Return where the keys of the next lookup stand among these, None if they are others."""
        for number in range(self._next, min(self._next + 2, len(self._parts))):
            part = self._parts[number]
            same = part.stop - part.start == len(keys) and (self.keys[part] == keys).all()
            if same and (self.tables[part] == tables).all():
                self._next = number + 1 if number else len(self._parts)
                return part
            if self._next:  # the whole is asked for first only
                break
        return None

    @property
    def is_coming(self) -> bool:
        """Whether it is of a batch of a loop that goes on."""
        loop = None if self.loop is None else self.loop()
        return loop is not None and not loop.is_over

    @property
    def is_used_up(self) -> bool:
        """Whether all of its lookups were asked for."""
        return self._next >= len(self._parts)


def announce_batches(cache: Any, loader: Iterable, keys: Callable[[Any], Any], writes: Callable[[], bool]) -> Iterator:
    """Yield batches; see `sbpjax.one_embedding.embedding.Embedding.prefetch`."""
    if flow.env.get_world_size() > 1:
        # What a loader makes may be global, and threads of several processes do not come in one order.
        yield from loader
        return
    batches: queue.Queue = queue.Queue(maxsize=1)
    # The thread ends with the loop, also where an interrupt cuts off what is below.
    loop = _Loop()
    cache.begins_anew = True
    thread = threading.Thread(target=_run, args=(cache, loader, keys, writes, batches, weakref.ref(loop)), daemon=True)
    thread.start()
    try:
        while True:
            batch, entry = batches.get()
            if batch is _END:
                if entry is not None:
                    raise entry
                return
            cache.announced.append(entry)
            yield batch
            _apply_finished_batches(cache)
    finally:
        loop.is_over = True
        while thread.is_alive():
            # The thread may wait for room in the queue, or for a batch that is never looked up.
            with cache.lock:
                for entry in list(cache.unapplied):
                    cache.apply(entry)
                cache.announced.clear()
            _drain(batches)
            thread.join(0.01)


class _Loop:
    """A loop over announced batches; its generator holds the only reference."""

    is_over = False


class _PrefetchStopped(Exception):
    """Nobody takes the batches any more."""


def _run(
    cache: Any,
    loader: Iterable,
    keys: Callable,
    writes: Callable,
    batches: queue.Queue,
    loop: Callable[[], _Loop | None],
) -> None:
    before = entry = None

    def check() -> None:
        found = loop()
        if found is None or found.is_over:
            raise _PrefetchStopped

    def put(item: tuple) -> None:
        while True:
            check()
            try:
                batches.put(item, timeout=_CHECK_S)
                return
            except queue.Full:
                continue

    try:
        try:
            for batch in loader:
                entry = _entry(cache, keys(batch), loop)
                put((batch, entry))
                while before is not None and not before.applied.wait(_CHECK_S):
                    check()
                check()
                _plan(cache, entry, writes())
                before = entry
            put((_END, None))
        except _PrefetchStopped:
            pass
        except BaseException as error:  # it is raised where the batches are taken
            with contextlib.suppress(_PrefetchStopped):
                put((_END, error))
    finally:
        if entry is not None:  # a lookup may wait for it
            entry.ready.set()


def _entry(cache: Any, given: Any, loop: Callable[[], _Loop | None]) -> PrefetchedBatch:
    parts = []
    for ids in given if isinstance(given, (list, tuple)) else [given]:
        tensor = ids if isinstance(ids, flow.Tensor) else flow.tensor(np.asarray(ids))
        parts.append(cache.keys_of(tensor, "columns" if cache.num_tables > 1 else "one"))
    return PrefetchedBatch(parts, loop)


def _plan(cache: Any, entry: PrefetchedBatch, writes: bool) -> None:
    with cache.lock:
        entry.writes = writes
        try:
            if cache.loading is not None or not cache.device.is_current():
                return  # tensors are the step's own thread's business, which may be tracing them
            # Every step before it has its rows, so its own are all that have to stay.
            cache.oldest = cache.step + 1
            cache.enter(entry, *cache.plan(entry, entry.writes))
        except Exception as error:  # it is raised where the batch is looked up
            entry.error = error
        finally:
            if entry not in cache.unapplied:
                cache.unapplied.append(entry)
            entry.ready.set()


def _apply_finished_batches(cache: Any) -> None:
    """Let batches go whose step is over, or that got none; the thread waits for them."""
    while cache.announced:
        entry = cache.announced[0]
        entry.ready.wait()
        with cache.lock:
            cache.apply(entry)
        cache.announced.popleft()


def _drain(batches: queue.Queue) -> None:
    while True:
        try:
            batches.get_nowait()
        except queue.Empty:
            return
