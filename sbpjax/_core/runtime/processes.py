"""Process group of a run: member ranks, and rendezvous that exchange small values.

Four processes of one device each run one script. A tensor's data travel in compiled programs, but before they do, some
facts must be agreed on: if rank 2 has ``float32[2, 3]`` and the others ``float32[3, 3]``, all four must raise the same
error, or the three wait for ever. `World.exchange` is that agreement: every member gives a value and gets the values of
all, or an error that names the ranks that did not come.

`current()` is the world of this thread: one process alone, the processes of `jax.distributed`, or the threads of
`sbpjax.simulate`. Values go through the key-value store of JAX's coordination service, encoded and signed
(`_core.runtime.signed_store`): values that are not of a rank of this run are refused.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax

from sbpjax._core.jax_private import distributed
from sbpjax._core.jax_private import xla_bridge as _xla_bridge
from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax.errors import AT_ITS_END, AgreementError, ForeignMessageError, LostRankError, SbpjaxError

from ..serialization import encoding, signing
from . import collective_trace
from .signed_store import Store

DEFAULT_TIMEOUT_S = 600.0
_ACCOUNT_S = 20.0  # the time a rank at a meeting has to send its earlier calls
ENDED = "sbpjax/ended"  # below it, in the store, the ranks that came to the end of their programs
POSTS = "sbpjax/posts"
_BROKEN = re.compile(r"Gloo .*(closed by peer|reset by peer|Broken pipe|Connection refused)")  # of Gloo and the kernel
_REPORT_S = 2.0  # a rank that fails has reported it before its connections close; the report comes within a second
# Members of a group that read each other's messages. In larger groups the first member reads all of them, and writes
# one message for the others: 3 n messages instead of n², which are 17 million for 4,096 ranks.
_DIRECT = 16
SUMMARY = "of all"
_ANSWER_S = 5.0  # for the first member's message after the deadline
_SLICE_MS = 500  # a wait looks up this often, to see whether another process reported a failure


def devices_started() -> bool:
    """Return whether JAX has started its devices, after which their number is fixed."""
    return _xla_bridge.backends_are_initialized()


def timeout_s() -> float:
    """Return the timeout of ranks for each other: ``SBPJAX_TIMEOUT`` in seconds, else 600."""
    try:
        return float(os.environ["SBPJAX_TIMEOUT"])
    except (KeyError, ValueError):
        return DEFAULT_TIMEOUT_S


class World:
    """One process alone; the other worlds are built on it.

    Attributes:
        rank: this member's index.
        size: the number of members.
        local_rank: the index among the members on this machine.
        nodes: the number of machines.
        failure: the report of another member's failure, None while all is well.
        key: the secret of the members; it signs their messages.
        report: reports a failure of this member to the others, and makes it end with an error code.
        is_initialized: whether the program began or ended its process group; None while it has not.
    """

    rank = 0
    size = 1
    local_rank = 0
    nodes = 1
    failure: str | None = None
    key: bytes = secrets.token_bytes(signing.TAG_BYTES)  # of this process, in which all members are
    report: Callable[[str], None] | None = None
    is_initialized: bool | None = None

    def __init__(self) -> None:
        self.agreed: set = set()  # values already compared with the other members
        self.background: set[threading.Thread] = set()  # work that this process finishes before it ends
        self._board: dict[str, str] = {}
        self._posted = threading.Condition()

    def visible(self, devices: list) -> list:
        """Return those of the run's devices that count as ranks of placements."""
        return devices

    def to_local_device(self, array):
        """Return an array on the device where this member's local tensors are."""
        return array

    def owner(self, device) -> int:
        """Return the rank of the member that a JAX device belongs to."""
        return 0

    def exchange(self, operation: str, value, members: tuple[int, ...] | None = None) -> dict[int, Any]:
        """Give ``value`` and return the values of all members.

        Args:
            operation: the current operation; all members must do the same.
            value: a plain value, see `_core.serialization.encoding`.
            members: the ranks that take part, this one among them; all by default.

        Raises:
            LostRankError: members did not come in time.
            AgreementError: members run different operations.
            ForeignMessageError: a message for a member came without the secret of this job.
        """
        return {0: value}

    def device(self, rank: int, platform: str) -> Any:
        """Return the device of a member in collectives: its first."""
        return jax.local_devices(backend=platform)[0]

    def post(self, key: str, text: str) -> None:
        """Put a text where all members can read it; any thread, in any order, beside a rendezvous of others."""
        with self._posted:
            self._board[key] = text
            self._posted.notify_all()

    def read_post(self, key: str, rank: int, deadline: float) -> str:
        """Wait for a text that the member ``rank`` posts, and return it; any thread.

        Args:
            key: the key of the post.
            rank: the rank that posts it.
            deadline: until when to wait, as of `time.monotonic`.

        Raises:
            LostRankError: it did not come in time, or that member came to its end without it.
        """
        with self._posted:
            if not self._posted.wait_for(lambda: key in self._board, deadline - time.monotonic()):
                raise lost_rank_error(f"waiting for {key}", [rank], range(self.size), f"waited {timeout_s():g} s")
            return self._board[key]

    def drop_post(self, key: str) -> None:
        """Remove a text that all have read."""
        with self._posted:
            self._board.pop(key, None)

    def wait_for_members(self, operation: str) -> None:
        """Wait until all members have come here, where they take turns; processes of their own need not."""

    def exit_with_error(self, how: str) -> None:
        """End this process with an error code although its program came to its end; the others receive ``how``."""
        if self.report is not None:
            self.report(how)
            return
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

    def finish_background(self) -> None:
        """Wait for background work, at most as long as ranks wait for each other."""
        deadline = time.monotonic() + timeout_s()
        for thread in list(self.background):
            thread.join(max(0.0, deadline - time.monotonic()))

    def share(
        self, operation: str, value, run: Callable[[dict[int, Any]], Any], members: tuple[int, ...] | None = None
    ):
        """Return ``run`` of the values at hand, keyed by rank: this member's own, or those of all threads.

        Where the members are threads of one process, one of them runs it for all.
        """
        return run({self.rank: value})


