"""Ranks of a host in the epochs of a job: processes with the epoch's addresses, sizes and secret in their environment.

    MASTER_ADDR, MASTER_PORT      rank 0 of this epoch
    WORLD_SIZE, RANK, …           of this epoch
    SBPJAX_JOB_EPOCH              its number
    SBPJAX_JOB_SECRET             made of the job's secret and the epoch's nonce: ranks of other epochs are refused
    RESTART_COUNT                 the number of starts before

The ranks hold a lease, a file with the time until which they may run (`_core.runtime.parent_death`): if the agent stops
extending it because it lost its leader, or because it is stopped itself, their watchers kill them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import tempfile
import time

from sbpjax._core.runtime import parent_death
from sbpjax._core.serialization import signing
from sbpjax.distributed.rank_processes import Rank, RankProcesses, is_stopped, kill

from . import folder_transfer
from .channel import split_address
from .epochs import Epoch, Host

_POLL_S = 0.02
_WAITING = 1e10  # a time of `time.monotonic` that does not come


class HostRanks(RankProcesses):
    """The ranks of this host.

    Args:
        options: the options of the launcher.
        key: of the job.
        address: of this host's agent, which no other job on this host has.
    """

    def __init__(self, options, key: bytes, address: str) -> None:
        super().__init__(options)
        self._key = key
        # The same name after a restart of the launcher.
        name = signing.derive_key(key, "snapshots", address).hex()[:16]
        self.snapshots = os.path.join(os.path.dirname(self.snapshots), name)
        self._folder = tempfile.mkdtemp(prefix="sbpjax-ranks-")
        self._lease = self._make_lease(0.0)
        self._until = 0.0
        self._standby_tie, self._standby_lease = None, ""
        self._failed: Rank | None = None

    def _make_lease(self, until: float) -> str:
        handle, path = tempfile.mkstemp(prefix="lease", dir=self._folder)
        os.close(handle)
        parent_death.extend_lease(path, until)
        return path

    def _make_standby_tie(self) -> parent_death.ProcessTie:
        """Return the tie of standbys, which outlive the ranks of an epoch, and need no lease before they are ranks."""
        self._standby_lease = self._make_lease(_WAITING)
        self._standby_tie = parent_death.ProcessTie(self._standby_lease)
        return self._standby_tie

    def start(self, epoch: Epoch, host: Host) -> None:
        """Start the ranks of an epoch."""
        if self._standby_tie is not None:
            os.unlink(self._lease)
            self._tie, self._lease, self._standby_tie = self._standby_tie, self._standby_lease, None
            self.extend(self._until)  # before any of them is a rank
        else:
            self.make_tie(self._lease)
        self.ranks, self._failed, self.world_size = [], None, epoch.world_size
        address, port = split_address(epoch.master)
        env = {
            **os.environ,
            "MASTER_ADDR": address,
            "MASTER_PORT": str(port),
            "WORLD_SIZE": str(epoch.world_size),
            "NODE_SIZE": str(len(epoch.hosts)),
            "RESTART_COUNT": str(epoch.number - 1),
            "SBPJAX_JOB_EPOCH": str(epoch.number),
            "SBPJAX_JOB_SECRET": signing.derive_key(self._key, "epoch", str(epoch.number), epoch.nonce).hex(),
        }
        env.pop("SBPJAX_JOB_SECRET_FILE", None)
        if self.options.tls_cert is not None:
            files = (self.options.tls_cert, self.options.tls_key, self.options.tls_ca)
            env[folder_transfer.TLS] = os.pathsep.join(map(os.path.abspath, files))
        first = epoch.first_rank(host.node)
        for local in range(host.ranks):
            self.start_rank(first + local, local, env)

    def extend(self, until: float) -> None:
        """Let the ranks run until a time of `time.monotonic`."""
        self._until = until
        parent_death.extend_lease(self._lease, until)

    def poll(self) -> tuple[tuple[int, int] | None, bool]:
        """Return ``(rank, code)`` of the first rank that failed, None without one, and whether some still run."""
        for rank in self.ranks:
            if rank.process.poll() not in (None, 0) and self._failed is None:
                self._failed = rank
                kill(rank.process, signal.SIGKILL)  # its children hold its output open
        failed = None if self._failed is None else (self._failed.rank, self._failed.process.returncode)
        return failed, any(rank.process.poll() is None for rank in self.ranks)

    def save(self) -> None:
        """Send SIGTERM, on which the trainer saves and exits with 75."""
        self.send(signal.SIGTERM)

    async def stop(self, grace_s: float) -> None:
        """End the ranks and their children, by SIGTERM and after some time by SIGKILL, and print how one failed."""
        ranks = self.ranks
        if not ranks:
            return
        if grace_s:
            self.send(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while any(r.process.poll() is None and not is_stopped(r.process) for r in ranks):
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(_POLL_S)
        for rank in ranks:
            kill(rank.process, signal.SIGKILL)
        while any(rank.process.poll() is None for rank in ranks):
            await asyncio.sleep(_POLL_S)
        if self.ranks is not ranks:  # another call was first
            return
        self.ranks = []
        self._tie.close()
        failed = self._failed
        if failed is not None and failed.process.returncode not in (-signal.SIGTERM, 75):
            await asyncio.to_thread(self.report, failed)

    def free_port(self) -> int:
        """Return a free port of this host."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind(("", 0))
            return probe.getsockname()[1]

    def close(self, *, is_over: bool = True) -> None:
        """End the standbys, and remove the leases, and the snapshots of a job that is over."""
        self.end_standbys()
        if self._standby_tie is not None:
            self._standby_tie.close()
        for folder in (self._folder, *([self.snapshots] if is_over else ())):
            shutil.rmtree(folder, ignore_errors=True)
