"""Settings of an agent, equal on all hosts except for values of the host itself."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from .epochs import Epoch, Host

LEASE = 0.4  # of the silence: how long ranks run after an acknowledged beat, and how long a host may be silent
OWN_FENCE = 0.6  # of the silence: after it the ranks of a lost host are over, if their leader is still the same
BEAT = 0.1  # of the silence: between two beats


@dataclass(frozen=True)
class Settings:
    """Settings of an agent.

    Attributes:
        node: index of this host.
        address: ``host:port`` at which other agents reach this one.
        bind: the address to listen at; empty for all.
        seeds: the addresses of the hosts that vote on the first epoch, by node.
        key: of the job.
        ranks: the number of ranks of this host.
        min_hosts: with fewer the job waits.
        max_hosts: more hosts wait as spares.
        max_restarts: how many failures of ranks are allowed.
        silence_s: after it a host counts as lost.
        join_wait_s: how long the first epoch waits for more than the fewest hosts, and how long a host has to be there
            before the job grows by it.
        save_s: how long ranks may take to save when the job changes its hosts.
        grace_s: between SIGTERM and SIGKILL to the ranks of an epoch that failed. Most of them wait in a collective
            that never ends, so a longer time only delays the restart.
        timeout_s: how long a host waits for an epoch that it takes part in.
        poll_s: between two looks at the ranks.
        master_port: of rank 0; 0 takes a free one.
        state_path: the file of this host's votes; None keeps them in memory.
        tls: settings of accepting and of connecting agents; None for no TLS.
    """

    node: int
    address: str
    seeds: dict[int, str]
    key: bytes = field(repr=False)
    bind: str = ""
    ranks: int = 1
    min_hosts: int = 1
    max_hosts: int = 1
    max_restarts: int = 0
    silence_s: float = 10.0
    join_wait_s: float = 5.0
    save_s: float = 600.0
    grace_s: float = 0.25
    timeout_s: float = 600.0
    poll_s: float = 0.1
    master_port: int = 0
    state_path: str | None = None
    tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None

    def first_epoch(self) -> Epoch:
        """Return epoch 0: the hosts that vote on the first one that runs."""
        return Epoch(0, tuple(Host(node, "", address) for node, address in sorted(self.seeds.items())))