class Processes(World):
    """The processes that `jax.distributed` connects.

    Args:
        local_rank: the index among the processes on this machine.
        nodes: the number of machines.
        key: the key of the run; the job's own by default.
    """

    def __init__(self, local_rank: int = 0, nodes: int = 1, key: bytes | None = None) -> None:
        super().__init__()
        if key is not None:
            self.key = key
        self.rank = _state().process_id
        self.size = _state().num_processes
        self.local_rank = local_rank
        self.nodes = nodes
        self._counts: dict[tuple[int, ...], int] = {}
        self._firsts: dict[tuple[int, str], Any] = {}
        self._raised: set[bytes] = set()  # marks of errors that first members of large groups have written

    @functools.cached_property
    def key(self) -> bytes:  # type: ignore[override]
        return signing.job_key()

    @functools.cached_property
    def store(self) -> Store:
        """The store of messages between the processes."""
        return Store(_state().client, self.key)

    def owner(self, device) -> int:
        return device.process_index

    def device(self, rank, platform):
        found = self._firsts.get((rank, platform))
        if found is None:
            found = next(d for d in jax.devices(platform) if d.process_index == rank)
            self._firsts[rank, platform] = found
        return found

    def exchange(self, operation, value, members=None):
        members = tuple(range(self.size)) if members is None else members
        ordered = tuple(sorted(members))
        if ordered != members:  # one way for all orders of a group, so that ranks that differ in it find each other
            operation = f"{operation} in the group {list(members)}"
        number = self._counts.get(ordered, 0)
        self._counts[ordered] = number + 1
        base = "sbpjax/all" if len(members) == self.size else f"sbpjax/{'.'.join(map(str, ordered))}"
        mine = f"{base}/{number}/{self.rank}"
        with collective_trace.trace_rendezvous(operation, ordered) as trails:
            deadline = time.monotonic() + timeout_s()
            given = {self.rank: (operation, value, trails)}
            try:
                self.store.put(mine, given[self.rank])
                if number > 1:  # a rank that is here has read all values of two meetings ago
                    self.store.drop(f"{base}/{number - 2}/{self.rank}")
                    if len(ordered) > _DIRECT and ordered[0] == self.rank:
                        self.store.drop(f"{base}/{number - 2}/{SUMMARY}")
                if len(ordered) <= _DIRECT or ordered[0] == self.rank:
                    for rank in ordered:
                        if rank != self.rank:
                            given[rank] = self._await_value(operation, f"{base}/{number}", rank, ordered, deadline)
                else:
                    given = self._await_summary(operation, f"{base}/{number}", ordered, deadline)
            except (LostRankError, ForeignMessageError) as error:
                self._publish_summary(f"{base}/{number}", ordered, error)
                if isinstance(error, ForeignMessageError):
                    raise
                # The meeting did not take place: later ranks must not assume that it did.
                with contextlib.suppress(jax.errors.JaxRuntimeError):
                    self.store.drop(mine)
                    if ordered[0] == self.rank:
                        self.store.replace(collective_trace.key_of(ordered), None)
                self._counts[ordered] = number
                raise
            self._publish_summary(f"{base}/{number}", ordered, given)
            values = agree_values({rank: (call, value) for rank, (call, value, _) in given.items()})
        swap = functools.partial(self._exchange_recent_calls, f"{base}/{number}")
        collective_trace.compare({rank: trails for rank, (_, _, trails) in given.items()}, swap)
        return values

    def _exchange_recent_calls(
        self, meeting: str, trace: collective_trace.CollectiveTrace, ranks: tuple[int, int]
    ) -> dict[int, list]:
        """Return two ranks' accounts of a trace; the members of a meeting call it."""
        if self.rank in ranks:
            self.store.replace(f"{meeting}/account/{self.rank}", trace.recent_calls())
        deadline, found = time.monotonic() + _ACCOUNT_S, {}
        for rank in ranks:
            while (account := self.store.find(f"{meeting}/account/{rank}")) is None and time.monotonic() < deadline:
                time.sleep(0.01)
            found[rank] = account or [0, []]
        return found

    def post(self, key, text):
        self.store.put(f"{POSTS}/{key}", text)

    def read_post(self, key, rank, deadline):
        operation = f"waiting for {key}"
        while True:
            ended = self.has_ended(rank)  # looked up first: its posts before its end are there then
            try:
                return self.store.wait(f"{POSTS}/{key}", _SLICE_MS)
            except jax.errors.JaxRuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error) and "timed out" not in str(error):
                    raise lost_rank_error(
                        operation, [0], range(self.size), f"the coordinator does not answer: {error}"
                    ) from None
            if ended:
                raise lost_rank_error(operation, [rank], range(self.size), f"rank {rank} {AT_ITS_END}")
            if time.monotonic() > deadline:
                raise lost_rank_error(operation, [rank], range(self.size), f"waited {timeout_s():g} s")

    def drop_post(self, key):
        with contextlib.suppress(jax.errors.JaxRuntimeError):  # the coordinator is gone
            self.store.drop(f"{POSTS}/{key}")

    def has_ended(self, rank: int) -> bool:
        """Return whether a rank has come to the end of its program, and so will not come to any meeting."""
        return self._has_key(f"{ENDED}/{rank}")

    def _publish_summary(self, meeting: str, members: tuple[int, ...], given: dict[int, tuple] | SbpjaxError) -> None:
        """Write the messages of all members for the others of a large group, equal ones once, or the error of all."""
        if len(members) <= _DIRECT or members[0] != self.rank:
            return
        if isinstance(given, SbpjaxError):
            missing = tuple(r for r in members if r != self.rank and not self._has_key(f"{meeting}/{r}"))
            message = (type(given).__name__, str(given), missing, secrets.token_bytes(8))
            with contextlib.suppress(jax.errors.JaxRuntimeError):  # the coordinator is gone
                self.store.replace(f"{meeting}/{SUMMARY}", message)
            return
        distinct: dict[bytes, tuple[int, tuple]] = {}
        numbers = [distinct.setdefault(encoding.encode(given[r]), (len(distinct), given[r]))[0] for r in members]
        runs = [(number, len(list(same))) for number, same in itertools.groupby(numbers)]
        self.store.replace(f"{meeting}/{SUMMARY}", ("", [m for _, m in distinct.values()], runs))

    def _await_summary(
        self, operation: str, meeting: str, members: tuple[int, ...], deadline: float
    ) -> dict[int, tuple]:
        """Return the messages of all members of a large group, from what its first member wrote."""
        deadline += _ANSWER_S  # the first member may wait until the deadline itself, and then writes who is missing
        while True:
            kind, *found = self._await_value(operation, meeting, members[0], members, deadline, f"{meeting}/{SUMMARY}")
            if not kind:
                break
            text, missing, mark = found
            # Else it is of an attempt before this one, in which this rank raised it or was late: wait for the next.
            if mark not in self._raised and self.rank not in missing:
                self._raised.add(mark)
                raise (ForeignMessageError if kind == ForeignMessageError.__name__ else LostRankError)(text)
            if time.monotonic() > deadline:
                raise lost_rank_error(operation, [members[0]], members, f"waited {timeout_s():g} s")
            time.sleep(_SLICE_MS / 1e3)
        messages, runs = found
        numbers = itertools.chain.from_iterable(itertools.repeat(number, count) for number, count in runs)
        return {rank: messages[number] for rank, number in zip(members, numbers, strict=True)}

    def _await_value(
        self, operation: str, base: str, rank: int, members: tuple[int, ...], deadline: float, key: str = ""
    ) -> Any:
        """Return what a member writes at a meeting: its own message, or under another key what it has gathered."""
        key = key or f"{base}/{rank}"
        while True:
            try:
                return self.store.wait(key, _SLICE_MS)
            except jax.errors.JaxRuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error) and "timed out" not in str(error):
                    raise lost_rank_error(
                        operation, [0], members, f"the coordinator does not answer: {error}"
                    ) from None
            collective_trace.raise_difference()
            if self.failure is not None:
                raise lost_rank_error(operation, [], members, self.failure)
            if self.has_ended(rank) and not self._has_key(key):
                raise lost_rank_error(operation, [rank], members, f"rank {rank} {AT_ITS_END}")
            if time.monotonic() > deadline:
                # In a large group the first member looks for all, and the others for it.
                asked = [rank] if key != f"{base}/{rank}" else members
                missing = [r for r in asked if r != self.rank and not self._has_key(f"{base}/{r}")]
                raise lost_rank_error(operation, missing or [rank], members, f"waited {timeout_s():g} s")

    def _has_key(self, key: str) -> bool:
        try:
            self.store.get_value(key)
        except (jax.errors.JaxRuntimeError, ForeignMessageError):
            return False
        return True


