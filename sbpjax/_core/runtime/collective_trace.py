"""Collective traces: each process logs its collective calls; comparing traces reports the first divergence.

Ranks compare a program when it runs for the first time. From then on rank 1 may add where rank 0 multiplies, or step
with another learning rate, and every collective of the two still finds its partner: nothing hangs, and the numbers are
wrong. So each process keeps, for every group of processes that it shares programs with, a trace (`CollectiveTrace`):

    count   state     call                                        line
    57      -8821...  add(float32[4] as S(0), 1) 1                train.py:31
    58       1177...  all_reduce(tensor) float32[3] {'op': 'sum'} train.py:34

The state of a call is a hash of all calls so far, so two ranks agree on everything up to call 58 if they agree on its
state. Local work is not traced, nor are programs on a placement of one process, so they may differ. Traces are compared
at every meeting (`World.exchange`), in the background and at the exit (`sbpjax.distributed.rendezvous.comparison`), and
with ``SBPJAX_CHECK=always`` before every call; ``off`` keeps none.

Only the main thread is traced: the order between threads is not the same on all ranks. Threads as ranks
(`sbpjax.simulate`) share their programs and are not traced.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from threading import get_ident
from types import CodeType
from typing import Any

from sbpjax._core.runtime.user_line import is_users_file
from sbpjax.errors import AgreementError, OpValueError

from .trace_difference import difference

KEPT = 4096  # calls of each trace that can be named; the states of earlier ones live on in later ones
EVERY = 32  # calls between those whose states are sent
SOON = 800  # the background is woken after calls of so much weight,
STEP, OP = 10, 1  # which are those of a program that may be a whole step, and of a single op
STORE_PREFIX = "sbpjax/calls"  # below it, in the store, the traces of ranks
CHECK = "the check of a call"  # the meeting before every call under ``SBPJAX_CHECK=always``
_SENT_CALLS = 2048  # calls that a rank sends when there is a difference
_LABEL_CHARS = 200  # characters of a call's words
_NEWS_S = 10.0  # a halted main thread waits so long for the text of the difference
_MAIN = threading.main_thread().ident
_MODES = ("always", "sampled", "off")


_frame = sys._getframe


class _Libraries(dict[str, bool]):
    """Whether a file is a library's or Python's own, rather than the user's; looked up for every frame of a call."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = found = not is_users_file(filename)
        return found


_libraries = _Libraries()


class _Switch:
    mode: str | None = None
    slow = False  # a call has more to do than to enter the trace
    halted = False  # the background has found a difference and is writing its text
    text: str | None = None  # the difference
    # the comparison of calls between processes; set by `_core.runtime.processes`, which builds on this
    exchange: Any = None


_switch = _Switch()
wake = threading.Event()
trails: dict[tuple[int, ...], CollectiveTrace] = {}


def mode() -> str:
    """Return how often ranks compare their calls: ``SBPJAX_CHECK``, read once: always, sampled or off."""
    if _switch.mode is None:
        set_mode(os.environ.get("SBPJAX_CHECK") or "sampled")
    return str(_switch.mode)


def set_mode(name: str) -> None:
    """Set how often ranks compare their calls, the same on all of them."""
    if name not in _MODES:
        rule = f"one of {', '.join(_MODES)}"
        raise OpValueError(f"SBPJAX_CHECK={name}", f"{name!r}", rule, "SBPJAX_CHECK=sampled")
    _switch.mode = name
    _switch.slow = name == "always" or _switch.halted


