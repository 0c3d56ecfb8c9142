"""Comparison of collective traces between processes, in the background and at exit.

The first process of a group publishes its trace (`_core.runtime.collective_trace`) in the coordination service, the
others read it there and compare: one message per process, however many there are. A background thread does so after
every few calls and where values are read, but not more often than its pause, and once more when the program is idle:

    rank 0 writes  epoch 0 │ 58 calls, state -8821 │ call 32: 1177 │ (idle: the states of its last calls)
    rank 1 reads   it made 61 calls, and after its 58th the state was 93: other calls

It reports this in the store, rank 0 adds its own calls, and rank 1 composes the text of the first difference and
reports it as its failure, which `failure.FailureMonitor` distributes to all ranks. The main thread raises it at its
next call; a process whose main thread is blocked in a program is ended. At the exit the ranks wait for each other,
and compare to the last call.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import jax

from sbpjax._core.runtime import collective_trace
from sbpjax._core.runtime.collective_trace import EVERY, STORE_PREFIX, CollectiveTrace, key_of
from sbpjax._core.runtime.processes import Processes, timeout_s
from sbpjax._core.runtime.trace_difference import difference

# Programs of many steps a second wake the thread earlier; a message costs each process 0.1 ms of a processor.
_PAUSE_S = 1.0
_HURRIED_S = 0.05  # the process is about to end
_STILL = 2  # pauses without a call: the program is idle, or computes
_POLL_S = 0.5
_LATER_S = 0.02  # all wake after the same call; readers must come after the writer
_BACK = 1024  # calls that a process may lag and still be compared
_TAIL = 1024  # states that an idle process publishes
_ANSWER_S = 5.0  # for the other process's background thread to report its calls
_ACCUSED = f"{STORE_PREFIX}/differ"


class Comparison:
    """Background thread that compares traces, and the comparison at exit.

    Args:
        world: the processes that take part.
        report: sends the text of a difference to all processes.
    """

    def __init__(self, world: Processes, report: Callable[[str], None]) -> None:
        self.world = world
        self._report = report
        self._over = threading.Event()
        self._sent: dict[tuple[int, ...], tuple] = {}  # last published part of each trace
        self._answered = self._hurries = False
        self._checked_s = 0.0  # when it last looked whether another one found a difference
        self._thread = threading.Thread(target=self._run, name="sbpjax-calls", daemon=True)

    def start(self) -> None:
        """Start the comparison."""
        self._thread.start()

    def compare_often(self) -> None:
        """Compare up to the last call from now on, and often: the main thread is blocked."""
        self._hurries = True
        collective_trace.wake.set()

    def _run(self) -> None:
        before, pauses = None, 0
        while collective_trace.find_stop_reason() is None:
            collective_trace.wake.wait(_HURRIED_S if self._hurries else _PAUSE_S)
            collective_trace.wake.clear()
            if any(t.members[0] != self.world.rank for t in list(collective_trace.trails.values())):
                self._over.wait(_LATER_S)
            if self._over.is_set():
                return
            counts = [(t.epoch, t.count) for t in list(collective_trace.trails.values())]
            pauses = pauses + 1 if counts == before else 0
            before = counts
            if pauses % _STILL and not self._hurries:
                continue
            try:
                self.compare(still=pauses > 0 or self._hurries)
            except jax.errors.JaxRuntimeError:
                return  # the coordinator is gone; JAX's client reports that itself

    def compare(self, still: bool = False, ended: bool = False) -> bool:
        """Publish the traces that this process leads, and compare the others; return whether all of them agree.

        Args:
            still: whether the main thread has been idle for a while.
            ended: whether it makes no further calls.
        """
        leads, settled = False, True
        for trace in list(collective_trace.trails.values()):
            if trace.members[0] == self.world.rank:
                leads = True
                self._publish(trace, still, ended)
            else:
                settled &= self._compare_trace(trace, still, ended)
        if leads and (still or ended or time.monotonic() - self._checked_s > _POLL_S):
            self._answer()
        return settled

    # -- the first process of a group ------------------------------------------------------------------------------

    def _publish(self, trace: CollectiveTrace, still: bool, ended: bool) -> None:
        epoch, count = trace.epoch, _count(trace, still)
        news = (epoch, count, still or ended, ended)
        before = self._sent.get(trace.members)
        if before == news or (before is not None and before[:2] == news[:2] and not (still or ended)):
            return
        first = max(count - _TAIL, 0) if still or ended else count
        points = [*range(count - count % EVERY, max(count - _BACK, 0), -EVERY), *range(first, count + 1)]
        states = {n: state for n in points if (state := trace.at(n)) is not None}
        if trace.epoch == epoch:
            self.world.store.replace(key_of(trace.members), (epoch, count, ended, list(states), list(states.values())))
            self._sent[trace.members] = news

    def _answer(self) -> None:
        """Publish the calls of this process, if another one found a difference."""
        self._checked_s = time.monotonic()
        accused = self.world.store.find(_ACCUSED)
        if accused is None or self._answered:
            return
        members, finder = accused
        if members[0] == self.world.rank and finder != self.world.rank:
            self._answered = True
            collective_trace.stop_main_thread()
            self._publish_recent_calls(collective_trace.trace_of(tuple(members)))

    # -- the others ------------------------------------------------------------------------------------------------

    def _compare_trace(self, trace: CollectiveTrace, still: bool, ended: bool) -> bool:
        """Compare a trace with that of the first process; return whether both have ended alike."""
        leader, epoch, count = trace.members[0], trace.epoch, _count(trace, still)
        record = self.world.store.find(key_of(trace.members))
        if record is None:
            over = ended and self.world.store.find(f"{STORE_PREFIX}/ended/{leader}")
            if over and self.world.store.find(key_of(trace.members)) is None:
                self._report_difference(trace, [leader])
            return False
        their_epoch, their_count, they_ended, counts, states = record
        if their_epoch != epoch:
            return False
        own = ((n, state, trace.at(n)) for n, state in zip(counts, states, strict=True) if n <= count)
        differ = any(mine is not None and mine != state for _, state, mine in own)
        over = [leader] if they_ended and their_count < count else []
        over += [self.world.rank] if ended and count < their_count else []
        if (differ or over) and trace.epoch == epoch:
            self._report_difference(trace, over)
            return False
        return ended and they_ended

    def _report_difference(self, trace: CollectiveTrace, ended: list[int]) -> None:
        """Find the first difference, and report it."""
        collective_trace.stop_main_thread()
        leader, rank = trace.members[0], self.world.rank
        self._publish_recent_calls(trace)
        self.world.store.replace(_ACCUSED, (list(trace.members), rank))
        end = time.monotonic() + _ANSWER_S
        key = key_of(trace.members, leader, "account")
        while (theirs := self.world.store.find(key)) is None and time.monotonic() < end:
            time.sleep(0.02)
        accounts = {leader: theirs or [0, []], rank: trace.recent_calls()}
        text = difference(trace.members, accounts, ended)
        self._report(text)
        collective_trace.stop(text)

    def _publish_recent_calls(self, trace: CollectiveTrace) -> None:
        self.world.store.replace(key_of(trace.members, self.world.rank, "account"), trace.recent_calls())

    # -- the exit --------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Compare up to the last call, and wait, at most the timeout, until all processes have."""
        self._over.set()
        collective_trace.wake.set()
        if self._thread.ident is not None:
            self._thread.join(_ANSWER_S)
        if collective_trace.mode() == "off" or collective_trace.find_stop_reason() is not None:
            return
        with contextlib.suppress(jax.errors.JaxRuntimeError):  # the coordinator is gone
            self._wait(time.monotonic() + timeout_s())

    def _wait(self, deadline: float) -> None:
        world, pause_s = self.world, 0.001
        settled = done = False
        waits_for = set(range(1, world.size)) if world.rank == 0 else {0}
        while time.monotonic() < deadline and collective_trace.find_stop_reason() is None and world.failure is None:
            if not settled:
                settled = self.compare(ended=True)
                world.store.replace(f"{STORE_PREFIX}/ended/{world.rank}", True)
            else:
                self._answer()
            if settled and world.rank and not done:
                world.store.replace(f"{STORE_PREFIX}/done/{world.rank}", True)
                done = True
            if settled:
                waits_for -= {rank for rank in waits_for if world.store.find(f"{STORE_PREFIX}/done/{rank}")}
            if not waits_for:
                if world.rank == 0:
                    world.store.replace(f"{STORE_PREFIX}/done/0", True)
                return
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.1)


def _count(trace: CollectiveTrace, still: bool) -> int:
    """Return the number of calls that count; a meeting may yet be taken back, unless it lasts."""
    return trace.count - (trace.waits and not still)
