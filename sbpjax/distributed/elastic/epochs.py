"""Epochs of a job: the hosts that train together, and the vote by which they change.

    epoch 1   hosts 0 1 2 3      a switch fails: 0 1 | 2 3
    epoch 2   hosts 0 1          half of epoch 1 with its lowest host; 2 and 3 have no quorum, and wait
    epoch 3   hosts 0            host 1 dies
    epoch 4   hosts 0 1 2 3      all are back: the quorum is that of epoch 3, host 0

Each epoch is decided by a quorum of the hosts of the epoch before: a majority, or one half with the lowest host
(dynamic linear voting, Jajodia and Mutchler 1990). Two quorums share a host, and each host votes by the rules of Paxos
(Lamport 1998), so an epoch has one value at most, whoever leads meanwhile. Epoch 0 is the list of hosts that the user
gives, or the master alone; nothing runs in it.

A vote is kept in a file. A host that lost its file has another incarnation: it may join, and is no voter of earlier
epochs.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

Ballot = tuple[int, int]  # a counter, and the node of the leader that proposes
NO_BALLOT: Ballot = (0, -1)


class Host(NamedTuple):
    """A host of a job.

    Attributes:
        node: its index, by which hosts and their ranks are ordered.
        incarnation: a random text of its vote's file; empty in epoch 0, where any fits.
        address: ``host:port`` of its agent.
        ranks: the number of its ranks.
    """

    node: int
    incarnation: str
    address: str
    ranks: int = 1


@dataclass(frozen=True)
class Epoch:
    """Hosts that train together.

    Attributes:
        number: 0 before the first start.
        hosts: by their nodes.
        leader: the node that proposed it.
        nonce: a random text, from which the secret of its ranks is derived.
        failures: of ranks, in all epochs until here.
        master: ``host:port`` where rank 0 listens.
    """

    number: int
    hosts: tuple[Host, ...]
    leader: int = -1
    nonce: str = ""
    failures: int = 0
    master: str = ""

    def find(self, node: int, incarnation: str) -> Host | None:
        """Return the host of a node, None if it is none of this epoch or forgot its votes."""
        host = self._by_node.get(node)
        return host if host is not None and host.incarnation in ("", incarnation) else None

    @functools.cached_property
    def _by_node(self) -> dict[int, Host]:
        return {host.node: host for host in self.hosts}

    def has_quorum(self, present: Iterable[Host]) -> bool:
        """Return whether some hosts may decide the next epoch.

        Example:
            >>> hosts = tuple(Host(n, "a", "") for n in range(4))
            >>> [Epoch(1, hosts).has_quorum(some) for some in (hosts[:2], hosts[2:], hosts[1:])]
            [True, False, True]
        """
        nodes = {host.node for host in present if self.find(host.node, host.incarnation)}
        total, lowest = len(self.hosts), min((h.node for h in self.hosts), default=-1)
        return 2 * len(nodes) > total or (2 * len(nodes) == total and lowest in nodes)

    def first_rank(self, node: int) -> int:
        """Return the first rank on a host."""
        return sum(host.ranks for host in self.hosts if host.node < node)

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return sum(host.ranks for host in self.hosts)

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def epoch_of(plain: dict[str, Any]) -> Epoch:
    """Return the epoch of plain values.

    Raises:
        TypeError, ValueError, KeyError: they are none.
    """
    return Epoch(**{**plain, "hosts": tuple(map(Host._make, plain["hosts"]))})


class Acceptor:
    """The votes of a host.

    Args:
        first: epoch 0.
        path: the file that keeps the votes over a restart of the agent; None keeps them in memory.

    Attributes:
        incarnation: a random text, kept with the votes.
        epoch: the latest epoch that is decided, as far as this host knows.
        promised: the highest ballot that this host has seen.
        accepted: the proposal for the next epoch that it voted for, with its ballot.
    """

    def __init__(self, first: Epoch, path: str | None = None) -> None:
        self.path = path
        self.incarnation = secrets.token_hex(4)
        self.epoch = first
        self.promised: Ballot = NO_BALLOT
        self.accepted: tuple[Ballot, Epoch] | None = None
        if path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._load(path)
            self._store()

    def promise(self, number: int, ballot: Ballot) -> bool:
        """Return whether this host takes no lower ballot for the epoch after ``number`` from now on."""
        if number != self.epoch.number or ballot < self.promised:
            return False
        self.promised = ballot
        self._store()
        return True

    def accept(self, ballot: Ballot, proposal: Epoch) -> bool:
        """Vote for the next epoch; return whether the vote counts."""
        if not self.promise(proposal.number - 1, ballot):
            return False
        self.accepted = (ballot, proposal)
        self._store()
        return True

    def find_accepted(self, nonce: str) -> Epoch | None:
        """Return the proposal that this host voted for, if it has this nonce."""
        return self.accepted[1] if self.accepted is not None and self.accepted[1].nonce == nonce else None

    def commit(self, epoch: Epoch) -> None:
        """Learn that an epoch is decided."""
        if epoch.number > self.epoch.number:
            self.epoch, self.accepted = epoch, None
            self._store()

    def forget(self) -> None:
        """Remove the file: the job is over."""
        if self.path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            self.path = None

    def _load(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        self.incarnation, self.epoch = kept["incarnation"], epoch_of(kept["epoch"])
        self.promised = (kept["promised"][0], kept["promised"][1])
        if kept["accepted"]:
            (counter, node), proposal = kept["accepted"]
            self.accepted = (counter, node), epoch_of(proposal)

    def _store(self) -> None:
        """Write the file, complete or not at all, before the vote is told to anybody."""
        if self.path is None:
            return
        accepted = None if self.accepted is None else [self.accepted[0], self.accepted[1].to_plain()]
        kept = {"incarnation": self.incarnation, "epoch": self.epoch.to_plain(), "promised": self.promised}
        fresh = f"{self.path}.{os.getpid()}"
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump({**kept, "accepted": accepted}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self.path)


def next_epoch(before: Epoch, hosts: Iterable[Host], leader: int, master: str, failures: int) -> Epoch:
    """Return a proposal for the epoch after ``before``."""
    ordered = tuple(sorted(hosts, key=lambda host: host.node))
    fresh = replace(before, number=before.number + 1, hosts=ordered, leader=leader, nonce=secrets.token_hex(16))
    return replace(fresh, master=master, failures=failures)
