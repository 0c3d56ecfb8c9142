"""Work of rank 0 in a job of many ranks, simulated in one process without devices: time, memory, messages, files.

    python -m benchmarks.ranks [ranks …]        # 512 1024 2048 4096

| row | what runs |
|---|---|
| rendezvous | rank 0's server and a client per rank, over sockets of this machine: CPU seconds of both sides |
| agreement | `exchange` of a digest, as every first run of a program does; messages through a store in memory |
| checkpoint | the part of a save that grows with ranks: checksums and completeness of every rank's two files |
| data order | `DistributedSampler` over 100 million samples, the share of one rank |

Memory is the growth of the process's peak; all rows are of one process, so that clients' memory is counted, too.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from sbpjax._core.runtime import processes
from sbpjax._core.runtime.gc_pause import pause_gc
from sbpjax.data.checkpoint import blocks, manifest
from sbpjax.distributed.rendezvous import client
from sbpjax.utils.data import DistributedSampler
from tests.runtime.test_many_ranks import Service

_KEY = b"k" * 32
_SAMPLES = 100_000_000


def measure(name: str, ranks: int, work: Callable[[], str]) -> None:
    """Print a row: wall and CPU seconds, growth of the peak memory, and what the work counts."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    text = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1e3
    print(f"| {name} | {ranks:,} | {wall:.1f} s | {cpu:.1f} s | {grown:,.0f} MB | {text} |", flush=True)


def rendezvous(ranks: int) -> str:
    """Let all ranks meet over sockets."""
    address = f"127.0.0.1:{client.free_port()}"
    found: list[Any] = [None] * ranks

    def run(rank: int) -> None:
        found[rank] = client.rendezvous(address, rank, ranks, 300.0, _KEY)

    threading.stack_size(256 * 1024)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threading.stack_size(0)
    assert all(len(f.hosts) == ranks for f in found)
    return f"{3 * (ranks - 1):,} messages"


class Member(processes.Processes):
    """A rank whose store is in memory.

    Args:
        rank: its number.
        size: of the job.
        service: the store's.
    """

    def __init__(self, rank: int, size: int, service: Service) -> None:
        state, found = (
            type("State", (), {"process_id": rank, "num_processes": size, "client": service}),
            processes._state,
        )
        processes._state = lambda: state
        try:
            super().__init__(key=_KEY)
            self.store  # noqa: B018
        finally:
            processes._state = found


def agreement(ranks: int) -> str:
    """Let all ranks exchange a digest, rank 0 last."""
    service = Service()
    members = [Member(rank, ranks, service) for rank in range(ranks)]
    for each in members[1:]:
        each.store.put(f"sbpjax/all/0/{each.rank}", ("train: its program", (123, ("a",)), None))
    members[0].exchange("train: its program", (123, ("a",)))
    for each in members[1:]:
        each._await_summary("train: its program", "sbpjax/all/0", tuple(range(ranks)), time.monotonic() + 60)
    return f"{service.calls:,} messages, {service.bytes / 1e6:.1f} MB"


def write_files(path: Path, ranks: int) -> None:
    """Write the files of a save in which every rank wrote 400 shards of 4 bytes."""
    (path / blocks.ARRAYS).mkdir()
    for rank in range(ranks):
        data, index = blocks.names(rank)
        (path / data).write_bytes(bytes(64 * 400))
        entries = [[n, [rank], [1], 64 * n, 64, 0] for n in range(400)]
        (path / index).write_text(json.dumps(entries))


def checkpoint(path: Path, ranks: int) -> str:
    """Write the checksums of a save, as rank 0 does, and read its index, as every rank does that restores it."""
    start = time.process_time()
    manifest.write(path)
    wrote = time.process_time() - start
    files = blocks.Files(path)
    with pause_gc():
        for rank in range(ranks):
            files.add(rank, json.loads((path / blocks.names(rank)[1]).read_text()))
        for number in range(400):
            files.count_elements(number, (ranks,), 4)
    return f"{2 * ranks:,} files; checksums {wrote:.1f} s"


def data_order(ranks: int) -> str:
    """Take the share of rank 0 of an order."""
    sampler = DistributedSampler(range(_SAMPLES), num_replicas=ranks, rank=0, seed=1)
    return f"{sum(1 for _ in sampler):,} of {_SAMPLES:,} samples"


def main() -> None:
    """Print the table."""
    print("| row | ranks | wall | CPU | memory | |\n|---|---|---|---|---|---|")
    for ranks in map(int, sys.argv[1:] or ["512", "1024", "2048", "4096"]):
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), ranks)  # every rank its own: not in the row
            works = (rendezvous, agreement, functools.partial(checkpoint, Path(folder)), data_order)
            for name, work in zip(("rendezvous", "agreement", "checkpoint", "data order"), works, strict=True):
                measure(name, ranks, functools.partial(work, ranks))


if __name__ == "__main__":
    main()
