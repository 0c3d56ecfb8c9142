"""Rendezvous server on rank 0: collects the ranks, drops strangers, answers all at once.

A stranger may connect and send nothing, too much, or single bits: every connection has a few seconds for one small
message, only so many are open at once, and one that is no rank of this job is closed and counted. None of it ends rank
0 or blocks a rank.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import itertools
import logging
import secrets
import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from sbpjax._core.runtime.ranks_text import ranks_text
from sbpjax._core.serialization import encoding
from sbpjax.errors import DistributedError, EncodingError

from . import messages

log = logging.getLogger("sbpjax.distributed.rendezvous")

PATIENCE_S = 5.0  # time for a connection to identify itself
_MOST_STRANGERS = 128  # unidentified connections
_LOGGED = 5


@dataclass(eq=False)
class _Caller:
    """Connection that has not yet identified itself."""

    connection: socket.socket
    where: str
    until: float
    nonce: bytes = field(default_factory=lambda: secrets.token_bytes(messages.NONCE_BYTES))
    data: bytearray = field(default_factory=bytearray)


class Server:
    """Rendezvous server of rank 0.

    Args:
        mine: the message of rank 0 about itself.
        key: the job's key.
        operation: the operation, for errors.
    """

    def __init__(self, mine: dict[str, Any], key: bytes, operation: str) -> None:
        self.mine = mine
        self.key = key
        self.operation = operation
        self.present: dict[int, dict] = {0: mine}
        self.dropped: list[str] = []
        self._heard: list[tuple[socket.socket, dict]] = []  # ranks of this job, to be answered
        self._callers: dict[_Caller, None] = {}  # in the order in which they came
        self._selector = selectors.DefaultSelector()

    def serve(self, host: str, port: int, deadline: float, timeout_s: float) -> dict:
        """Wait for all ranks, answer them, and return the answer.

        Raises:
            DistributedError: the port cannot be used.
        """
        server = self._listen(host, port)
        with contextlib.closing(server), self._selector:
            self._selector.register(server, selectors.EVENT_READ, None)
            answer = None
            while len(self.present) < self.mine["size"] and answer is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    answer = self._missing_ranks_answer(timeout_s)
                    break
                for key, _ in self._selector.select(min(left, 1.0)):
                    answer = answer or (self._accept(server) if key.data is None else self._receive_from(key.data))
                self._drop_the_silent()
            if answer is None:
                hosts = [self.present[r]["host"] for r in range(self.mine["size"])]
                # A host once, and its number for each of its ranks: the answer goes to as many ranks as it is long.
                number = {host: n for n, host in enumerate(dict.fromkeys(hosts))}
                answer = {"hosts": list(number), "host_of": [number[h] for h in hosts], "run": self.mine["nonce"]}
            self._answer(answer)
        return answer

    def _listen(self, host: str, port: int) -> socket.socket:
        bind = bind_address(host)
        server = socket.socket(socket.AF_INET6 if ":" in bind else socket.AF_INET, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((bind, port))
        except OSError as error:
            server.close()
            raise DistributedError(
                self.operation,
                f"{error}",
                f"rank 0 serves the others on port {port}",
                "choose another port, or let the launcher choose a free one: --port 0",
            ) from None
        server.listen(max(128, self.mine["size"]))
        server.setblocking(False)
        return server

    # -- connections ---------------------------------------------------------------------------------------------------

    def _accept(self, server: socket.socket) -> None:
        try:
            connection, peer = server.accept()
        except OSError:  # disconnected, or no descriptors left: silent connections are dropped after a while
            return
        connection.setblocking(False)
        caller = _Caller(connection, str(peer[0]), time.monotonic() + PATIENCE_S)
        self._callers[caller] = None
        self._selector.register(connection, selectors.EVENT_READ, caller)
        with contextlib.suppress(OSError):
            connection.send(messages.HELLO + caller.nonce)
        if len(self._callers) > _MOST_STRANGERS + self.mine["size"]:
            self._drop(next(iter(self._callers)), "too many silent connections")

    def _receive_from(self, caller: _Caller) -> dict | None:
        """Process received bytes; return the error for all if a rank of this job does not fit."""
        if caller not in self._callers:  # dropped since
            return None
        try:
            more = caller.connection.recv(messages.MAX_MESSAGE_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            return self._drop(caller, f"{error}")
        caller.data += more
        try:
            body = messages.unframe_bytes(caller.data, messages.MAX_MESSAGE_BYTES)
        except EncodingError as error:
            return self._drop(caller, str(error))
        if body is None:
            return None if more else self._drop(caller, "it ended in the middle")
        message, reason = messages.validate_message(self.key, caller.nonce, body)
        if message is None:
            with contextlib.suppress(OSError):
                caller.connection.send(messages.frame_bytes(b""))
            return self._drop(caller, reason)
        self._selector.unregister(caller.connection)
        del self._callers[caller]
        self._heard.append((caller.connection, message))
        conflict = self._conflict(message)
        if conflict is None:
            self.present[message["rank"]] = message
        return conflict

    def _drop(self, caller: _Caller, reason: str) -> None:
        del self._callers[caller]
        self._selector.unregister(caller.connection)
        caller.connection.close()
        self.dropped.append(f"{caller.where}: {reason}")
        if len(self.dropped) <= _LOGGED:
            log.warning("roll call: a connection from %s was dropped: %s", caller.where, reason)

    def _drop_the_silent(self) -> None:
        now = time.monotonic()
        for caller in list(itertools.takewhile(lambda c: c.until < now, self._callers)):
            self._drop(caller, f"it sent no whole message within {PATIENCE_S:g} s")

    def _answer(self, answer: dict) -> None:
        encoded = encoding.encode(answer)
        for connection, message in self._heard:
            with contextlib.closing(connection), contextlib.suppress(OSError):
                connection.settimeout(2.0)
                connection.sendall(messages.sign_bytes(self.key, "answer", message["nonce"], encoded))
        for caller in self._callers:
            caller.connection.close()

    # -- answers -------------------------------------------------------------------------------------------------------

    def _missing_ranks_answer(self, timeout_s: float) -> dict:
        size = self.mine["size"]
        ranks = sorted(set(range(size)) - set(self.present))
        here = f"here are {ranks_text(sorted(self.present))}"
        if self.dropped:
            here += f"; {len(self.dropped)} connections were dropped, the last from {self.dropped[-1]}"
        return {
            "kind": "lost",
            "seen": f"ranks {ranks_text(ranks)} of {size} did not come within {timeout_s:g} s; {here}",
            "rule": "all processes start, with the same number of processes, the same coordinator and the same secret",
            "fix": "look at the output of the ranks that are missing, or give them longer: env.init(timeout=seconds)",
        }

    def _conflict(self, message: dict) -> dict | None:
        """Return the error, if a rank does not fit to those present."""
        rank, size = message["rank"], self.mine["size"]
        here = f"rank {rank} on {message['host'].split('/')[0]}"
        if message["size"] != size or not 0 < rank < size:
            return {
                "kind": "agree",
                "seen": f"{here} was started for {message['size']} processes, rank 0 for {size}",
                "rule": "all processes are started for the same number of processes",
                "fix": "give every process the same WORLD_SIZE (or num_processes), and a rank of its own below it",
            }
        if rank in self.present and self.present[rank]["nonce"] != message["nonce"]:  # else it reconnected
            return {
                "kind": "agree",
                "seen": f"two processes claim to be rank {rank}",
                "rule": f"each of the {size} processes has a rank of its own",
                "fix": "give every process its own RANK (or process_id)",
            }
        for name, version in self.mine["versions"].items():
            if message["versions"].get(name) != version:
                return {
                    "kind": "agree",
                    "seen": f"{name} {version} on rank 0, {message['versions'].get(name)} on {here}",
                    "rule": "all processes run the same versions: they must compile the same program",
                    "fix": f"install the same version of {name} everywhere",
                }
        return None


def bind_address(host: str) -> str:
    """Return the address to listen on for clients of ``host``; empty for all addresses of this machine.

    All are used where the name does not identify one: it resolves to another machine's address (a service in front of
    this one), or to this machine's loopback, as in Debian's hosts file, where other machines would find nothing.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return ""
    address = next((a for family, *_, (a, *_) in found if family == socket.AF_INET), found[0][4][0])
    named = host != address and not host.startswith("localhost")
    reason = "its name leads to the loopback address" if named and ipaddress.ip_address(address).is_loopback else None
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            reason = "that is no address of this machine" if error.errno == errno.EADDRNOTAVAIL else str(error)
    if reason is not None:
        log.info("rank 0 listens on all addresses, not on %s alone: %s", host, reason)
        return ""
    return str(address)
