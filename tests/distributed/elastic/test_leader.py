"""When a leader knows that the ranks of hosts that are not there are over."""

import asyncio
import time

import pytest

from sbpjax.distributed.elastic.epochs import Acceptor, Epoch, Host
from sbpjax.distributed.elastic.leader import Leader, Peer
from sbpjax.distributed.elastic.settings import LEASE, OWN_FENCE, Settings
from tests.distributed.elastic.simulated import run

SILENCE_S = 10.0


async def _fence(here, leader_of_epoch, led, left):
    """Return the fence, in seconds after the time 1000, of an epoch of hosts 0 to 3."""
    hosts = [Host(node, "a", f"h{node}:1") for node in range(4)]
    acceptor = Acceptor(Epoch(7, tuple(hosts), leader_of_epoch))
    leader = Leader(Settings(min(here), "", {}, b"", silence_s=SILENCE_S), acceptor, lambda text: None)
    for node in here:
        leader.peers[node] = Peer(hosts[node], lambda body: None, None, 0.0, 0.0, 1000.0 + left.get(node, 0.0), 7, 7)
    leader._led = led
    leader._acknowledged = {node: 1000.0 + node for node in range(4)}
    return leader._fence() - 1000.0


@pytest.mark.parametrize("here, leader_of_epoch, led, left, wanted", [
    ([0, 1, 2, 3], 0, 0, {}, -1000.0),  # all are here, and stopped
    ([0, 1, 2], 0, 7, {}, 3 + OWN_FENCE * SILENCE_S),  # the same leader knows when it acknowledged host 3 last
    ([0, 1], 0, 7, {}, 3 + OWN_FENCE * SILENCE_S),
    ([1, 2, 3], 0, 0, {1: 5.0, 2: 4.0, 3: 6.0}, 4.0 + OWN_FENCE * SILENCE_S),  # its leader alone is missing
    ([1, 2], 0, 0, {1: 5.0, 2: 4.0}, 4.0 + SILENCE_S),  # that leader may go on acknowledging host 3
    ([0, 1, 2], 0, 6, {1: 5.0, 2: 4.0, 0: 9.0}, 4.0 + SILENCE_S),  # host 0 came back, and leads again
])  # fmt: skip
def test_fences(here, leader_of_epoch, led, left, wanted):
    assert run(_fence(here, leader_of_epoch, led, left)) == pytest.approx(wanted)


async def _leases():
    hosts = tuple(Host(node, "a", f"h{node}:1") for node in range(2))
    leader = Leader(Settings(0, "", {}, b"", silence_s=SILENCE_S), Acceptor(Epoch(1, hosts, 0)), lambda text: None)
    sent, now = [], time.monotonic()
    for node in range(2):
        peer = Peer(hosts[node], sent.append, None, now, now, now, 1, 0)
        leader.peers[node] = peer
    beat = {"t": "beat", "n": 1, "stopped": 0, "ended": 0, "leaving": False, "port": 1}
    leader.phase = "training"
    leader._update_lease()
    leader.receive(peer, beat)
    leader.peers[0].heard = now - LEASE * SILENCE_S - 0.1
    leader._update_lease()
    leader.receive(peer, beat)
    await asyncio.sleep(0)
    return sent, leader.own_lease() - now


def test_no_host_is_acknowledged_while_one_is_silent():
    sent, lease = run(_leases())
    assert [b'"epoch":1' in body for body in sent] == [True, False] and lease < 0
