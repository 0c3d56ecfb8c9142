"""Elastic launcher: the agent of this host from the options of the command line, until the job is over.

    python -m sbpjax.distributed.launch --nnodes 2:4 --hosts host0,host1,host2,host3 --max_restarts 3 train.py

Signals: SIGTERM and SIGINT take this host out of the job, after its ranks saved; a second one ends them at once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
import ssl

from sbpjax._core.serialization import signing
from sbpjax.errors import DistributedError

from . import channel as channels
from .agent import Agent
from .host_ranks import HostRanks
from .leader import EXIT_RESTART
from .settings import Settings

_NODE_VARIABLES = ("SLURM_NODEID", "JOB_COMPLETION_INDEX")  # of Slurm's tasks, and of Kubernetes' indexed jobs


def run(options: argparse.Namespace) -> int:
    """Run the agent of this host, and return its exit code.

    Args:
        options: of `launch.parser`, with ``min_hosts`` and ``max_hosts`` set.

    Raises:
        DistributedError: the options do not say which host this is, or a file of TLS cannot be used.
        OSError: the agent's port is in use, or a file cannot be read.
    """
    if options.secret_file is not None:
        os.environ.pop(signing.SECRET, None)
        os.environ[signing.SECRET_FILE] = os.path.abspath(options.secret_file)
    key = signing.derive_key(signing.job_key(), "elastic")
    settings = make_settings(options, key)
    ranks = HostRanks(options, key, settings.address)
    agent = Agent(settings, ranks, ranks.log)
    code = EXIT_RESTART
    try:
        code = asyncio.run(_run_agent(agent))
    finally:
        ranks.close(is_over=code != EXIT_RESTART)
    return code


async def _run_agent(agent: Agent) -> int:
    def receive(number: int) -> None:
        if agent.leaving:
            agent.finish(128 + number, forget=False)
        agent.leave()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, receive, number)
    return await agent.run()


def make_settings(options: argparse.Namespace, key: bytes) -> Settings:
    """Return the agent's settings of the options; errors as of `run`."""
    seeds = _seeds(options)
    node = _node(options, seeds)
    address = seeds.get(node) or channels.join_address(_local_address(options, seeds), options.agent_port)
    host, _ = channels.split_address(address)
    state_path = None
    if options.state_dir is not None:
        name = f"{signing.derive_key(key, 'state').hex()[:16]}_node_{node}.json"
        state_path = str(signing.private_folder(options.state_dir) / name)
    return Settings(
        node=node,
        address=address,
        bind=_bind_address(host),
        seeds=seeds,
        key=key,
        ranks=options.nproc_per_node,
        min_hosts=options.min_hosts,
        max_hosts=options.max_hosts,
        max_restarts=options.max_restarts,
        silence_s=options.host_timeout,
        join_wait_s=options.join_wait,
        timeout_s=600.0 if options.timeout is None else options.timeout,
        poll_s=options.monitor_interval,
        master_port=options.master_port or 0,
        state_path=state_path,
        tls=_tls(options),
    )


def _seeds(options: argparse.Namespace) -> dict[int, str]:
    """Return the addresses of the hosts of the list, by node; without a list that of the master."""
    names = [options.master_addr] if options.hosts is None else [name for name in options.hosts.split(",") if name]
    found = {}
    for node, name in enumerate(names):
        has_port = name.rpartition(":")[2].isdecimal() and (name.count(":") == 1 or name.startswith("["))
        found[node] = name if has_port else channels.join_address(name.strip("[]"), options.agent_port)
    return found


def _node(options: argparse.Namespace, seeds: dict[int, str]) -> int:
    """Return the index of this host: as given, of the scheduler, or of the address in the list that is this host's."""
    if options.node_rank is not None:
        return options.node_rank
    for name in _NODE_VARIABLES:
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    own = [node for node, address in seeds.items() if _is_own(channels.split_address(address)[0])]
    if len(own) == 1:
        return own[0]
    raise DistributedError(
        "launch --nnodes MIN:MAX",
        f"{len(own)} of the addresses {', '.join(seeds.values())} are of this host",
        "each host has an index of its own",
        "--node_rank 0 on the first host, 1 on the second, …",
    )


def _is_own(host: str) -> bool:
    """Return whether a name leads to this host: one of its addresses can be bound."""
    with contextlib.suppress(OSError):
        for family, kind, _, _, where in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as probe:
                probe.bind((where[0], 0))
                return True
    return False


def _local_address(options: argparse.Namespace, seeds: dict[int, str]) -> str:
    """Return the address of this host at which the others reach it: as given, else that of the way to the first."""
    if options.local_addr is not None:
        return options.local_addr
    host, port = channels.split_address(seeds[min(seeds)])
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(where)  # sends nothing
        return probe.getsockname()[0]


def _bind_address(host: str) -> str:
    """Return where to listen for peers that connect to ``host``: there, or at all addresses if it is a name."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return host
    return ""


def _tls(options: argparse.Namespace) -> tuple[ssl.SSLContext, ssl.SSLContext] | None:
    files = (options.tls_cert, options.tls_key, options.tls_ca)
    if files == (None, None, None):
        return None
    if None in files:
        rule = "mutual TLS needs a certificate, its key, and the authority that signs those of the other hosts"
        raise DistributedError("launch", f"a part of {files}", rule, "--tls_cert FILE --tls_key FILE --tls_ca FILE")
    try:
        return channels.tls_contexts(*files)
    except (OSError, ssl.SSLError) as error:
        rule = "the three files are PEM files, and the key is that of the certificate"
        raise DistributedError("launch --tls_cert", f"{files}: {error}", rule, "look at the files") from None
