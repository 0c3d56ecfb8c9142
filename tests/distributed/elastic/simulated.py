"""Agents of one process, over real sockets, whose ranks are entries of a log."""

import asyncio
import contextlib
import contextvars
import os
import random
import socket
import tempfile
import time

from sbpjax.distributed.elastic import channel
from sbpjax.distributed.elastic.agent import Agent
from sbpjax.distributed.elastic.settings import Settings

KEY = b"k" * 32


class LoggedRanks:
    """Ranks that note when they ran: ``(host, epoch, begin, end)``; `fail` and `finish` end them."""

    def __init__(self, node, log):
        self.node, self.log = node, log
        self.epoch, self.failed, self.running, self.begun, self.until = None, None, False, 0.0, 0.0

    def start(self, epoch, host):
        self.epoch, self.failed, self.running, self.begun = epoch, None, True, time.monotonic()
        self.host = host

    def extend(self, until):
        self.until = until

    def keep_standbys(self):
        pass

    def poll(self):
        if self.running and time.monotonic() > self.until:  # as the watchers of real ranks
            self._end(self.until)
            self.failed = (self.epoch.first_rank(self.node), -9)
        return self.failed, self.running

    def save(self):
        if self.running:
            self._end()
            self.failed = (self.epoch.first_rank(self.node), 75)

    async def stop(self, grace_s):
        if self.running:
            self._end()

    def free_port(self):
        return 29500

    def fail(self, code):
        self._end()
        self.failed = (self.epoch.first_rank(self.node), code)

    def finish(self):
        self._end()

    def _end(self, at=None):
        self.running = False
        self.log.append((self.node, self.epoch.number, self.begun, at or time.monotonic()))


class Network:
    """Connections between the hosts of a job, which can be cut: bytes vanish, nobody hears of an end."""

    def __init__(self):
        self.parts, self.nodes, self.ends = [], {}, {}  # the node of an agent's port, of a connection's own port

    def separate(self, *parts):
        self.parts = parts

    def heal(self):
        self.parts = []

    def is_cut(self, one, other):
        return any(one in part and other not in part for part in self.parts)


NODE, NETWORK = contextvars.ContextVar("node", default=None), contextvars.ContextVar("network", default=None)
_connect, _send_body = channel.connect, channel.Channel.send_body


async def _connect_over(address, *given):
    network, node = NETWORK.get(), NODE.get()
    if network is None:
        return await _connect(address, *given)
    if network.is_cut(node, network.nodes[address]):
        await asyncio.sleep(given[1])
        raise TimeoutError
    made = await _connect(address, *given)
    network.ends[made._writer.get_extra_info("sockname")[1]] = node
    made.ends = (network, node, network.nodes[address])
    return made


def _send_over(self, body):
    if NETWORK.get() is None:
        return _send_body(self, body)
    if not hasattr(self, "ends"):
        network = NETWORK.get()
        self.ends = (network, NODE.get(), network.ends.get(self._writer.get_extra_info("peername")[1]))
    network, node, other = self.ends
    if not network.is_cut(node, other):
        _send_body(self, body)


channel.connect, channel.Channel.send_body = _connect_over, _send_over


class Job:
    """Agents of a job; `agents[n]` is that of host n, if it runs."""

    def __init__(self, hosts, silence_s=2.0, network=None, keeps_state=False, **options):
        self.network = network or Network()
        self.folder = tempfile.TemporaryDirectory() if keeps_state else None
        self.ports = free_ports(hosts)
        self.seeds = {node: f"127.0.0.1:{port}" for node, port in enumerate(self.ports)}
        self.network.nodes = {address: node for node, address in self.seeds.items()}
        self.options = {
            "min_hosts": 1,
            "max_hosts": hosts,
            "join_wait_s": 0.5,
            "silence_s": silence_s,
            "poll_s": 0.02,
        } | options
        self.agents, self.tasks, self.log, self.lines = {}, {}, [], []

    def start(self, *nodes, **options):
        for node in nodes:
            given = {"node": node, "address": self.seeds[node], "seeds": self.seeds, "key": KEY, "bind": "127.0.0.1"}
            if self.folder is not None:
                given["state_path"] = f"{self.folder.name}/{node}"
            settings = Settings(**{**given, **self.options, **options})
            agent = Agent(settings, LoggedRanks(node, self.log), lambda text, n=node: self.lines.append((n, text)))
            self.agents[node] = agent
            context = contextvars.copy_context()
            context.run(NODE.set, node)
            context.run(NETWORK.set, self.network)
            self.tasks[node] = asyncio.create_task(agent.run(), context=context)

    async def kill(self, node):
        """End an agent as SIGKILL would: its connections close, its ranks are killed by their watchers."""
        task, agent = self.tasks.pop(node), self.agents.pop(node)
        if agent.ranks.running:
            agent.ranks.finish()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def trains(self, nodes, limit_s=20.0, after=0):
        """Wait until exactly these hosts train in one epoch later than ``after``; return its number."""
        nodes, deadline = set(nodes), time.monotonic() + limit_s
        while time.monotonic() < deadline:
            running = {n: a.ranks.epoch.number for n, a in self.agents.items() if a.ranks.running}
            if set(running) == nodes and len(set(running.values())) == 1 and min(running.values()) > after:
                return min(running.values())
            await asyncio.sleep(0.01)
        raise AssertionError(f"{nodes} do not train: {running}\n" + "\n".join(map(str, self.lines[-40:])))

    async def codes(self, limit_s=20.0):
        found = await asyncio.wait_for(asyncio.gather(*self.tasks.values()), limit_s)
        return dict(zip(self.tasks, found, strict=True))

    async def end(self):
        for node in list(self.tasks):
            await self.kill(node)
        await asyncio.sleep(0.1)  # until the last connections are closed
        if self.folder is not None:
            self.folder.cleanup()


def free_ports(count):
    """Return ports below those that the kernel gives to connections, which come between the choice and the use."""
    found = []
    for port in random.Random(os.getpid() + time.monotonic_ns()).sample(range(10000, 32000), 22000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")


def overlaps(log):
    """Return pairs of runs of different epochs that were at the same time."""
    runs = sorted(log, key=lambda run: run[2])
    return [(a, b) for i, a in enumerate(runs) for b in runs[i + 1 :] if a[1] != b[1] and b[2] < a[3]]


def run(test, limit_s=60):
    """Run a coroutine to its end."""
    return asyncio.run(asyncio.wait_for(test, limit_s))
