"""Objects between ranks: plain values by default, pickles where all allow them, and nothing that no rank signed."""

import collections
import fractions

import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import distributed as dist
from sbpjax import errors
from sbpjax._core.runtime import processes as worlds
from sbpjax.distributed import objects

VALUE = {"loss": float("inf"), ("a", 1): [None, {1, 2}, b"x", np.arange(3), np.float32(2)], "text": "x" * 300}

INDEX = pytest.mark.parametrize("index", range(5), ids=["all_gather", "gather", "broadcast", "scatter", "send"])


def calls(mine, **options):
    """Return the collectives as functions of the rank; each returns what the rank gets."""

    def gather_all(rank):
        found = [None] * 2
        dist.all_gather_object(found, mine(rank), **options)
        return found

    def gather(rank):
        found = [None] * 2
        dist.gather_object(mine(rank), found if rank == 1 else None, dst=1, **options)
        return found

    def broadcast(rank):
        found = [mine(0)] if rank == 0 else [None]
        dist.broadcast_object_list(found, src=0, **options)
        return found

    def scatter(rank):
        found = [None]
        dist.scatter_object_list(found, [mine(0), mine(1)] if rank == 0 else None, src=0, **options)
        return found

    def send(rank):
        found = [mine(0)] if rank == 0 else [None]
        if rank == 0:
            dist.send_object_list(found, dst=1, **options)
        else:
            assert dist.recv_object_list(found, src=0, **options) == 0
        return found

    return [gather_all, gather, broadcast, scatter, send]


def both(call):
    """Return what two ranks get of a call: a value, or an error."""

    @flow.simulate(2)
    def run():
        try:
            return call(flow.env.get_rank())
        except Exception as error:
            return error

    return run()


def same(a, b):
    np.testing.assert_equal(a, b)
    return type(a) is type(b)


def test_plain_values():
    gather_all, gather, broadcast, scatter, send = calls(lambda rank: (rank, VALUE))
    assert all(same(found, [(0, VALUE), (1, VALUE)]) for found in (*both(gather_all), both(gather)[1]))
    assert all(same(found, [(0, VALUE)]) for one in (broadcast, send) for found in both(one))
    assert all(same(found, [(rank, VALUE)]) for rank, found in enumerate(both(scatter)))


@INDEX
def test_other_types_are_an_error_of_all_ranks_by_name(index):
    found = both(calls(lambda rank: [rank, fractions.Fraction(1, 3) if rank == 0 else 0])[index])
    for error in found:
        assert isinstance(error, errors.EncodingTypeError) and "is a fractions.Fraction" in str(error)
        assert "\n  fix:  " in str(error)
    assert "rank 0 cannot send its object" in str(found[1]) and "allow_pickle=True on all ranks" in str(found[1])


@INDEX
def test_pickles_where_all_allow_them(index):
    obj = collections.OrderedDict(a=fractions.Fraction(1, 3))
    for found in both(calls(lambda rank: obj, allow_pickle=True)[index]):
        assert all(f is None or type(f) is type(obj) and f == obj for f in found)


def test_what_does_not_pickle_is_an_error_of_all_ranks():
    for error in both(calls(lambda rank: (lambda: 0) if rank else 1, allow_pickle=True)[0]):
        assert isinstance(error, Exception) and "pickle" in str(error)


@INDEX
@pytest.mark.parametrize("allows", [0, 1])
def test_one_rank_allows_pickles_and_the_other_does_not_is_an_error_of_both(index, allows):
    for error in both(lambda rank: calls(lambda rank: rank, allow_pickle=rank == allows)[index](rank)):
        assert isinstance(error, errors.EncodingTypeError), error
        assert f"ranks [{allows}] pass allow_pickle=True, ranks [{1 - allows}] do not" in str(error)
        assert "fix:  pass allow_pickle=True on all ranks, or on none" in str(error)


def test_objects_are_not_sent_to_oneself():
    for error in both(lambda rank: dist.send_object_list([1], dst=rank)):
        assert isinstance(error, errors.OpValueError) and "a rank sends to another rank" in str(error)


RAN = []


class Evil:
    def __reduce__(self):
        return RAN.append, ("a stranger's code",)


@pytest.mark.parametrize("allow_pickle", [False, True])
@pytest.mark.parametrize("attack", ["another key", "a flipped bit", "a cut signature", "of the other rank", "a size"])
def test_what_is_changed_on_the_way_is_refused_and_nothing_runs(monkeypatch, attack, allow_pickle):
    """Whoever sits between the ranks changes what arrives for rank 0, a pickle of its own included."""
    real, world = objects.run, worlds.World
    mine = objects._pack_object(Evil(), dist.group.group_of(None), True)

    def run(requested, body, group, arrays, static=()):
        (out,) = real(requested, body, group, arrays, static)
        rows = np.array(out)
        if rows.dtype == np.int64:  # the headers: sizes and kinds
            if attack == "another key":
                rows[0] = len(mine.data), objects._PICKLED
            elif attack == "a cut signature":
                rows[0, 0] = 20
            elif attack == "a size":
                rows[0, 0] = 1 << 60
        elif attack == "another key":
            rows[0, : len(mine.data)] = mine.data
        elif attack == "a flipped bit":
            rows[0, 40] ^= 1
        elif attack == "of the other rank":
            rows[0] = rows[1]
        return [jnp.asarray(rows)]

    monkeypatch.setattr(objects, "run", run)
    monkeypatch.setattr(world, "key", b"the key of this job's ranks alone")
    for error in both(calls(lambda rank: VALUE | {"rank": 0}, allow_pickle=allow_pickle)[0]):
        assert isinstance(error, errors.ForeignMessageError) and "rule: only messages of ranks" in str(error), error
    assert RAN == []
