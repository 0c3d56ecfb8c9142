"""Search for the leader of a job.

An agent without a leader connects to the other hosts, the lowest first. One that leads takes it in; one that follows
names its leader; one that looks for a leader itself answers so. An agent that finds no lower host leads, if it has a
vote. A leader without a quorum looks for other leaders, and yields to the one that trains, else to the one with the
later epoch, then to the one with a quorum, then to the lower host.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import channel as channels
from .channel import Channel
from .epochs import Acceptor
from .leader import Leader
from .settings import BEAT, Settings

_AT_ONCE = 8  # connections that a search opens
_REACHED, _ANSWERED = 0.2, 0.6  # of the silence: a host that is reached may be busy with a thousand others
_HOPS = 3  # from one agent's leader to that one's leader, while leaders change


@dataclass(frozen=True)
class Found:
    """A leader that accepted this host.

    Attributes:
        channel: the connection to it.
        address: its address.
        welcome: its answer, with the latest epoch if this host has an earlier one.
    """

    channel: Channel
    address: str
    welcome: dict[str, Any]


class Finder:
    """Finds the leader.

    Args:
        settings: of the job and the host.
        acceptor: the votes of this host, which know the hosts of the last epoch.
        log: prints a line.
    """

    def __init__(self, settings: Settings, acceptor: Acceptor, log: Callable[[str], None]) -> None:
        self.settings, self.acceptor, self.log = settings, acceptor, log

    async def find(self, join: dict[str, Any], hint: str | None, looks_higher: bool) -> tuple[Found | None, bool]:
        """Return the leader, None if there is none, and whether a lower host looks for one, too.

        Args:
            join: the message by which this host joins.
            hint: the address of the leader, if it may be known.
            looks_higher: also ask the hosts above this one; a host that leads looks for other leaders itself.
        """
        if hint is not None:
            found, _ = await self._join(hint, join)
            if found is not None:
                return found, False
        known = self._known_hosts()
        found, lower_is_there = await self._join_any([a for node, a in known if node < self.settings.node], join)
        if found is None and not lower_is_there and looks_higher:
            found, _ = await self._join_any([a for node, a in known if node > self.settings.node], join)
        return found, lower_is_there

    async def find_better(self, leader: Leader) -> str:
        """Return the address of a leader to which this one yields, when there is one."""
        node = self.settings.node
        while True:
            await asyncio.sleep(random.uniform(0.5, 1.0) * BEAT * self.settings.silence_s)
            strangers = [address for other, address in self._known_hosts() if other not in leader.peers]
            some = random.sample(strangers, min(_AT_ONCE, len(strangers))) if leader.phase == "idle" else []
            for answer in await asyncio.gather(*map(self._query_leader, some)):
                if answer is not None and leader.phase == "idle" and tuple(answer["rank"]) > leader.rank(node):
                    self.log(f"the leader at {answer['to']} is followed")
                    return answer["to"]

    def _known_hosts(self) -> list[tuple[int, str]]:
        """Return node and address of the other hosts, by node."""
        known = dict(self.settings.seeds) | {host.node: host.address for host in self.acceptor.epoch.hosts}
        known.pop(self.settings.node, None)
        return sorted(known.items())

    async def _join_any(self, addresses: list[str], join: dict[str, Any]) -> tuple[Found | None, bool]:
        """Return the leader by way of one of some agents, and whether one of them looks for it."""
        if not addresses:
            return None, False
        found, is_there = await self._join(addresses[0], join)
        rest = addresses[1:]
        while rest and found is None and not is_there:
            some, rest = rest[:_AT_ONCE], rest[_AT_ONCE:]
            answers = await asyncio.gather(*map(self._ask, some))
            is_there = any(answer["t"] == "searching" for answer in answers if answer is not None)
            for to in dict.fromkeys(answer["to"] for answer in answers if answer is not None):
                if found is None and to not in (None, self.settings.address):
                    found, _ = await self._join(to, join)
        return found, is_there

    async def _join(self, address: str, join: dict[str, Any], hops: int = _HOPS) -> tuple[Found | None, bool]:
        """Return the leader by way of an agent, and whether that agent looks for it."""
        called = await self._call(address, join)
        if called is None:
            return None, False
        channel, answer = called
        if answer["t"] == "welcome":
            return Found(channel, address, answer), True
        channel.close()
        if answer["t"] == "refused":
            self.log(f"{address} refuses this host: {answer['why']}")
        to = answer.get("to")
        if to and to not in (address, self.settings.address) and hops:
            return await self._join(to, join, hops - 1)
        return None, answer["t"] == "searching"

    async def _query_leader(self, address: str) -> dict[str, Any] | None:
        """Return the answer of the leader that an agent knows, None without one."""
        answer = await self._ask(address)
        if answer is not None and answer["t"] == "following" and answer["to"] not in (None, self.settings.address):
            answer = await self._ask(answer["to"])
        return answer if answer is not None and answer["t"] == "leading" else None

    async def _ask(self, address: str) -> dict[str, Any] | None:
        """Return what an agent knows of the leader, None if it does not answer."""
        called = await self._call(address, {"t": "who"})
        if called is None:
            return None
        called[0].close()
        return called[1]

    async def _call(self, address: str, message: dict[str, Any]) -> tuple[Channel, dict[str, Any]] | None:
        """Send a message to an agent; return the connection and the answer, None if it does not answer."""
        silence_s = self.settings.silence_s
        tls = None if self.settings.tls is None else self.settings.tls[1]
        limits_s = (_REACHED * silence_s, _ANSWERED * silence_s)
        try:
            channel = await channels.connect(address, self.settings.key, *limits_s, tls)
        except channels.RefusedError as error:
            self.log(f"{address}: {error}")
            return None
        except (OSError, ValueError):
            return None
        try:
            channel.send(message)
            async with asyncio.timeout(_ANSWERED * silence_s):
                return channel, await channel.receive()
        except (OSError, ValueError):
            channel.close()
            return None
        except BaseException:
            channel.close()
            raise