def by_value(by_rank: dict[int, Any]) -> dict[Any, list[int]]:
    """Return for each value the ranks that gave it; both in the order of `by_rank`."""
    ranks: dict[Any, list[int]] = {}
    for rank, value in by_rank.items():
        ranks.setdefault(value, []).append(rank)
    return ranks


def agree_values(given: dict[int, tuple[str, Any]]) -> dict[int, Any]:
    """Return the values of a meeting, keyed by rank in order."""
    operation = by_value({rank: call.split("\n")[0] for rank, (call, _) in sorted(given.items())})
    if len(operation) > 1:
        seen = "; ".join(f"ranks {ranks_text(ranks)}: {call}" for call, ranks in operation.items())
        rule = "every rank runs the same operations in the same order"
        fix = "move code that only some ranks run (if rank == 0: ...) away from operations of all ranks"
        raise AgreementError(next(iter(operation)), seen, rule, fix)
    return {rank: given[rank][1] for rank in sorted(given)}


def lost_rank_error(operation: str, missing: list[int], members, reason: str) -> LostRankError:
    """Return the error for ranks that did not come to a meeting."""
    seen = f"ranks {ranks_text(missing)} of {ranks_text(members)} did not come; {reason}" if missing else reason
    return LostRankError(
        operation,
        seen,
        "all ranks take part, each within the timeout",
        "look at the output of the rank named above; SBPJAX_TIMEOUT=<seconds> changes how long ranks wait",
    )


