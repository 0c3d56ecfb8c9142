"""The roll call: before JAX connects the processes, find out whether all of them are there and fit together.

`jax.distributed.initialize` ends the whole process with a stack trace of C++ when one of the others is missing. So
rank 0 listens on the coordinator's port first, and every rank says who it is, where it runs and with which versions.
When all are there rank 0 answers every one of them with the list of hosts; after the timeout, or when two ranks do
not fit together, with an error that all of them raise: ``ranks [2] of 4 did not come within 60 s``. Then the port is
free again and JAX's own coordinator takes it. Nothing of a tensor travels here.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import selectors
import socket
import time
from typing import Any

from sbpjax.errors import AgreementError, DistributedError, LostRankError, message

_WORD = "sbpjax-roll-call-1"
_RETRY_S = 0.1
_ANSWER_S = 5.0  # an answer may come this much behind the timeout
Versions = dict[str, str]


def versions() -> Versions:
    """Return what must be equal on all processes."""
    import jax
    import jaxlib
    import numpy

    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": numpy.__version__,
    }


def roll_call(address: str, rank: int, size: int, timeout_s: float) -> list[str]:
    """Wait until all processes are there, and return the host of each.

    Args:
        address: ``host:port`` of rank 0.
        rank: this process.
        size: the number of processes.
        timeout_s: how long to wait.

    Raises:
        LostRankError: ranks did not come, or rank 0 does not answer.
        AgreementError: two processes have the same rank, or other versions or sizes.
        DistributedError: rank 0 cannot use the port.
    """
    deadline = time.monotonic() + timeout_s
    host, _, port = address.rpartition(":")
    mine = {"word": _WORD, "rank": rank, "size": size, "host": _host(), "versions": versions()}
    asked = f"env.init(): process {rank} of {size} at {address}"
    if rank == 0:
        answer = _listen(host, int(port), mine, deadline, timeout_s, asked)
    else:
        answer = _report(host, int(port), mine, deadline, timeout_s, asked)
    if "hosts" not in answer:
        kind = LostRankError if answer["kind"] == "lost" else AgreementError
        raise kind(message(asked, answer["seen"], answer["rule"], answer["fix"]))
    return answer["hosts"]


def _host() -> str:
    """Return a name of this machine that no other machine of the run has."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{socket.gethostname()}/{file.read().strip()}"
    except OSError:
        return socket.gethostname()


# --------------------------------------------------------------------------------------------------------- rank 0


def _listen(host: str, port: int, mine: dict, deadline: float, timeout_s: float, asked: str) -> dict:
    local = host in ("localhost", "127.0.0.1")
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind(("127.0.0.1" if local else "", port))
    except OSError as error:
        server.close()
        raise DistributedError(
            message(
                asked,
                f"{error}",
                f"rank 0 serves the others on port {port}",
                "choose another port, or let the launcher choose a free one: --port 0",
            )
        ) from None
    server.listen(max(128, mine["size"]))
    server.setblocking(False)
    with contextlib.closing(server), selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ, None)
        present: dict[int, Any] = {0: (mine, None)}
        connections: list[socket.socket] = []
        answer = None
        while len(present) < mine["size"] and answer is None:
            left = deadline - time.monotonic()
            if left <= 0:
                answer = _missing(mine, present, timeout_s)
                break
            for key, _ in selector.select(left):
                if key.data is None:
                    with contextlib.suppress(OSError):
                        connection, _ = server.accept()
                        connection.setblocking(False)
                        connections.append(connection)
                        selector.register(connection, selectors.EVENT_READ, bytearray())
                    continue
                said = _read(selector, key)
                if said is not None:
                    answer = _conflict(mine, said, present)
                    if answer is None:
                        present[said["rank"]] = (said, key.fileobj)
        if answer is None:
            answer = {"hosts": [present[r][0]["host"] for r in range(mine["size"])]}
        text = (json.dumps(answer) + "\n").encode()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.settimeout(2.0)
                connection.sendall(text)
            connection.close()
    return answer


def _read(selector, key) -> dict | None:
    """Return what a process said once its line is complete."""
    try:
        data = key.fileobj.recv(65536)
    except OSError:
        data = b""
    key.data.extend(data)
    if not data or b"\n" in key.data or len(key.data) > 65536:
        selector.unregister(key.fileobj)
    try:
        said = json.loads(bytes(key.data).split(b"\n")[0]) if b"\n" in key.data else None
    except ValueError:
        return None
    return said if isinstance(said, dict) and said.get("word") == _WORD else None


def _missing(mine: dict, present: dict, timeout_s: float) -> dict:
    ranks = sorted(set(range(mine["size"])) - set(present))
    return {
        "kind": "lost",
        "seen": f"ranks {ranks} of {mine['size']} did not come within {timeout_s:g} s; here are {sorted(present)}",
        "rule": "all processes start, with the same number of processes and the same coordinator",
        "fix": "look at the output of the ranks that are missing, or give them longer: env.init(timeout=seconds)",
    }


def _conflict(mine: dict, said: dict, present: dict) -> dict | None:
    """Return the error, if a process that reports does not fit to those present."""
    rank = said["rank"]
    here = f"rank {rank} on {said['host'].split('/')[0]}"
    if said["size"] != mine["size"] or not 0 < rank < said["size"]:
        return {
            "kind": "agree",
            "seen": f"{here} was started for {said['size']} processes, rank 0 for {mine['size']}",
            "rule": "all processes are started for the same number of processes",
            "fix": "give every process the same WORLD_SIZE (or num_processes), and a rank of its own below it",
        }
    if rank in present:
        return {
            "kind": "agree",
            "seen": f"two processes say that they are rank {rank}",
            "rule": f"each of the {mine['size']} processes has a rank of its own",
            "fix": "give every process its own RANK (or process_id)",
        }
    for name, version in mine["versions"].items():
        if said["versions"].get(name) != version:
            return {
                "kind": "agree",
                "seen": f"{name} {version} on rank 0, {said['versions'].get(name)} on {here}",
                "rule": "all processes run the same versions: they must compile the same program",
                "fix": f"install the same version of {name} everywhere",
            }
    return None


# --------------------------------------------------------------------------------------------------- other ranks


def _report(host: str, port: int, mine: dict, deadline: float, timeout_s: float, asked: str) -> dict:
    why = "nothing answers there"
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host, port), timeout=max(0.1, deadline - time.monotonic())) as connection:
                connection.sendall((json.dumps(mine) + "\n").encode())
                connection.settimeout(max(0.1, deadline - time.monotonic()) + _ANSWER_S)
                data = bytearray()
                while b"\n" not in data and (more := connection.recv(65536)):
                    data += more
            answer = json.loads(bytes(data).split(b"\n")[0])
            if isinstance(answer, dict) and ("hosts" in answer or "seen" in answer):
                return answer
            why = "something else answers there"
        except ValueError:
            why = "something else answers there"
        except OSError as error:
            why = str(error) or type(error).__name__
        time.sleep(_RETRY_S)
    raise LostRankError(
        message(
            asked,
            f"rank 0 did not answer within {timeout_s:g} s: {why}",
            "rank 0 serves the others at the coordinator's address",
            "check that rank 0 runs, and that MASTER_ADDR and MASTER_PORT name its machine and port",
        )
    )


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
