"""Key sharding over processes: the hash of a key names its process.

    mine, back = exchange(tables, keys)     # what others ask this process for, and the way home of the answers
    slots = back(answers)                   # for every key that this process asked for

Ids travel to their owners and the numbers of slots come back, each by one all-to-all of blocks of equal size; the rows
themselves are read by the step's own program, from the devices that hold them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import sbpjax as flow
from sbpjax import distributed
from sbpjax.errors import TableError

from .key_map import hash_keys

_LEAST = 256


def size() -> int:
    """Return how many processes there are."""
    return flow.env.get_world_size()


def rank() -> int:
    """Return the number of this process."""
    return flow.env.get_rank()


def owner_of(tables: np.ndarray, keys: np.ndarray, count: int) -> np.ndarray:
    """Return which of so many processes owns each key."""
    # Of the upper bits: the lower ones are the place in the owner's own map, which would have every n-th place only.
    return ((hash_keys(tables, keys) >> np.uint64(33)) % np.uint64(count)).astype(np.int64)


def all_reduce_max(*numbers: int) -> tuple[int, ...]:
    """Return the largest of each number over all processes."""
    if size() == 1:
        return numbers
    found = flow.tensor(np.array(numbers, np.int64))
    distributed.all_reduce(found, distributed.ReduceOp.MAX)
    return tuple(int(n) for n in found.numpy())


def raise_on_all(operation: str, error: TableError | None, failed: int) -> None:
    """Raise on every process what one of them found, so that none waits for the others."""
    if error is not None:
        raise error
    if failed:
        rule = "all processes take a step, or none does"
        raise TableError(operation, "an error on another process", rule, "see the error of that process")


def exchange(
    tables: np.ndarray, keys: np.ndarray, operation: str = "a lookup", error: TableError | None = None
) -> tuple[tuple[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """Send keys to their owners; every process calls it.

    Args:
        tables: ``(N,)`` the table of each key.
        keys: ``(N,)`` int64.
        operation: what the user asked for, for messages.
        error: what was wrong with this process's keys; it is raised on all.

    Returns:
        Tables and keys that all processes ask this one for, and a function that takes an int32 answer for each of them
        and returns those to this process's own keys.
    """
    count = size()
    owners = owner_of(tables, keys, count)
    order = np.argsort(owners, kind="stable")
    sent = np.bincount(owners, minlength=count)
    most, failed = all_reduce_max(int(sent.max()), int(error is not None))
    raise_on_all(operation, error, failed)
    room = max(_LEAST, 1 << max(0, most - 1).bit_length())
    # Per owner the number of keys, the keys and their tables, behind each other.
    block = np.zeros((count, 1 + 2 * room), np.int64)
    starts = np.concatenate([[0], np.cumsum(sent)])
    for owner in range(count):
        own = order[starts[owner] : starts[owner + 1]]
        block[owner, 0] = len(own)
        block[owner, 1 : 1 + len(own)], block[owner, 1 + room : 1 + room + len(own)] = keys[own], tables[own]
    came = _all_to_all(block)
    got = came[:, 0]
    theirs = np.concatenate([came[i, 1 : 1 + n] for i, n in enumerate(got)])
    their_tables = np.concatenate([came[i, 1 + room : 1 + room + n] for i, n in enumerate(got)])

    def back(answers: np.ndarray) -> np.ndarray:
        reply = np.zeros((count, room), np.int32)
        ends = np.concatenate([[0], np.cumsum(got)])
        for i, n in enumerate(got):
            reply[i, :n] = answers[ends[i] : ends[i + 1]]
        home = _all_to_all(reply)
        found = np.empty(len(keys), np.int32)
        for owner in range(count):
            found[order[starts[owner] : starts[owner + 1]]] = home[owner, : sent[owner]]
        return found

    return (their_tables, theirs), back


def _all_to_all(block: np.ndarray) -> np.ndarray:
    given = flow.tensor(block)
    taken = flow.zeros(*block.shape, dtype=given.dtype)
    distributed.all_to_all_single(taken, given)
    return taken.numpy()


def barrier() -> None:
    """Wait for all processes."""
    if size() > 1:
        distributed.barrier()


def agree_value(value: object) -> object:
    """Return the first process's value."""
    if size() == 1:
        return value
    found = [value]
    distributed.broadcast_object_list(found, 0)
    return found[0]
