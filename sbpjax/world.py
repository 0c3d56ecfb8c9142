"""Who takes part: the processes of this run, and how they tell each other small things.

Four processes of one device each run one script. A tensor's data travel in compiled programs, but before they do,
some facts must be agreed on: rank 2 says ``float32[2, 3]`` where the others say ``float32[3, 3]``, and all four must
raise the same error, or the three wait for ever. `World.exchange` is that agreement: every member gives a value and
gets what all gave, or an error that names the ranks that did not come.

`current()` is the world of this thread: one process alone, the processes of `jax.distributed`, or the threads of
`sbpjax.simulate`. Values go through the key-value store of JAX's coordination service; nothing else is opened.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import jax

from sbpjax.errors import AgreementError, LostRankError, message

DEFAULT_TIMEOUT_S = 600.0
ENDED = "sbpjax/ended"  # below it, in the store, the ranks that came to the end of their programs
_SLICE_MS = 500  # a wait looks up this often, to see whether another process reported a failure


def timeout_s() -> float:
    """Return how long ranks wait for each other: ``SBPJAX_TIMEOUT`` in seconds, else 600."""
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
        failure: what another member reported when it failed, None while all is well.
    """

    rank = 0
    size = 1
    local_rank = 0
    nodes = 1
    failure: str | None = None

    def __init__(self) -> None:
        self.agreed: set = set()  # what was compared with the other members once

    def visible(self, devices: list) -> list:
        """Return those of the run's devices that count as ranks of placements."""
        return devices

    def at_home(self, array):
        """Return an array on the device where this member's local tensors are."""
        return array

    def owner(self, device) -> int:
        """Return the rank of the member that a JAX device belongs to."""
        return 0

    def exchange(self, asked: str, value, members: tuple[int, ...] | None = None) -> dict[int, Any]:
        """Give ``value`` and return what every member gave.

        Args:
            asked: what is being done; all members must do the same.
            value: anything that pickles.
            members: the ranks that take part, this one among them; all by default.

        Raises:
            LostRankError: members did not come in time.
            AgreementError: members do different things.
        """
        return {0: value}

    def device(self, rank: int, platform: str) -> Any:
        """Return the device that stands for a member in collectives: its first."""
        return jax.local_devices(backend=platform)[0]

    def share(self, asked: str, value, run: Callable[[dict[int, Any]], Any], members: tuple[int, ...] | None = None):
        """Return ``run`` of the values at hand, keyed by rank: this member's own, or those of all threads.

        Where the members are threads of one process, one of them runs it for all.
        """
        return run({self.rank: value})


