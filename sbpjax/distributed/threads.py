"""Simulated ranks: run a per-rank function once per rank in threads of one process (`simulate`).

    import sbpjax as flow
    flow.env.set_cpu_devices(4)

    @flow.simulate(ranks=4)
    def main():
        x = flow.ones(2) * flow.env.get_rank()
        flow.distributed.all_reduce(x)
        return x.to_global(flow.placement.all("cpu"), flow.sbp.split(0)).shape

    main()                                    # [(8,), (8,), (8,), (8,)]: the result of each rank

Rank k owns the k-th device. The threads take turns and change only at a rendezvous (`to_global` of local tensors,
collectives, barriers), so a run is as deterministic as a program of one thread, and random state, grad mode and the
like are each rank's own. On a deadlock, or when one rank fails, all end, and the error names the rank.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import jax

from sbpjax._core.runtime import processes
from sbpjax._core.tensor.creation import generator
from sbpjax.errors import DistributedError, LostRankError


class _EndedError(BaseException):
    """Raised in the threads of the other ranks when one failed; only `simulate` catches it."""


class _RankScheduler:
    """Scheduler of the ranks: the running rank, the waiting ones, and the values that they exchange."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = threading.Condition()
        self.turn = 0
        self.alive = set(range(size))
        self.waiting: dict[int, tuple[tuple[int, ...], str, Any]] = {}
        self.results: dict[int, dict[int, tuple[str, Any]]] = {}
        self.failed: tuple[int, BaseException] | None = None
        self.stuck: str | None = None
        self.board: dict[str, str] = {}
        self.posted = threading.Condition()

    def rendezvous(self, rank: int, members: tuple[int, ...], operation: str, value) -> dict[int, tuple[str, Any]]:
        """Give a value, let the others run, and return the values of all members."""
        kept = _stream()
        with self.changed:
            self.waiting[rank] = (members, operation, value)
            given = {m: self.waiting[m] for m in members if m in self.waiting}
            if len(given) == len(members) and all(g[0] == members for g in given.values()):
                result = {m: (g[1], g[2]) for m, g in given.items()}
                for m in members:
                    del self.waiting[m]
                    self.results[m] = result
            self._pass_on()
            self.changed.wait_for(lambda: self.turn == rank or self.failed or self.stuck)
            if self.failed:
                raise _EndedError
            if rank not in self.results:
                self.waiting.pop(rank, None)
                raise LostRankError(
                    operation,
                    self.stuck or "no rank can go on",
                    "all ranks come to the same rendezvous, in the same order",
                    "move code that only some ranks run (if rank == 0: ...) away from operations of all ranks",
                )
            _restore(kept)
            return self.results.pop(rank)

    def begin(self, rank: int) -> None:
        """Wait for the first turn."""
        with self.changed:
            self.changed.wait_for(lambda: self.turn == rank or self.failed or self.stuck)
            if self.failed:
                raise _EndedError

    def end(self, rank: int, error: BaseException | None) -> None:
        """Leave; with an error, all others end too."""
        with self.changed:
            self.alive.discard(rank)
            if error is not None and self.failed is None:
                self.failed = rank, error
            self._pass_on()

    def _pass_on(self) -> None:
        ready = sorted(r for r in self.alive if r not in self.waiting)
        if not ready and self.alive and self.stuck is None:
            ended = sorted(set(range(self.size)) - self.alive)
            waits = "; ".join(f"rank {r} waits at {self.waiting[r][1]}" for r in sorted(self.alive))
            self.stuck = f"{waits}; ranks that ended: {ended}"
        self.turn = ready[0] if ready else -1
        self.changed.notify_all()


class Threads(processes.World):
    """The world of one simulated rank.

    Args:
        rank: the rank.
        turns: the scheduler that the ranks share.
    """

    def __init__(self, rank: int, turns: _RankScheduler) -> None:
        super().__init__()
        self.rank = self.local_rank = rank
        self.size = turns.size
        self._scheduler = turns
        self._board, self._posted = turns.board, turns.posted

    def wait_for_members(self, operation):
        self.exchange(operation, None)

    def visible(self, devices):
        return devices[: self.size]

    def owner(self, device) -> int:
        return jax.devices(device.platform).index(device)

    def device(self, rank, platform):
        return jax.devices(platform)[rank]

    def to_local_device(self, array):
        return jax.device_put(array, jax.devices(next(iter(array.devices())).platform)[0])

    def exchange(self, operation, value, members=None):
        members = tuple(range(self.size)) if members is None else members
        return processes.agree_values(self._scheduler.rendezvous(self.rank, members, operation, value))

    def share(self, operation, value, run, members=None):
        members = tuple(range(self.size)) if members is None else members
        values = self.exchange(operation, value, members)
        done = None
        if self.rank == members[0]:
            try:
                done = run(values), None
            except Exception as error:
                done = None, error
        result, error = self.exchange(f"{operation.splitlines()[0]}: result", done, members)[members[0]]
        if error is not None:
            raise error
        return result


def simulate(ranks: int) -> Callable:
    """Return a decorator that runs a function once per rank, each in a thread, and returns the list of results.

    Args:
        ranks: the number of ranks; as many devices are needed.

    Raises:
        DistributedError: there are fewer devices, or this is called within a simulated rank.

    Example:
        >>> sbpjax.simulate(ranks=2)(lambda: sbpjax.env.get_rank())()  # doctest: +SKIP
        [0, 1]
    """

    def decorate(fn: Callable) -> Callable:
        @functools.wraps(fn)
        def run(*args, **options) -> list:
            _check(ranks)
            return _run(fn, ranks, args, options)

        return run

    return decorate


def _check(ranks: int) -> None:
    operation = f"simulate(ranks={ranks})"
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise DistributedError(operation, f"{ranks!r}", "there is at least one rank", "simulate(ranks=4)")
    if processes.current().size > 1:
        seen = f"{processes.current().size} ranks"
        raise DistributedError(operation, seen, "ranks are simulated in one process alone", "start it without")
    have = len(jax.devices())
    if have < ranks:
        fix = f"sbpjax.env.set_cpu_devices({ranks}) before the first tensor, or SBPJAX_CPU_DEVICES={ranks}"
        raise DistributedError(operation, f"{have} devices", f"each of the {ranks} ranks owns a device", fix)


def _run(fn: Callable, count: int, args: tuple, options: dict) -> list:
    turns, results = _RankScheduler(count), [None] * count
    kept = _stream()

    def body(rank: int) -> None:
        processes.set_world(Threads(rank, turns))
        failure = None
        try:
            turns.begin(rank)
            _restore(kept)
            results[rank] = fn(*args, **options)
        except _EndedError:
            pass
        except BaseException as error:  # reported to the caller below
            failure = error
        turns.end(rank, failure)

    threads = [threading.Thread(target=body, args=(r,), name=f"rank {r}", daemon=True) for r in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _restore(kept)
    if turns.failed is not None:
        rank, error = turns.failed
        error.add_note(f"raised by rank {rank} of {count} in sbpjax.simulate")
        raise error
    return results


def _stream() -> tuple[int, int]:
    stream = generator.default_generator
    return stream._seed, stream._counter


def _restore(kept: tuple[int, int]) -> None:
    stream = generator.default_generator
    stream._seed, stream._counter = kept