class CollectiveTrace:
    """The calls that some processes made together, as this one saw them.

    Args:
        members: the processes.

    Attributes:
        count: the number of calls.
        state: the hash of all of them.
        programs: the number of graph programs that they ran.
        load: the weight of the calls since the background was woken.
        epoch: the number of differences raised on all members, after each of which they began anew.
        waits: whether the last call is a meeting, which may yet fail and be taken back.
    """

    __slots__ = ("count", "epoch", "load", "members", "programs", "ring", "state", "waits")

    def __init__(self, members: tuple[int, ...]) -> None:
        self.members = members
        self.count = self.state = self.programs = self.epoch = self.load = 0
        self.waits = False
        self.ring: list = [(0, "", (), None, 0)] * KEPT

    def add(self, call: Any, mark: int, numbers: tuple = (), weight: int = OP) -> None:
        """Note a call.

        Args:
            call: its words, or the `Call`.
            mark: its hash, the same in every process.
            numbers: its number operands, for the words.
            weight: its weight towards the next comparison.
        """
        frame: Any = _frame(2)
        while _libraries[(code := frame.f_code).co_filename] and frame.f_back is not None:
            frame = frame.f_back
        self.state = state = hash((self.state, mark))
        count = self.count + 1
        self.ring[count % KEPT] = (state, call, numbers, code, frame.f_lasti)
        self.count = count  # last: the background reads up to here
        self.load = load = self.load + weight
        if load >= SOON:
            self.load = 0
            wake.set()

    def rewind(self, epoch: int, count: int, state: int) -> None:
        """Forget the calls after a point, which did not take place."""
        if self.epoch == epoch:
            self.count, self.state = count, state

    def clear_calls(self) -> None:
        """Forget all calls."""
        self.epoch += 1  # first: the background does not compare across it
        self.count = self.state = 0

    def at(self, count: int) -> int | None:
        """Return the state after a call; None if it is not kept any more, or did not happen."""
        if count == 0:
            return 0
        return self.ring[count % KEPT][0] if self.count - KEPT + EVERY < count <= self.count else None

    def recent_calls(self) -> list:
        """Return the calls to compare with another rank's: ``[count, [[state, words and line], ...]]``."""
        count = self.count
        first = max(1, count - _SENT_CALLS + 1)
        return [count, [[self.ring[n % KEPT][0], _call_text(self.ring[n % KEPT])] for n in range(first, count + 1)]]


class Call:
    """One program that some processes run together.

    Args:
        trace: their trace.
        words: its description, for people.
        detail: further text that must be equal on all processes.
        numbered: whether it has a state of its own, as a graph has: then the order of two that are alike counts.
        weight: its weight towards the next comparison.
        names: those of the numbers that go in, for people.

    Attributes:
        number: its index among the programs with a state, by the first run; 0 for others.
    """

    __slots__ = ("_digest", "_mark", "_numbered", "_numbers", "names", "number", "trace", "weight", "words")

    def __init__(
        self,
        trace: CollectiveTrace,
        words: str,
        detail: str = "",
        *,
        numbered: bool = False,
        weight: int = STEP,
        names: Sequence[str] = (),
    ) -> None:
        self.trace = trace
        self.names = names
        self.weight = weight
        self.words = words
        self._digest = self._mark = _digest(f"{words}\n{detail}")
        self._numbered = numbered
        self.number = 0
        self._numbers: tuple = ()

    def note(self, numbers: tuple = ()) -> None:
        """Record a call that is about to run.

        Args:
            numbers: those that go in.

        Raises:
            AgreementError: ranks differ, in this or an earlier call.
        """
        if get_ident() != _MAIN:
            return
        trace = self.trace
        if self._numbered:
            trace.programs = self.number = trace.programs + 1
            self._numbered = False
            self._digest = self._mark = hash((self._digest, self.number))
        if numbers != self._numbers:
            self._numbers = numbers
            self._mark = hash((self._digest, zlib.crc32(repr(numbers).encode())))
        trace.add(self, self._mark, numbers, self.weight)
        if _switch.slow:
            _compare_or_stop(trace)


def call_of(
    owners: Sequence[int],
    words: str,
    detail: str = "",
    *,
    numbered: bool = False,
    weight: int = STEP,
    names: Sequence[str] = (),
) -> Call | None:
    """Return the call of a program; None if this process runs it alone, or not at all, or nothing is compared."""
    members = tuple(sorted(set(owners)))
    if len(members) == 1 or mode() == "off":
        return None
    return Call(trace_of(members), words, detail, numbered=numbered, weight=weight, names=names)


def trace_of(members: tuple[int, ...]) -> CollectiveTrace:
    """Return the trace of some processes, in the order of their ranks."""
    return trails.get(members) or trails.setdefault(members, CollectiveTrace(members))


def key_of(members: Sequence[int], *more: object) -> str:
    """Return the key in the store for the trace of some processes."""
    return "/".join([STORE_PREFIX, ".".join(map(str, members)), *map(str, more)])


def raise_found_difference() -> None:
    """Raise before a value is read if a difference was found."""
    if _switch.halted and get_ident() == _MAIN:
        _wait_for_stop_reason()


# --------------------------------------------------------------------------------------------------------- meetings