class Processes(World):
    """The processes that `jax.distributed` connects."""

    def __init__(self, local_rank: int = 0, nodes: int = 1) -> None:
        super().__init__()
        self.rank = _state().process_id
        self.size = _state().num_processes
        self.local_rank = local_rank
        self.nodes = nodes
        self._counts: dict[tuple[int, ...], int] = {}
        self._firsts: dict[tuple[int, str], Any] = {}

    def owner(self, device) -> int:
        return device.process_index

    def device(self, rank, platform):
        found = self._firsts.get((rank, platform))
        if found is None:
            found = next(d for d in jax.devices(platform) if d.process_index == rank)
            self._firsts[rank, platform] = found
        return found

    def exchange(self, asked, value, members=None):
        members = tuple(range(self.size)) if members is None else members
        ordered = tuple(sorted(members))
        if ordered != members:  # one way for all orders of a group, so that ranks that differ in it meet
            asked = f"{asked} in the group {list(members)}"
        number = self._counts.get(ordered, 0)
        self._counts[ordered] = number + 1
        client = _state().client
        base = "sbpjax/all" if len(members) == self.size else f"sbpjax/{'.'.join(map(str, ordered))}"
        mine = f"{base}/{number}/{self.rank}"
        client.key_value_set_bytes(mine, pickle.dumps((asked, value)))
        if number > 1:  # who is here has read all that was given two meetings ago
            client.key_value_delete(f"{base}/{number - 2}/{self.rank}")
        deadline = time.monotonic() + timeout_s()
        given = {self.rank: (asked, value)}
        try:
            for rank in ordered:
                if rank != self.rank:
                    given[rank] = pickle.loads(self._awaited(asked, f"{base}/{number}", rank, ordered, deadline))
        except LostRankError:  # the meeting did not take place: nobody who comes later may think that it did
            with contextlib.suppress(jax.errors.JaxRuntimeError):
                client.key_value_delete(mine)
            self._counts[ordered] = number
            raise
        return agreed(given)

    def ended(self, rank: int) -> bool:
        """Return whether a rank has come to the end of its program, and so will not come to any meeting."""
        return self._given(f"{ENDED}/{rank}")

    def _awaited(self, asked: str, base: str, rank: int, members: tuple[int, ...], deadline: float) -> bytes:
        client = _state().client
        while True:
            try:
                return client.blocking_key_value_get_bytes(f"{base}/{rank}", _SLICE_MS)
            except jax.errors.JaxRuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error) and "timed out" not in str(error):
                    raise lost(asked, [0], members, f"the coordinator does not answer: {error}") from None
            if self.failure is not None:
                raise lost(asked, [], members, self.failure)
            if self.ended(rank) and not self._given(f"{base}/{rank}"):
                raise lost(asked, [rank], members, f"rank {rank} has come to the end of its program")
            if time.monotonic() > deadline:
                missing = [r for r in members if r != self.rank and not self._given(f"{base}/{r}")]
                raise lost(asked, missing or [rank], members, f"waited {timeout_s():g} s")

    def _given(self, key: str) -> bool:
        try:
            _state().client.key_value_try_get_bytes(key)
        except jax.errors.JaxRuntimeError:
            return False
        return True


def by_value(told: dict[int, Any]) -> dict[Any, list[int]]:
    """Return for each value that ranks gave which of them gave it; both in the order of `told`."""
    ranks: dict[Any, list[int]] = {}
    for rank, value in told.items():
        ranks.setdefault(value, []).append(rank)
    return ranks


def agreed(given: dict[int, tuple[str, Any]]) -> dict[int, Any]:
    """Return the values of a meeting, keyed by rank in order.

    Raises:
        AgreementError: the members came for different things.
    """
    asked = by_value({rank: what.split("\n")[0] for rank, (what, _) in sorted(given.items())})
    if len(asked) > 1:
        seen = "; ".join(f"ranks {ranks}: {what}" for what, ranks in asked.items())
        rule = "every rank runs the same operations in the same order"
        fix = "move code that only some ranks run (if rank == 0: ...) away from operations of all ranks"
        raise AgreementError(message(next(iter(asked)), seen, rule, fix))
    return {rank: given[rank][1] for rank in sorted(given)}


def lost(asked: str, missing: list[int], members, why: str) -> LostRankError:
    """Return the error for ranks that did not come to a meeting."""
    seen = f"ranks {missing} of {list(members)} did not come; {why}" if missing else why
    return LostRankError(
        message(
            asked,
            seen,
            "all ranks take part, each within the timeout",
            "look at the output of the rank named above; SBPJAX_TIMEOUT=<seconds> changes how long ranks wait",
        )
    )


def _state() -> Any:
    from jax._src import distributed  # jax.distributed has no public access to its client

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
    return _found() if _state().client is not None else _alone


def _found() -> World:
    """Return the world of processes that the user's own `jax.distributed.initialize` connected."""
    global _processes
    _processes = Processes()
    return _processes


def install(world: World | None) -> None:
    """Make ``world`` the world of every thread that has none of its own."""
    global _processes
    _processes = world


def enter(world: World | None) -> None:
    """Make ``world`` the world of this thread alone; None leaves it."""
    _current.world = world
