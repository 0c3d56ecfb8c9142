"""Quorums of epochs, and the votes of a host."""

import itertools
import json

import pytest

from sbpjax.distributed.elastic.epochs import Acceptor, Epoch, Host, epoch_of, next_epoch


def hosts(*nodes, incarnation="a"):
    return tuple(Host(node, incarnation, f"h{node}:1", 2) for node in nodes)


@pytest.mark.parametrize("size", range(1, 7))
def test_of_two_separate_parts_one_has_a_quorum_at_most(size):
    epoch = Epoch(3, hosts(*range(size)))
    for count in range(size + 1):
        for part in itertools.combinations(epoch.hosts, count):
            other = [host for host in epoch.hosts if host not in part]
            decided = epoch.has_quorum(part), epoch.has_quorum(other)
            assert decided != (True, True)
            assert any(decided)  # a partition in two never stops all
            assert decided[0] == (count > size / 2 or (2 * count == size and epoch.hosts[0] in part))


def test_a_host_that_forgot_its_votes_is_no_voter():
    epoch = Epoch(1, hosts(0, 1, 2))
    again = hosts(1, incarnation="b")
    assert not epoch.has_quorum([*hosts(0), *again]) and epoch.has_quorum(hosts(0, 1))
    assert epoch.find(1, "b") is None and epoch.find(1, "a") is not None and epoch.find(7, "a") is None
    assert Epoch(0, hosts(0, 1, 2, incarnation="")).has_quorum([*hosts(0), *again])  # the first vote knows no earlier


def test_ranks_are_counted_in_the_order_of_hosts():
    epoch = next_epoch(Epoch(1, hosts(0, 1)), [*hosts(5), *hosts(2)], 2, "h2:9", 1)
    assert [h.node for h in epoch.hosts] == [2, 5] and epoch.number == 2 and epoch.world_size == 4
    assert (epoch.first_rank(2), epoch.first_rank(5)) == (0, 2) and epoch.failures == 1
    assert epoch_of(json.loads(json.dumps(epoch.to_plain()))) == epoch


def test_votes(tmp_path):
    first = Epoch(0, hosts(0, 1, incarnation=""))
    acceptor = Acceptor(first, str(tmp_path / "votes"))
    one, two = (next_epoch(first, hosts(0, 1), node, "h0:1", 0) for node in (0, 1))
    assert acceptor.promise(0, (1, 0)) and not acceptor.promise(3, (9, 0))  # not of this epoch
    assert acceptor.promise(0, (2, 1)) and not acceptor.accept((1, 0), one)  # a higher ballot was promised
    assert acceptor.accept((2, 1), two) and acceptor.find_accepted(two.nonce) == two
    again = Acceptor(first, str(tmp_path / "votes"))
    assert again.incarnation == acceptor.incarnation and again.accepted == ((2, 1), two) and again.promised == (2, 1)
    again.commit(two)
    assert again.epoch == two and again.accepted is None and not again.promise(0, (9, 0))
    again.commit(first)
    assert again.epoch == two
    again.forget()
    assert not list(tmp_path.iterdir()) and Acceptor(first, None).incarnation != acceptor.incarnation