def raise_for_ranks(error: BaseException) -> None:
    """Raise the cause of another rank's end, if a program failed because its connection to one broke."""
    world = current()
    if world.size == 1 or isinstance(error, SbpjaxError) or not _BROKEN.search(str(error)):
        return
    end = time.monotonic() + _REPORT_S
    while world.failure is None and time.monotonic() < end:
        time.sleep(0.02)
    collective_trace.raise_difference()
    seen = f"{world.failure or 'a rank ended without a word'}; here {str(error).splitlines()[0]}"
    raise lost_rank_error("a program of several ranks", [], range(world.size), seen) from error


def _state() -> Any:
    return distributed.global_state


class _Current(threading.local):
    world: World | None = None


_alone = World()
_processes: World | None = None
_current = _Current()


def current() -> World:
    """Return the world of this thread."""
    world = _current.world
    if world is not None:
        return world
    if _processes is not None:
        return _processes
    return _find_world() if _state().client is not None else _alone


def _find_world() -> World:
    """Return the world of processes that the user's own `jax.distributed.initialize` connected."""
    global _processes
    _processes = Processes()
    return _processes


def set_default_world(world: World | None) -> None:
    """Make ``world`` the world of every thread that has none of its own."""
    global _processes
    _processes = world


def set_world(world: World | None) -> None:
    """Make ``world`` the world of this thread alone; None leaves it."""
    _current.world = world


class _SingleWorld(World):
    """A world of one member for a while: it meets no other."""

    def __init__(self, outer: World) -> None:
        super().__init__()
        self.visible, self.to_local_device = outer.visible, outer.to_local_device  # type: ignore[method-assign]


@contextlib.contextmanager
def single_process():
    """Run this thread's work as one process alone: it waits for no other member."""
    outer, own = current(), _current.world
    if outer.size == 1:
        yield
        return
    set_world(_SingleWorld(outer))
    try:
        yield
    finally:
        set_world(own)


collective_trace.set_exchange(lambda *call: current().exchange(*call))