@contextlib.contextmanager
def trace_rendezvous(operation: str, members: tuple[int, ...]) -> Iterator[list | None]:
    """Note a meeting of some processes, and take it back if it does not take place.

    Yields:
        The message to the others: ``[[members, count, state], ...]`` of all traces; None from another thread.
    """
    if len(members) == 1 or get_ident() != _MAIN or mode() == "off":
        yield None
        return
    trace = trace_of(members)
    before = trace.epoch, trace.count, trace.state
    if operation is not CHECK:
        words = operation.split("\n")[0]
        trace.add(words, _digest(words))
    trace.waits = True
    try:
        yield [[_short(t.members), t.count, t.state] for t in trails.values()]
    except BaseException:
        trace.rewind(*before)
        raise
    finally:
        trace.waits = False


def _short(members: tuple[int, ...]) -> list[int] | int:
    """Return members as they are sent: all ranks up to a number as this number."""
    return len(members) if members == tuple(range(len(members))) else list(members)


def compare(
    traces_by_rank: dict[int, list | None], swap: Callable[[CollectiveTrace, tuple[int, int]], dict[int, list]]
) -> None:
    """Compare the messages of the members of a meeting; all of them call it with the same.

    Args:
        traces_by_rank: the message that each of them got from `trace_rendezvous`.
        swap: sends two ranks' accounts of a trace to all members.
    """
    if None in traces_by_rank.values():
        return
    seen: dict[tuple[int, ...] | int, dict[int, tuple[int, int]]] = {}
    for rank, theirs in traces_by_rank.items():
        for members, count, state in theirs or ():
            seen.setdefault(members if isinstance(members, int) else tuple(members), {})[rank] = (count, state)
    for sent, states in seen.items():
        members = tuple(range(sent)) if isinstance(sent, int) else sent
        ranks = [r for r in members if r in traces_by_rank]
        first, *rest = [states.get(r, (0, 0)) for r in ranks]
        other = next((r for r, theirs in zip(ranks[1:], rest, strict=True) if theirs != first), None)
        if other is not None:
            accounts = swap(trace_of(members), (ranks[0], other))
            if set(members) <= set(traces_by_rank):  # all of them learn it, and begin anew
                trace_of(members).clear_calls()
            raise AgreementError(difference(members, accounts))


def _compare_or_stop(trace: CollectiveTrace) -> None:
    """Compare a trace now, or stop because of a difference."""
    if _switch.halted:
        _wait_for_stop_reason()
    before = trace.epoch, trace.count - 1, trace.at(trace.count - 1) or 0
    if mode() != "always":
        return
    try:
        _switch.exchange(CHECK, None, trace.members)
    except BaseException:
        trace.rewind(*before)
        raise


# -------------------------------------------------------------------------------------------------------- differences


def set_exchange(exchange: Callable[[str, Any, tuple[int, ...]], Any]) -> None:
    """Set the function by which the members of a trace exchange their calls."""
    _switch.exchange = exchange


def stop_main_thread() -> None:
    """Stop the main thread at its next call: ranks differ, and the text is being made."""
    _switch.halted = _switch.slow = True


def stop(text: str) -> None:
    """Raise an error in the main thread at its next call."""
    _switch.text = _switch.text or text
    stop_main_thread()


def find_stop_reason() -> str | None:
    """Return the difference that ended the agreement of the ranks, None while there is none."""
    return _switch.text


def raise_difference() -> None:
    """Raise the difference if there is one."""
    if _switch.text is not None:
        raise AgreementError(_switch.text)


def _wait_for_stop_reason() -> None:
    end = time.monotonic() + _NEWS_S
    while _switch.text is None and time.monotonic() < end:
        time.sleep(0.02)
    stop("ranks do different things; the rank that found it reported no difference")
    raise_difference()


# ---------------------------------------------------------------------------------------------------------------- words


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


def _call_text(entry: tuple) -> str:
    _, call, numbers, code, place = entry
    words = call.words if isinstance(call, Call) else call
    words += f", program {call.number}" if isinstance(call, Call) and call.number else ""
    values = [f"{n:g}" if type(n) is float else repr(n) for n in numbers]
    if isinstance(call, Call) and len(call.names) == len(values):
        values = [f"{name} {value}" for name, value in zip(call.names, values, strict=True)]
    shown = f" with {', '.join(values)}" if values else ""
    words = words if len(words) <= _LABEL_CHARS else words[:_LABEL_CHARS] + "…"
    return f"{words}{shown} at {_line(code, place)}"


def _line(code: CodeType, place: int) -> str:
    lines = (line for start, end, line in code.co_lines() if start <= place < end)
    return f"{code.co_filename}:{next(lines, None) or code.co_firstlineno}"
