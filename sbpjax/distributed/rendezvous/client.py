"""Rendezvous before JAX connects the processes: checks that all are present and compatible.

`jax.distributed.initialize` ends the whole process with a stack trace of C++ when one of the others is missing. So rank
0 listens on the coordinator's port first, and every rank sends its rank, host and versions. When all are present rank 0
answers every one of them with the list of hosts; after the timeout, or when two ranks are incompatible, with an error
that all of them raise: ``ranks [2] of 4 did not come within 60 s``. Then the port is free again for JAX's own
coordinator. No tensor data is sent here.

Only holders of the job's secret take part (`messages`): other connections are dropped and logged, without effect.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from sbpjax._core.serialization import signing
from sbpjax.errors import (
    AgreementError,
    EncodingError,
    ForeignMessageError,
    LostRankError,
    SignatureError,
    page,
)

from . import messages, server

_RETRY_S = 0.1
_ANSWER_S = 5.0  # an answer may come this much after the timeout
_REFUSED_S = 10.0  # time that another job may hold the port; after it, this rank's secret is wrong


@dataclass(frozen=True)
class RendezvousResult:
    """Result of a rendezvous.

    Attributes:
        hosts: the machine of each rank.
        key: signs the messages between the ranks of this run, and of no other.
    """

    hosts: list[str]
    key: bytes = field(repr=False)  # not for logs


def rendezvous(address: str, rank: int, size: int, timeout_s: float, key: bytes) -> RendezvousResult:
    """Wait until all processes are there, and return the host of each.

    Args:
        address: ``host:port`` of rank 0.
        rank: this process.
        size: the number of processes.
        timeout_s: how long to wait.
        key: the job's, see `_core.serialization.signing.job_key`.

    Raises:
        LostRankError: ranks did not arrive, or rank 0 does not answer.
        AgreementError: two processes have the same rank, or other versions or sizes.
        ForeignMessageError: rank 0 has another secret.
        DistributedError: rank 0 cannot use the port.
    """
    deadline = time.monotonic() + timeout_s
    host, port = split(address)
    mine = {"rank": rank, "size": size, "host": messages.host(), "versions": messages.versions()}
    mine["nonce"] = secrets.token_bytes(messages.NONCE_BYTES)
    operation = f"env.init(): process {rank} of {size} at {address}"
    if rank == 0:
        answer = server.Server(mine, key, operation).serve(host, port, deadline, timeout_s)
    else:
        answer = _report(host, port, mine, key, deadline, timeout_s, operation)
    if "hosts" not in answer:
        kind = LostRankError if answer["kind"] == "lost" else AgreementError
        raise kind(operation, answer["seen"], answer["rule"], answer["fix"])
    return RendezvousResult(
        [answer["hosts"][n] for n in answer["host_of"]], signing.derive_key(key, "run", answer["run"].hex())
    )


def split(address: str) -> tuple[str, int]:
    """Return the host and the port of ``host:port`` or ``[address]:port``."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _report(host: str, port: int, mine: dict, key: bytes, deadline: float, timeout_s: float, operation: str) -> dict:
    """Send this rank's identity to rank 0 until it answers."""
    reason, refused, refused_since = "nothing answers there", "", None
    while (now := time.monotonic()) < deadline and (refused_since is None or now - refused_since < _REFUSED_S):
        since, refused_since = refused_since or now, None
        try:
            answer = _request_answer(host, port, mine, key, max(0.1, deadline - now))
            if answer is not None:
                return answer
            refused, refused_since = "rank 0 there is of another job: it does not take this rank's signature", since
        except SignatureError:
            refused, refused_since = "the process there lacks this job's secret", since
        except (ValueError, EncodingError):
            reason = "something else answers there"
        except OSError as error:
            reason = str(error) or type(error).__name__
        time.sleep(_RETRY_S)
    if refused:
        rule = "all ranks have the same secret: that of the launcher, of SBPJAX_JOB_SECRET(_FILE), or of one user"
        value = f'export {signing.SECRET}="$(openssl rand -hex 32)"'
        fix = f"{value} with one value on all machines; see {page('explanation/security.md')}"
        seen = refused if refused_since is not None else f"{refused}; then: {reason}"
        raise ForeignMessageError(operation, seen, rule, fix)
    raise LostRankError(
        operation,
        f"rank 0 did not answer within {timeout_s:g} s: {reason}",
        "rank 0 serves the others at the coordinator's address",
        "check that rank 0 runs, and that MASTER_ADDR and MASTER_PORT name its machine and port",
    )


def _request_answer(host: str, port: int, mine: dict, key: bytes, left_s: float) -> Any:
    """Return the answer of rank 0, None if it rejects this rank's signature."""
    with socket.create_connection((host, port), timeout=left_s) as connection:
        connection.settimeout(min(left_s, server.PATIENCE_S))
        try:
            hello = _receive(connection, len(messages.HELLO) + messages.NONCE_BYTES)
        except TimeoutError:
            raise EncodingError("no roll call: no answer there") from None
        if not hello.startswith(messages.HELLO):
            raise EncodingError("no roll call")
        connection.sendall(messages.sign_value(key, "rank", hello[len(messages.HELLO) :], mine))
        connection.settimeout(left_s + _ANSWER_S)
        length = int.from_bytes(_receive(connection, 4), "little")
        if length == 0:
            return None
        if length > messages.MAX_ANSWER_BYTES:
            raise EncodingError("no roll call")
        answer = messages.open_frame(key, "answer", mine["nonce"], _receive(connection, length))
    if type(answer) is not dict or not ("hosts" in answer or "seen" in answer):
        raise EncodingError("no answer of a roll call")
    return answer


def _receive(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = connection.recv(min(65536, count - len(data)))
        if not more:
            raise EncodingError("no roll call") if data else OSError("the connection was closed")
        data += more
    return bytes(data)


def free_port() -> int:
    """Return a port of this machine that nothing uses now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("", 0))
        return probe.getsockname()[1]


def from_environment() -> tuple[str, int, int, int] | None:
    """Return ``(address, size, rank, local rank)`` as launchers put it into the environment, None without one."""
    names = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
    if not all(os.environ.get(name) for name in names):
        return None
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    rank = int(os.environ["RANK"])
    return address, int(os.environ["WORLD_SIZE"]), rank, int(os.environ.get("LOCAL_RANK", rank))
