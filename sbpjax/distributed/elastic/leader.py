"""Leader of a job: hears all hosts, decides epochs, and ends and starts the ranks of all hosts together.

    idle ──── a quorum of the last epoch is here, its ranks are known to be over ────▶ training
    training ─ a rank failed, a host is silent ─▶ ranks are killed ─▶ idle
    training ─ a host joins, a host was sent SIGTERM, a rank exits with 75 ─▶ saving ─ all ranks ended ─▶ idle

Time is counted in shares of the silence S (``--host_timeout``) after which a host counts as lost. A host that is
training sends a beat every 0.1 S. The leader acknowledges it while it hears every host of the epoch. An acknowledged
host may run its ranks until 0.4 S after it *sent* the beat, and then kills them; the leader ends the epoch when a host
was silent for 0.4 S. So a leader that acknowledged a lost host last at time t knows at t + 0.6 S that its ranks are
over. Another leader knows it S after the time at which one of its voters sent its last beat to the former leader: that
one acknowledges nobody later than 0.4 S after, and nobody runs longer than another 0.4 S.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .channel import Channel, encode_message
from .epochs import NO_BALLOT, Acceptor, Ballot, Epoch, Host, epoch_of, next_epoch
from .settings import LEASE, OWN_FENCE, Settings

EXIT_RESTART = 75


@dataclass(eq=False)
class Peer:
    """A host as its leader sees it.

    Attributes:
        host: the host.
        send: sends it an encoded message.
        channel: its connection; None for the leader's own host.
        joined: when it came; all times are of `time.monotonic`.
        heard: when its last beat arrived.
        left: when it supported a leader for the last time.
        known: the latest epoch that it knows.
        stopped: the ranks of this epoch, and of those before, have ended there.
        ended: whether all its ranks ended well.
        leaving: whether it was sent SIGTERM.
        port: a free port there.
    """

    host: Host
    send: Callable[[bytes], None]
    channel: Channel | None
    joined: float
    heard: float
    left: float
    known: int
    stopped: int
    ended: bool = False
    leaving: bool = False
    port: int = 0
    replies: asyncio.Queue = field(default_factory=asyncio.Queue)

    def is_connected(self) -> bool:
        """Return whether its connection is open."""
        return self.channel is None or self.channel.is_open


class Leader:
    """The leader's part of an agent.

    Args:
        settings: of the job.
        acceptor: the votes of this host.
        log: prints a line.
    """

    def __init__(self, settings: Settings, acceptor: Acceptor, log: Callable[[str], None]) -> None:
        self.settings, self.acceptor, self.log = settings, acceptor, log
        self.peers: dict[int, Peer] = {}
        self.phase = "idle"
        self.failures = acceptor.epoch.failures
        self.changed = asyncio.Event()
        self.is_over = False
        self._acknowledged: dict[int, float] = {}
        self._led = 0  # the latest epoch that this leader started
        self._counter = 0  # of ballots
        self._enough_since: float | None = None
        self._save_until = self._heard_until = 0.0
        self._said = ""

    @property
    def epoch(self) -> Epoch:
        """The latest epoch that is decided."""
        return self.acceptor.epoch

    def rank(self, node: int) -> tuple[bool, int, bool, int]:
        """Return the order in which leaders yield to each other: those with a lower value to others."""
        return self.phase != "idle", self.epoch.number, self.epoch.has_quorum(self._hosts()), -node

    def _hosts(self) -> list[Host]:
        return [peer.host for peer in self.peers.values()]

    # -- hosts ---------------------------------------------------------------------------------------------------------

    def add(self, peer: Peer) -> None:
        """Take a host in, and send it the latest epoch."""
        self.remove(self.peers.get(peer.host.node), "it came again")
        self.peers[peer.host.node] = peer
        peer.send(encode_message({"t": "welcome", "epoch": self.epoch.to_plain() if self.epoch.number else None}))
        if peer.known > self.epoch.number:
            peer.send(encode_message({"t": "want"}))
        self.changed.set()

    def remove(self, peer: Peer | None, reason: str) -> None:
        """Give up a host."""
        if peer is None or self.peers.get(peer.host.node) is not peer:
            return
        del self.peers[peer.host.node]
        if peer.channel is not None:
            peer.channel.close()
        peer.replies.put_nowait(None)
        if self.epoch.find(peer.host.node, peer.host.incarnation) and self.phase != "idle":
            self._end_epoch(f"host {peer.host.node} is lost: {reason}")
        self.changed.set()

    def receive(self, peer: Peer, message: dict[str, Any]) -> None:
        """Process a message of a host."""
        kind = message["t"]
        if kind == "beat":
            self._receive_beat(peer, message)
        elif kind == "failed":
            self._receive_failure(peer, message)
        elif kind in ("promise", "accepted"):
            peer.replies.put_nowait(message)
        elif kind == "epoch":
            if message["epoch"]["number"] > self.epoch.number:
                self._broadcast({"t": "commit", "nonce": "", "epoch": message["epoch"]})
                self._broadcast({"t": "stop", "epoch": self.epoch.number, "save": False})
            self.changed.set()

    def _receive_beat(self, peer: Peer, message: dict[str, Any]) -> None:
        now = time.monotonic()
        peer.heard, peer.port = now, message["port"]
        news = (message["stopped"], message["ended"] == self.epoch.number, message["leaving"])
        if news != (peer.stopped, peer.ended, peer.leaving):
            peer.stopped, peer.ended, peer.leaving = news
            self.changed.set()
        is_member = self.epoch.find(peer.host.node, peer.host.incarnation) is not None
        is_healthy = is_member and self.phase != "idle" and now < self._heard_until
        if is_healthy:
            self._acknowledged[peer.host.node] = now
        peer.send(encode_message({"t": "ack", "n": message["n"], "epoch": self.epoch.number if is_healthy else 0}))

    def _receive_failure(self, peer: Peer, message: dict[str, Any]) -> None:
        if message["epoch"] != self.epoch.number or self.phase == "idle":
            return
        code, rank = message["code"], message["rank"]
        if message["expired"]:
            self._end_epoch(f"host {peer.host.node} was not acknowledged in time: its ranks were killed")
        elif self.phase == "saving":
            if code != EXIT_RESTART:
                self._end_epoch(f"rank {rank} on host {peer.host.node} ended with {code} and did not save")
        elif code == EXIT_RESTART and self.settings.max_restarts > 0:
            self._save_epoch(f"rank {rank} requests a restart")
        elif self.failures >= self.settings.max_restarts:
            self.finish(code if code > 0 else 128 - code, f"rank {rank} on host {peer.host.node} ended with {code}")
        else:
            self.failures += 1
            count = f"{self.failures} of {self.settings.max_restarts} restarts"
            self._end_epoch(f"rank {rank} on host {peer.host.node} ended with {code} ({count})")

    def _update_lease(self) -> None:
        """Set until when ranks may run: each host of the epoch is heard once more before."""
        heard = [self.peers[host.node].heard for host in self.epoch.hosts if host.node in self.peers]
        self._heard_until = min(heard, default=0.0) + LEASE * self.settings.silence_s

    def own_lease(self) -> float:
        """Return until when the ranks on the leader's host may run; 0 if none may."""
        return self._heard_until if self.phase != "idle" else 0.0

    # -- epochs --------------------------------------------------------------------------------------------------------

    async def run(self, node: int) -> None:
        """Lead until the job is over, or the task is cancelled."""
        while not self.is_over:
            self.changed.clear()
            self._drop_silent_hosts(node)
            self._update_lease()
            if self.phase == "idle":
                await self._form(node)
            else:
                self._check()
            try:
                async with asyncio.timeout(self.settings.silence_s / 40):
                    await self.changed.wait()
            except TimeoutError:
                pass

    def _drop_silent_hosts(self, node: int) -> None:
        now, silence_s = time.monotonic(), self.settings.silence_s
        self.peers[node].heard = now
        for peer in list(self.peers.values()):
            share = LEASE if self.epoch.find(peer.host.node, peer.host.incarnation) else 1.0
            if peer.channel is not None and peer.heard < now - share * silence_s:
                self.remove(peer, f"silent for {now - peer.heard:.1f} s")

    def _check(self) -> None:
        """End the epoch if its hosts ended or should change."""
        peers = [self.peers[h.node] for h in self.epoch.hosts if h.node in self.peers]
        if all(peer.ended for peer in peers):
            return self.finish(0, "all ranks ended")
        if all(peer.stopped >= self.epoch.number for peer in peers):
            self.phase = "idle"
            return None
        if self.phase == "saving":
            if time.monotonic() > self._save_until:
                self._end_epoch(f"ranks did not end within {self.settings.save_s:g} s")
            return None
        leaving = [peer.host.node for peer in peers if peer.leaving]
        if leaving:
            return self._save_epoch(f"host {leaving[0]} leaves")
        waits = time.monotonic() - self.settings.join_wait_s
        spare = [p for p in self._spares() if p.joined < waits]
        if spare and len(self.epoch.hosts) < self.settings.max_hosts:
            return self._save_epoch(f"host {spare[0].host.node} joins")
        return None

    def _spares(self) -> list[Peer]:
        strangers = [p for p in self.peers.values() if not self.epoch.find(p.host.node, p.host.incarnation)]
        return [peer for peer in strangers if not peer.leaving]

    def _end_epoch(self, reason: str) -> None:
        self._broadcast_stop(reason, save=False)
        self.phase = "idle"

    def _save_epoch(self, reason: str) -> None:
        self.phase = "saving"
        self._save_until = time.monotonic() + self.settings.save_s
        self._broadcast_stop(reason, save=True)

    def _broadcast_stop(self, reason: str, *, save: bool) -> None:
        self.log(f"epoch {self.epoch.number} ends: {reason}")
        self._broadcast({"t": "stop", "epoch": self.epoch.number, "save": save})
        self.changed.set()

    def _broadcast(self, message: dict[str, Any]) -> None:
        body = encode_message(message)
        for peer in list(self.peers.values()):
            peer.send(body)

    def finish(self, code: int, reason: str) -> None:
        """End the job on all hosts."""
        self.log(f"the job ends with code {code}: {reason}")
        self.is_over, self.phase = True, "idle"
        self._broadcast({"t": "end", "code": code})
        self.changed.set()

    # -- the vote ------------------------------------------------------------------------------------------------------

    async def _form(self, node: int) -> None:
        """Decide and start the next epoch, if enough hosts are here."""
        s, epoch = self.settings, self.epoch
        if self.peers and all(peer.leaving for peer in self.peers.values()) and epoch.has_quorum(self._hosts()):
            return self.finish(EXIT_RESTART, "all hosts were sent SIGTERM")
        staying = [peer for peer in self.peers.values() if not peer.leaving]
        staying.sort(key=lambda p: (epoch.find(p.host.node, p.host.incarnation) is None, p.host.node))
        chosen = staying[: s.max_hosts]
        problem = None
        if not epoch.has_quorum(self._hosts()):
            here = sorted(self.peers)
            problem = f"waiting for a quorum of hosts {[h.node for h in epoch.hosts]}; here are {here}"
        elif len(chosen) < s.min_hosts:
            problem = f"waiting for {s.min_hosts} hosts; here are {sorted(p.host.node for p in chosen)}"
        if problem is not None:
            self._enough_since = None
            return self._say(problem)
        now = time.monotonic()
        self._enough_since = self._enough_since or now
        if len(chosen) < s.max_hosts and not epoch.number and now < self._enough_since + s.join_wait_s:
            return self._say(f"waiting {s.join_wait_s:g} s for more hosts than {sorted(p.host.node for p in chosen)}")
        if any(peer.stopped < epoch.number for peer in self.peers.values()) or now < self._fence():
            return None
        failures = max(self.failures, epoch.failures)
        proposal = next_epoch(epoch, [p.host for p in chosen], node, self._master(chosen), failures)
        decided, voters = await self._decide(proposal)
        if decided is None:
            return None
        brief = encode_message({"t": "commit", "nonce": decided.nonce, "epoch": None})
        whole = encode_message({"t": "commit", "nonce": decided.nonce, "epoch": decided.to_plain()})
        for peer in list(self.peers.values()):
            peer.send(brief if peer in voters else whole)
        self._enough_since = None
        if decided.nonce != proposal.nonce:  # of a former leader that did not come to its end: nobody starts it
            return self._broadcast({"t": "stop", "epoch": decided.number, "save": False})
        self.phase, self._led, self._acknowledged = "training", decided.number, {}
        self.failures, begun = failures, time.monotonic()
        for host in decided.hosts:
            self._acknowledged[host.node] = begun
            if host.node in self.peers:
                self.peers[host.node].ended = False
        missing = [host.node for host in decided.hosts if host.node not in self.peers]
        if missing:
            return self._end_epoch(f"host {missing[0]} is lost")
        nodes = [host.node for host in decided.hosts]
        self.log(f"epoch {decided.number} starts on hosts {nodes}, rank 0 at {decided.master}")
        self._update_lease()
        self._broadcast({"t": "start", "epoch": decided.number})
        return None

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self.log(text)

    def _master(self, chosen: list[Peer]) -> str:
        first = min(chosen, key=lambda peer: peer.host.node)
        host, _, _ = first.host.address.rpartition(":")
        return f"{host}:{self.settings.master_port or first.port}"

    def _fence(self) -> float:
        """Return when the ranks of all hosts that are not here are over; see the head of this file."""
        epoch, silence_s = self.epoch, self.settings.silence_s
        here = {p.host.node for p in self.peers.values() if epoch.find(p.host.node, p.host.incarnation)}
        missing = {host.node for host in epoch.hosts} - here
        if not missing or not epoch.number:
            return 0.0
        if epoch.number == self._led:
            return max(self._acknowledged[node] for node in missing) + OWN_FENCE * silence_s
        left = min(self.peers[node].left for node in here)
        return left + (OWN_FENCE if missing == {epoch.leader} else 1.0) * silence_s

    async def _decide(self, proposal: Epoch) -> tuple[Epoch | None, set[Peer]]:
        """Have the quorum of the last epoch decide the next one; return it (None without a quorum), and its voters."""
        before = self.epoch
        voters = [p for p in self.peers.values() if before.find(p.host.node, p.host.incarnation)]
        self._counter = max(self._counter, self.acceptor.promised[0]) + 1
        ballot: Ballot = (self._counter, proposal.leader)
        promises = await self._ask(voters, before, {"t": "prepare", "number": before.number, "ballot": ballot})
        if promises is None:
            return None, set()
        best: tuple[Ballot, Epoch | None] = (NO_BALLOT, None)
        for reply in promises.values():
            if reply["accepted"] is not None and tuple(reply["accepted"][0]) > best[0]:
                best = tuple(reply["accepted"][0]), epoch_of(reply["accepted"][1])
        value = best[1] or proposal
        accepted = await self._ask(voters, before, {"t": "accept", "ballot": ballot, "epoch": value.to_plain()})
        return (None, set()) if accepted is None else (value, set(accepted))

    async def _ask(self, voters: list[Peer], before: Epoch, question: dict[str, Any]) -> dict[Peer, dict] | None:
        """Return the replies of a quorum, None if there is none in time."""
        body, ballot = encode_message(question), list(question["ballot"])
        for peer in voters:
            while not peer.replies.empty():
                peer.replies.get_nowait()
            peer.send(body)
        deadline = time.monotonic() + LEASE * self.settings.silence_s

        async def reply_of(peer: Peer) -> dict[str, Any] | None:
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    while (found := await peer.replies.get()) is not None and found["ballot"] != ballot:
                        pass
            except TimeoutError:
                return None
            return found

        replies = await asyncio.gather(*map(reply_of, voters))
        for reply in replies:
            if reply is not None:
                self._counter = max(self._counter, reply["promised"][0])
        agreed = {peer: reply for peer, reply in zip(voters, replies, strict=True) if reply and reply["ok"]}
        if not before.has_quorum([peer.host for peer in agreed]) or self.epoch.number != before.number:
            return None
        return agreed
