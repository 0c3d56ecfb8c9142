"""Meetings of many ranks, simulated in one process: messages grow with their number, not with its square."""

import threading
import time
from types import SimpleNamespace

import jax
import pytest

from sbpjax._core.runtime import collective_trace, processes
from sbpjax.errors import AgreementError, LostRankError


class Service:
    """The calls of JAX's coordination service that a store makes, in memory and counted."""

    def __init__(self):
        self.values, self.changed, self.calls, self.bytes = {}, threading.Condition(), 0, 0

    def key_value_set_bytes(self, name, data, allow_overwrite=False):
        with self.changed:
            self.calls += 1
            self.bytes += len(data)
            self.values[name] = data
            self.changed.notify_all()

    def blocking_key_value_get_bytes(self, name, wait_ms):
        with self.changed:
            if not self.changed.wait_for(lambda: name in self.values, wait_ms / 1e3):
                raise jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED")
            return self._read(name)

    def key_value_try_get_bytes(self, name):
        with self.changed:
            if name not in self.values:
                raise jax.errors.JaxRuntimeError("NOT_FOUND")
            return self._read(name)

    def _read(self, name):
        self.calls += 1
        self.bytes += len(self.values[name])
        return self.values[name]

    def key_value_delete(self, name):
        with self.changed:
            self.values.pop(name, None)


@pytest.fixture
def world(monkeypatch):
    """Return a function that makes the world of a rank."""
    service = Service()
    monkeypatch.setattr(processes, "_SLICE_MS", 50)

    def make(rank, size):
        state = SimpleNamespace(process_id=rank, num_processes=size, client=service)
        with monkeypatch.context() as patched:
            patched.setattr(processes, "_state", lambda: state)
            made = processes.Processes(key=b"k" * 32)
            assert made.store is not None
        return made

    make.service = service
    return make


def meet(worlds, values, late=()):
    """Let all ranks exchange values; return what each got, its error if it raised one."""
    found = {}

    def run(world):
        try:
            found[world.rank] = world.exchange("a step", values[world.rank])
        except Exception as error:
            found[world.rank] = error

    # The first member last: it then waits for nobody, so that its time is that of its work.
    threads = [threading.Thread(target=run, args=(w,)) for w in reversed(worlds) if w.rank not in late]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("size", [4, 40])
def test_everyone_gets_every_value(world, size):
    worlds = [world(rank, size) for rank in range(size)]
    for number in range(4):  # older messages are removed meanwhile
        values = [[number, rank // 3] for rank in range(size)]
        assert meet(worlds, values) == dict.fromkeys(range(size), dict(enumerate(values)))
    assert len(world.service.values) <= 2 * (size + 1)


def test_messages_grow_with_the_ranks(world):
    calls = {}
    for size in (64, 128):
        before = world.service.calls, world.service.bytes
        meet([world(rank, size) for rank in range(size)], [("digest", 7)] * size)
        calls[size] = world.service.calls - before[0], world.service.bytes - before[1]
        world.service.values.clear()
    assert calls[64][0] == 3 * 64 - 1 and calls[128][0] == 3 * 128 - 1
    assert calls[128][1] < 2.2 * calls[64][1]  # equal messages are sent once


def test_all_learn_who_did_not_come_and_can_meet_again(world, monkeypatch):
    monkeypatch.setattr(processes, "timeout_s", lambda: 1.0)
    monkeypatch.setattr(processes, "_ANSWER_S", 20.0)
    worlds = [world(rank, 20) for rank in range(20)]
    found = meet(worlds, list(range(20)), late=(7,))
    assert len(found) == 19 and all(isinstance(e, LostRankError) for e in found.values())
    assert {str(e) for e in found.values()} == {str(found[0])} and "ranks [7] of" in str(found[0])
    monkeypatch.setattr(processes, "timeout_s", lambda: 20.0)
    values = dict(enumerate(range(20)))
    assert meet(worlds[:7] + worlds[8:] + [world(7, 20)], values)[0] == values


def test_a_first_member_that_does_not_come_is_named(world, monkeypatch):
    monkeypatch.setattr(processes, "timeout_s", lambda: 0.3)
    monkeypatch.setattr(processes, "_ANSWER_S", 0.3)
    found = meet([world(rank, 18) for rank in range(18)], [None] * 18, late=(0,))
    assert {type(e) for e in found.values()} == {LostRankError} and "ranks [0] of" in str(found[5])


def test_other_operations_are_told_to_all(world):
    size, errors = 20, []

    def run(each):
        try:
            each.exchange("save" if each.rank == 3 else "train", None)
        except AgreementError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=run, args=(world(rank, size),)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == size and len(set(errors)) == 1 and "ranks [3]: save" in errors[0]


def test_traces_of_all_ranks_are_sent_by_their_number():
    assert collective_trace._short(tuple(range(4096))) == 4096 and collective_trace._short((1, 2)) == [1, 2]
    accounts = {0: [1, [[5, "a"]]], 1: [1, [[6, "b"]]]}
    with pytest.raises(AgreementError):
        collective_trace.compare({0: [[2, 1, 5]], 1: [[2, 1, 6]]}, lambda *_: accounts)


@pytest.mark.exhaustive
def test_four_thousand_ranks_meet_within_a_minute(world):
    size = 4096
    worlds = [world(rank, size) for rank in range(size)]
    for each in worlds[1:]:
        each.store.put(f"sbpjax/all/0/{each.rank}", ("a step", 7, None))
    start = time.process_time()
    assert len(worlds[0].exchange("a step", 7)) == size
    assert time.process_time() - start < 60
