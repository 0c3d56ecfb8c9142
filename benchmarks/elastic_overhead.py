"""What an elastic job adds to a step: snapshots in memory, their copies on the next host, and mutual TLS.

    NPROC=32 python -m benchmarks.elastic_overhead [--rounds 12] [--every 5]

Rounds of ``every`` steps of a GPT and snapshots alternate in one process; the figures are CPU time of all threads
(waiting for other processes does not count), and of a snapshot the main thread's part. Then the
state is sent between two ends in this process, with and without TLS by turns, as a host sends it to its neighbour
in every interval if the state is divided over two hosts. Beats of agents, one in a second, are counted in the same way.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("SBPJAX_CPU_DEVICES", "2")

import numpy as np

import sbpjax as flow
from sbpjax import models, optim
from sbpjax.distributed.elastic import channel, folder_transfer
from sbpjax.train import Hook, Snapshots, Trainer
from sbpjax.train.data import Numbered

CONFIG = models.gpt2.GPT2Config(vocab_size=512, n_positions=128, n_embd=256, n_layer=4, n_head=4)
BATCH, KEY = 16, b"k" * 32


class Tokens(Numbered):
    """Random tokens."""

    def sample(self, number):
        """Return inputs and labels."""
        drawn = np.random.default_rng(number).integers(0, CONFIG.vocab_size, CONFIG.n_positions + 1)
        return drawn[:-1], drawn[1:]


class Rounds(Hook):
    """Measures rounds of steps, and a snapshot after each of them."""

    order = 2

    def __init__(self, every: int):
        self.every, self.snapshots = every, Snapshots(every=1)
        self.step_s: list[float] = []
        self.snapshot_s: list[float] = []
        self.hook_s: list[float] = []

    def after_step(self, trainer: Trainer) -> None:
        """End a round, take a snapshot, and begin the next."""
        trainer.loss.numpy()
        if trainer.step % self.every:
            return
        store, ended_s = self.snapshots._open(trainer), time.process_time()
        if trainer.step > 4 * self.every:  # the first snapshots make their files
            self.step_s.append((ended_s - self.begun_s) / self.every)
        begun_s = time.thread_time()
        self.snapshots.after_step(trainer)
        self.hook_s.append(time.thread_time() - begun_s)
        store.wait()
        self.begun_s = time.process_time()
        self.snapshot_s.append(self.begun_s - ended_s)


def measure_snapshots(rounds: int, every: int) -> dict[str, float]:
    """Return the CPU time of a step and of a snapshot, of that its main thread's, and the size of the state."""
    hook = Rounds(every)
    flow.manual_seed(0)
    trainer = Trainer(
        model=models.gpt2.GPT2(CONFIG),
        optimizer=functools.partial(optim.AdamW, lr=1e-3),
        data=Tokens(1 << 20),
        batch_size=BATCH,
        max_steps=every * (rounds + 4) + 1,
        parallel=models.Parallel(data=2, device="cpu"),
        hooks=[hook],
        writers=[],
    )
    trainer.fit()
    return {
        "step_ms": statistics.median(hook.step_s) * 1e3,
        "snapshot_ms": statistics.median(hook.snapshot_s[4:]) * 1e3,
        "hook_ms": statistics.median(hook.hook_s[4:]) * 1e3,
        "state_mb": hook.snapshots._store.bytes / 1e6,
    }


def make_certificate(folder: Path) -> tuple[str, str, str]:
    """Return the files of a certificate that signs itself."""
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=job"]
    subprocess.run(["openssl", *words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key, certificate


def measure_copies(folder: Path, files: tuple[str, str, str], rounds: int, size_mb: float) -> tuple[float, float]:
    """Return the median CPU time in ms of sending a folder, both ends together: plain, and over TLS."""
    ends = []
    for tls in ("", os.pathsep.join(files)):
        os.environ[folder_transfer.TLS] = tls
        roots = [folder / f"{name}{bool(tls)}" for name in ("one", "two")]
        for root in roots:
            root.mkdir()
        ends.append([folder_transfer.FolderTransfer(root, lambda name: True, lambda name: None) for root in roots])
        (roots[0] / "piece").mkdir()
        (roots[0] / "piece" / "data").write_bytes(os.urandom(int(size_mb * 1e6)))
    found: list[list[float]] = [[], []]
    for _ in range(rounds + 1):
        for i, (one, two) in enumerate(ends):
            begun_s = time.process_time()
            one.send(two.address, "piece")
            found[i].append((time.process_time() - begun_s) * 1e3)
    return statistics.median(found[0][1:]), statistics.median(found[1][1:])


async def measure_beats(tls: tuple | None, count: int) -> float:
    """Return the CPU time in ms of a beat and its answer, both ends together."""

    async def answer(reader, writer):
        peer = await channel.accept(reader, writer, KEY)
        try:
            while True:
                peer.send(await peer.receive())
        except (ConnectionError, asyncio.CancelledError):
            peer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls and tls[0])
    port = server.sockets[0].getsockname()[1]
    peer = await channel.connect(f"127.0.0.1:{port}", KEY, 5, 5, tls and tls[1])
    begun_s = time.process_time()
    for number in range(count):
        peer.send({"t": "beat", "n": number, "stopped": 1, "ended": 0, "leaving": False, "port": 40000})
        await peer.receive()
    spent_ms = (time.process_time() - begun_s) / count * 1e3
    peer.abort()
    server.close()
    await server.wait_closed()
    return spent_ms


def main() -> None:
    """Measure, and print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--every", type=int, default=5, help="steps between two snapshots")
    given = parser.parse_args()
    found = measure_snapshots(given.rounds, given.every)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as temporary:
        files = make_certificate(Path(temporary))
        plain_ms, tls_ms = measure_copies(Path(temporary), files, given.rounds, found["state_mb"])
        beats = [[], []]
        for _ in range(given.rounds):
            for i, tls in enumerate((None, channel.tls_contexts(*files))):
                beats[i].append(asyncio.run(measure_beats(tls, 200)))
    beat_ms, tls_beat_ms = map(statistics.median, beats)
    interval_ms = found["step_ms"] * given.every
    added_ms = tls_ms - plain_ms + (tls_beat_ms - beat_ms) * interval_ms / 1e3  # at least a beat per CPU second
    found |= {
        "copy_ms": plain_ms, "copy_tls_ms": tls_ms, "beat_ms": beat_ms, "beat_tls_ms": tls_beat_ms,
        "snapshot_share": found["snapshot_ms"] / interval_ms, "hook_share": found["hook_ms"] / interval_ms,
        "copy_share": plain_ms / interval_ms, "tls_share": added_ms / interval_ms,
    }  # fmt: skip
    print(json.dumps({"every": given.every} | {name: round(value, 4) for name, value in found.items()}))


if __name__ == "__main__":
    main()
