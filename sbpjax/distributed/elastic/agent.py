"""Agent of a host: finds or becomes the leader, and runs the host's ranks in each epoch.

An agent without a leader looks for one (`search`). It leads itself if it has a vote and no lower host is there. A
leader that does not train yields to a better one.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import Callable
from typing import Any, Protocol

from . import channel as channels
from .channel import Channel
from .epochs import Acceptor, Epoch, Host, epoch_of
from .leader import EXIT_RESTART, Leader, Peer
from .search import Finder, Found
from .settings import BEAT, LEASE, Settings

_MOST_STRANGERS = 4096  # connections that did not identify themselves yet
_FIRST_WAIT, _LAST_WAIT = 0.02, 0.2  # of the silence: between two searches


class Ranks(Protocol):
    """The ranks of a host, as an agent runs them."""

    def start(self, epoch: Epoch, host: Host) -> None:
        """Start the ranks of an epoch."""

    def extend(self, until: float) -> None:
        """Let them run until a time of `time.monotonic`, and no longer even if this process stops."""

    def poll(self) -> tuple[tuple[int, int] | None, bool]:
        """Return ``(rank, code)`` of the first rank that failed, None without one, and whether some still run."""
        ...

    def keep_standbys(self) -> None:
        """Have processes ready for the next start, if the options want it."""

    def save(self) -> None:
        """Have them save and exit."""

    async def stop(self, grace_s: float) -> None:
        """End them."""

    def free_port(self) -> int:
        """Return a free port of this host."""
        ...


class Agent:
    """Agent of a host.

    Args:
        settings: of the job and the host.
        ranks: runs the ranks.
        log: prints a line.
    """

    def __init__(self, settings: Settings, ranks: Ranks, log: Callable[[str], None]) -> None:
        self.settings, self.ranks, self.log = settings, ranks, log
        self.acceptor = Acceptor(settings.first_epoch(), settings.state_path)
        self.host = Host(settings.node, self.acceptor.incarnation, settings.address, settings.ranks)
        self._finder = Finder(settings, self.acceptor, log)
        self.leader: Leader | None = None
        self.leaving = False
        self._leader_address: str | None = None
        self._answer: Callable[[dict[str, Any]], None] | None = None  # sends to the leader, if there is one
        self._running = self._saving = self._ended = 0  # numbers of epochs
        self._stopped = self.acceptor.epoch.number
        self._failed = self._expired = False
        self._granted = 0.0  # until when ranks may run
        self._left = time.monotonic()
        self._lease = 0.0
        self._stopping: asyncio.Task | None = None
        self._code: asyncio.Future[int] | None = None
        self._port = 0
        self._useful = time.monotonic()  # when this host was part of an epoch last
        self._leave_from = (0, 0.0)
        self._strangers, self._is_over = 0, False
        self._served: set[asyncio.Task] = set()
        self._refused: set[str] = set()  # addresses of strangers
        self._now = asyncio.Event()  # a beat is due at once

    # -- life ----------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until the job is over, and return its exit code."""
        s = self.settings
        self._code = asyncio.get_running_loop().create_future()
        self._port = self.ranks.free_port()
        tls = None if s.tls is None else s.tls[0]
        _, port = channels.split_address(s.address)
        server = await asyncio.start_server(self._accept, s.bind or None, port, ssl=tls, backlog=4096)
        tasks = [asyncio.create_task(self._search()), asyncio.create_task(self._watch())]
        for task in tasks:
            task.add_done_callback(self._raise_error_of)
        try:
            return await self._code
        finally:
            self._is_over = True
            for listener in server.sockets:  # closed at once, Python 3.11 loses what it just accepted (gh-109564)
                asyncio.get_running_loop().remove_reader(listener.fileno())
            await asyncio.sleep(0.01)
            server.close()
            for some in (tasks, [*self._served]):  # a leader has the end of the job arrive, and closes then
                for task in some:
                    task.cancel()
                await asyncio.gather(*some, return_exceptions=True)
            await self._stop_ranks(s.grace_s)

    def _raise_error_of(self, task: asyncio.Task) -> None:
        if not task.cancelled() and (error := task.exception()) and self._code is not None and not self._code.done():
            self._code.set_exception(error)

    def finish(self, code: int, *, forget: bool = True) -> None:
        """End this agent."""
        if forget:
            self.acceptor.forget()
        if self._code is not None and not self._code.done():
            self._code.set_result(code)

    def leave(self) -> None:
        """Take this host out of the job: ranks save, the others go on without it."""
        if not self.leaving:
            self.leaving = True
            self._leave_from = (self.acceptor.epoch.number, time.monotonic())
            self._now.set()
            if self.leader is not None:
                self._beat_leader()

    # -- the server ----------------------------------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_over or self._strangers >= _MOST_STRANGERS:
            writer.close()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._served.add(task)

        def end(task: asyncio.Task) -> None:
            self._served.discard(task)
            writer.close()  # also of a task that was cancelled before it began

        task.add_done_callback(end)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = None
        self._strangers += 1
        try:
            channel = await channels.accept(reader, writer, self.settings.key)
        except OSError as error:
            where = (writer.get_extra_info("peername") or ["?"])[0]
            if isinstance(error, channels.RefusedError) and where not in self._refused:
                self._refused.add(where)
                self.log(f"a connection from {where} was refused: {error}")
            return
        finally:
            self._strangers -= 1
        try:
            first = await channel.receive()
            if first["t"] == "join" and self.leader is not None:
                leader, peer = self.leader, _make_peer(first, channel)
                twin = leader.peers.get(peer.host.node)
                if twin is not None and twin.host.incarnation != peer.host.incarnation and twin.is_connected():
                    channel.send({"t": "refused", "why": f"this host is node {peer.host.node} as well"})
                    return
                leader.add(peer)
                while leader is self.leader:
                    leader.receive(peer, await channel.receive())
            else:
                channel.send(self._describe())
                await channel.flush()
        except (ConnectionError, KeyError, TypeError, ValueError, IndexError) as error:
            if peer is not None and self.leader is not None:
                self.leader.remove(peer, str(error))
        finally:
            channel.close()

    def _describe(self) -> dict[str, Any]:
        """Return the answer to another agent that looks for a leader."""
        if self.leader is not None:
            rank = list(self.leader.rank(self.settings.node))
            return {"t": "leading", "rank": rank, "to": self.settings.address}
        searches = self._leader_address is None and self._may_lead()
        return {"t": "searching" if searches else "following", "to": self._leader_address}

    # -- the search ----------------------------------------------------------------------------------------------------

    async def _search(self) -> None:
        hint, wait = None, _FIRST_WAIT
        while True:
            found, lower_is_there = await self._finder.find(self._make_join(), hint, looks_higher=not self._may_lead())
            hint = None
            if found is not None:
                wait = _FIRST_WAIT
                await self._follow(found)
            elif not lower_is_there and self._may_lead():
                wait = _FIRST_WAIT
                hint = await self._lead()
            else:  # longer each time, or a thousand hosts keep the lowest from answering
                await asyncio.sleep(random.uniform(0.5, 1.0) * wait * self.settings.silence_s)
                wait = min(2 * wait, _LAST_WAIT)

    def _make_join(self) -> dict[str, Any]:
        return {
            "t": "join",
            "host": list(self.host),
            "epoch": self.acceptor.epoch.number,
            "stopped": self._stopped,
            "left": time.monotonic() - self._left,
            "leaving": self.leaving,
            "port": self._port,
        }

    def _may_lead(self) -> bool:
        return not self.leaving and self.acceptor.epoch.find(self.settings.node, self.host.incarnation) is not None

    # -- following -----------------------------------------------------------------------------------------------------

    async def _follow(self, found: Found) -> None:
        """Serve a leader until it is gone."""
        channel, self._leader_address = found.channel, found.address
        if found.welcome["epoch"] is not None:
            self._learn(epoch_of(found.welcome["epoch"]))
        self._stopped = self.acceptor.epoch.number  # nothing runs here, and nothing was started
        sent: dict[int, float] = {}
        self._answer = channel.send
        tasks = [asyncio.create_task(self._beat(channel, sent)), asyncio.create_task(self._obey(channel, sent))]
        self._lease = time.monotonic() + LEASE * self.settings.silence_s
        try:
            while not any(task.done() for task in tasks):
                until = self._lease - time.monotonic()
                if until <= 0:
                    break
                await asyncio.wait(tasks, timeout=until, return_when=asyncio.FIRST_COMPLETED)
        finally:
            channel.close()
            self._answer, self._leader_address, self._left = None, None, time.monotonic()
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception) and not isinstance(result, ConnectionError):
                    self.log(f"a message of the leader was wrong: {type(result).__name__}: {result}")
            if self._running and self._code is not None and not self._code.done():
                self.log(f"the leader of epoch {self._running} is lost: its ranks on this host are killed")
            await self._kill_ranks()

    async def _beat(self, channel: Channel, sent: dict[int, float]) -> None:
        number = 0
        while True:
            self._now.clear()
            number += 1
            sent[number] = time.monotonic()
            channel.send(self._make_beat(number))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BEAT * self.settings.silence_s):
                    await self._now.wait()

    def _make_beat(self, number: int) -> dict[str, Any]:
        return {
            "t": "beat",
            "n": number,
            "stopped": self._stopped,
            "ended": self._ended,
            "leaving": self.leaving,
            "port": self._port,
        }

    async def _obey(self, channel: Channel, sent: dict[int, float]) -> None:
        while True:
            message = await channel.receive()
            if message["t"] == "ack":
                begun = sent.pop(message["n"])
                for number in [n for n in sent if n < message["n"]]:
                    del sent[number]
                self._lease = max(self._lease, begun + LEASE * self.settings.silence_s)
                if self._running and message["epoch"] == self._running:
                    self._extend(begun + LEASE * self.settings.silence_s)
            else:
                self._do(message, channel.send)

    def _do(self, message: dict[str, Any], answer: Callable[[dict[str, Any]], None]) -> None:
        """Process an order of the leader, on another host or on this one."""
        kind = message["t"]
        if kind == "prepare":
            ballot = (message["ballot"][0], message["ballot"][1])
            is_promised = not self._running and self.acceptor.promise(message["number"], ballot)
            vote = self.acceptor.accepted
            plain = None if vote is None else [vote[0], vote[1].to_plain()]
            answer(self._vote("promise", message["ballot"], is_promised) | {"accepted": plain})
        elif kind == "accept":
            ballot, proposal = (message["ballot"][0], message["ballot"][1]), epoch_of(message["epoch"])
            is_accepted = not self._running and self.acceptor.accept(ballot, proposal)
            answer(self._vote("accepted", message["ballot"], is_accepted))
        elif kind == "commit":
            accepted = self.acceptor.find_accepted(message["nonce"])
            self._learn(accepted or epoch_of(message["epoch"]))
        elif kind == "start":
            self._start(message["epoch"])
        elif kind == "stop":
            self._stop(message["epoch"], message["save"])
        elif kind == "want":
            answer({"t": "epoch", "epoch": self.acceptor.epoch.to_plain()})
        elif kind == "end":
            self.finish(message["code"])

    def _vote(self, kind: str, ballot: list[int], is_given: bool) -> dict[str, Any]:
        return {"t": kind, "ballot": ballot, "ok": is_given, "promised": self.acceptor.promised}

    def _learn(self, epoch: Epoch) -> None:
        if epoch.number > self.acceptor.epoch.number:
            self.acceptor.commit(epoch)
            is_member = epoch.find(self.host.node, self.host.incarnation) is not None
            self._stopped = epoch.number - 1 if is_member else epoch.number

    def _start(self, number: int) -> None:
        epoch = self.acceptor.epoch
        host = epoch.find(self.host.node, self.host.incarnation)
        if epoch.number == number and host is not None and not self._running and self._stopped < number:
            self._granted = self._lease if self.leader is None else self.leader.own_lease()
            self._running, self._saving, self._ended = number, 0, 0
            self._failed = self._expired = False
            self._extend(self._granted)
            self.ranks.start(epoch, host)

    def _extend(self, until: float) -> None:
        self._expired |= time.monotonic() > self._granted  # this process stood still, and the watchers did not
        self._granted = until
        self.ranks.extend(until)

    def _stop(self, number: int, save: bool) -> None:
        if self._running and save:
            self._saving = self._running
            self.ranks.save()
        elif self._running:
            self._stopping = self._stopping or asyncio.create_task(self._stop_all(number))
        else:
            self._stopped = max(self._stopped, number)
            self._tell()

    async def _stop_all(self, number: int) -> None:
        try:
            await self._stop_ranks(self.settings.grace_s)
            self._stopped = max(self._stopped, number)
        finally:
            self._stopping = None
        self._tell()

    async def _stop_ranks(self, grace_s: float) -> None:
        running = self._running
        await self.ranks.stop(grace_s)
        if running and running == self._running:
            self._stopped = max(self._stopped, running)
            self._running, self._useful = 0, time.monotonic()
            self._port = self.ranks.free_port()

    async def _kill_ranks(self) -> None:
        await self._stop_ranks(0.0)
        if self._stopping is not None:
            await asyncio.gather(self._stopping, return_exceptions=True)

    def _tell(self) -> None:
        """Send the state of this host to the leader at once."""
        self._now.set()
        if self.leader is not None:
            self._beat_leader()

    # -- leading -------------------------------------------------------------------------------------------------------

    async def _lead(self) -> str | None:
        """Lead until another leader is better, or the job is over; return the address of the other one."""
        self._stopped = self.acceptor.epoch.number  # nothing runs here
        leader = self.leader = Leader(self.settings, self.acceptor, self.log)
        now = time.monotonic()
        me = Peer(self.host, self._do_own, None, now, now, self._left, self.acceptor.epoch.number, self._stopped)
        me.port = self._port
        leader.peers[self.host.node] = me
        self._answer = lambda message: leader.receive(me, message)
        self._leader_address = self.settings.address
        tasks = [asyncio.create_task(leader.run(self.host.node)), asyncio.create_task(self._keep(leader))]
        other = asyncio.create_task(self._finder.find_better(leader))
        try:
            await asyncio.wait([*tasks, other], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            return other.result() if other.done() else None
        finally:
            self.leader, self._answer, self._leader_address = None, None, None
            self._left = time.monotonic()
            for task in (*tasks, other):
                task.cancel()
            await asyncio.gather(*tasks, other, return_exceptions=True)
            channels_ = [peer.channel for peer in leader.peers.values() if peer.channel is not None]
            with contextlib.suppress(TimeoutError):  # what was sent, such as the end, is to arrive
                async with asyncio.timeout(LEASE * self.settings.silence_s):
                    await asyncio.gather(*(channel.flush() for channel in channels_))
            for channel in channels_:
                channel.close()
            if not leader.is_over:
                await self._kill_ranks()

    def _do_own(self, body: bytes) -> None:
        """Process an order of the leader on this host."""
        message = channels.decode_message(body)
        leader = self.leader
        if leader is not None and message["t"] not in ("ack", "welcome"):
            self._do(message, lambda answer: leader.receive(leader.peers[self.host.node], answer))

    def _beat_leader(self) -> None:
        leader = self.leader
        if leader is not None and self.host.node in leader.peers:
            leader.receive(leader.peers[self.host.node], self._make_beat(0))

    async def _keep(self, leader: Leader) -> None:
        """Extend the lease of the ranks on the leader's host while it hears the others."""
        while not leader.is_over:
            self._lease = leader.own_lease()
            if self._running and self._running == leader.epoch.number and leader.phase != "idle":
                self._extend(self._lease)
            others = any(not peer.leaving for peer in leader.peers.values())
            if self.leaving and leader.phase == "idle" and not self._running and others:
                return
            await asyncio.sleep(BEAT * self.settings.silence_s / 2)

    # -- the ranks -----------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Report the ends of ranks, and end this agent where it is of no more use."""
        s = self.settings
        while True:
            await asyncio.sleep(s.poll_s)
            now = time.monotonic()
            self.ranks.keep_standbys()
            if self._running and self._stopping is None:
                self._useful = now
                failed, is_running = self.ranks.poll()
                if failed is not None and not self._failed and self._answer is not None:
                    self._failed = True
                    expired = failed[1] == -signal.SIGKILL and (self._expired or time.monotonic() > self._granted)
                    facts = {"rank": failed[0], "code": failed[1], "expired": expired}
                    self._answer({"t": "failed", "epoch": self._running, **facts})
                if not is_running and self._saving == self._running and self._stopping is None:
                    await self._stop_ranks(0.0)
                    self._tell()
                elif not is_running and failed is None and self._ended != self._running:
                    self._ended = self._running
                    self._tell()
            if self.leaving and not self._running and self._stopping is None:
                number, begun = self._leave_from
                epoch = self.acceptor.epoch
                is_out = epoch.number > number and epoch.find(self.host.node, self.host.incarnation) is None
                if is_out or now > begun + 2 * s.silence_s:
                    self.finish(EXIT_RESTART, forget=False)
            elif not self._running and now > self._useful + s.timeout_s:
                self.log(f"no epoch with this host for {s.timeout_s:g} s")
                self.finish(EXIT_RESTART, forget=False)


def _make_peer(join: dict[str, Any], channel: Channel) -> Peer:
    now = time.monotonic()
    host = Host(*join["host"])
    peer = Peer(host, channel.send_body, channel, now, now, now - join["left"], join["epoch"], join["stopped"])
    peer.leaving, peer.port = join["leaving"], join["port"]
    return peer
