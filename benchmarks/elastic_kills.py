"""Kills at random moments of a job over several hosts: ``python -m benchmarks.elastic_kills 20 [--hosts 2]``.

A small GPT under `Trainer`, with snapshots in memory, on hosts of two CPU devices each: launchers as processes, each
rank a process. Every kill is SIGKILL to a rank, to a launcher (its host dies, and comes back), or to the launcher that
leads, at a random moment of the time that a start and some steps take. Then losses are compared with those of an
uninterrupted run, and the steps of all starts are counted: each start goes on where an earlier one had been, no later
than its last step. Prints one line of JSON: kills by kind, seconds from the kill to the next step, steps done again,
and the largest difference of a loss.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EVERY, AFTER_KILL_S = 5, 12.0
PAUSE_S, STEPS_PER_KILL = 0.15, 80  # of the job that is killed, whose steps take longer than the kills then


def train(folder, steps, pause_s):
    """Train; the script of a rank."""
    import functools

    import numpy as np

    import sbpjax as flow
    from sbpjax import models, optim
    from sbpjax.train import Checkpoints, Hook, LineWriter, Snapshots, Trainer
    from sbpjax.train.data import Numbered

    class Tokens(Numbered):
        def sample(self, number):
            drawn = np.random.default_rng(number).integers(0, 64, 33)
            return drawn[:-1], drawn[1:]

    class Steps(Hook):
        """Writes the time, the epoch, the step and its loss."""

        def after_step(self, trainer):
            loss = float(trainer.loss.numpy())
            with open(f"{folder}/steps.{os.environ['RANK']}", "a") as file:
                file.write(f"{time.time():.3f} {os.environ['SBPJAX_JOB_EPOCH']} {trainer.step} {loss!r}\n")
            time.sleep(pause_s)

    flow.manual_seed(3)
    config = models.gpt2.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=1, n_head=2)
    trainer = Trainer(
        model=models.gpt2.GPT2(config),
        optimizer=functools.partial(optim.AdamW, lr=1e-3),
        data=Tokens(8 * steps),
        batch_size=8,
        max_steps=steps,
        parallel=models.Parallel(data=len(flow.placement.all("cpu").ranks)),
        hooks=[Steps(), Checkpoints(every=50), Snapshots(every=EVERY)],
        writers=[LineWriter()],
        out=f"{folder}/run",
    )
    trainer.resume()
    trainer.fit()


class Job:
    """The launchers of a job."""

    def __init__(self, folder, steps, ports, kills, pause_s):
        self.folder, self.steps, self.kills, self.pause_s = folder, steps, kills, pause_s
        self.addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.agents = {}
        for node in range(len(ports)):
            self.start(node)

    def start(self, node):
        command = [sys.executable, "-m", "sbpjax.distributed.launch", "--hosts", self.addresses, "--node_rank", node]
        command += ["--cpu_devices", 2, "--max_restarts", self.kills + 9, "--host_timeout", 5, "--join_wait", 1]
        command += ["--state_dir", self.folder / "votes", "-m", "benchmarks.elastic_kills"]
        command += ["--train", self.folder, self.steps, self.pause_s]
        env = os.environ | {"SBPJAX_JOB_SECRET": "s" * 32, "SBPJAX_CACHE_DIR": str(self.folder.parent / "cache")}
        with open(self.folder / f"agent{node}.log", "a") as log:
            self.agents[node] = subprocess.Popen(list(map(str, command)), env=env, stdout=log, stderr=log)

    def rows(self):
        """Return ``(time, epoch, step, loss)`` of rank 0."""
        path = self.folder / "steps.0"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(float(t), int(e), int(s), float(x)) for t, e, s, x in map(str.split, lines)]

    def leader(self):
        """Return the host that led last."""
        logs = {node: (self.folder / f"agent{node}.log") for node in self.agents}
        started = {
            n: [line for line in log.read_text().splitlines() if " starts on hosts" in line] for n, log in logs.items()
        }
        return max(started, key=lambda node: int(started[node][-1].split()[2]) if started[node] else 0)

    def ranks(self, node):
        words = ["ps", "--ppid", str(self.agents[node].pid), "-o", "pid=,args="]
        listed = subprocess.run(words, capture_output=True, text=True).stdout.splitlines()
        return [int(line.split()[0]) for line in listed if "--train" in line]

    def kill(self, kind, node):
        """Kill a rank or a launcher, which comes back at once; return whether there was one."""
        if kind == "rank":
            ranks = self.ranks(node)
            for pid in ranks[:1]:
                os.kill(pid, signal.SIGKILL)
            return bool(ranks)
        self.agents[node].kill()
        self.agents[node].wait()
        self.start(node)
        return True

    def wait(self, limit_s):
        deadline = time.monotonic() + limit_s
        for agent in self.agents.values():
            agent.wait(max(1.0, deadline - time.monotonic()))
        return [agent.returncode for agent in self.agents.values()]

    def end(self):
        for agent in self.agents.values():
            agent.kill()
            agent.wait()


def check(rows, wanted):
    """Return the steps done again and the largest relative difference of losses; raise if a step is left out."""
    again, difference, last = 0, 0.0, 0
    epoch = None
    for _, this, step, loss in rows:
        if this != epoch:
            if step > last + 1:
                raise SystemExit(f"epoch {this} begins at step {step} after step {last}")
            again += last + 1 - step
        elif step != last + 1:
            raise SystemExit(f"step {step} after step {last} in epoch {this}")
        epoch, last = this, step
        difference = max(difference, abs(loss - wanted[step]) / abs(wanted[step]))
    return again, difference


def run_whole(folder, ports, steps, limit_s):
    """Run a job without kills; return its losses by step, and the seconds to its first step with an empty cache."""
    folder.mkdir()
    begun = time.time()
    job = Job(folder, steps, ports, 0, 0.0)
    try:
        if any(job.wait(limit_s)):
            raise SystemExit((folder / "agent0.log").read_text()[-3000:])
    finally:
        job.end()
    rows = job.rows()
    return {step: loss for _, _, step, loss in rows}, rows[0][0] - begun


def kill_often(job, kills, chance, deadline):
    """Kill at random moments; return the kinds of kills, and the seconds from kills to the next step."""
    kinds, seconds = [], []

    def is_running():
        return time.monotonic() < deadline and None in [agent.poll() for agent in job.agents.values()]

    while is_running() and not job.rows():
        time.sleep(0.2)
    while is_running() and len(kinds) < kills:
        kind = chance.choice(["rank", "host", "leader"])
        node = job.leader() if kind == "leader" else chance.choice(sorted(job.agents))
        time.sleep(chance.uniform(0.0, AFTER_KILL_S))
        killed, epoch = time.time(), job.rows()[-1][1]
        if not job.kill(kind, node):
            continue
        kinds.append(kind)
        if chance.random() < 0.3:  # the next one comes while this start is under way
            continue
        while is_running() and job.rows()[-1][1] == epoch:
            time.sleep(0.2)
        if rows := [row for row in job.rows() if row[1] > epoch]:
            seconds.append(rows[0][0] - killed)
    return kinds, seconds


def main():
    """Kill, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kills", type=int, nargs="?", default=5)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit_s", type=float, default=3600.0)
    parser.add_argument("--train", nargs=3, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.train is not None:
        return train(given.train[0], int(given.train[1]), float(given.train[2]))
    sys.path.insert(0, os.getcwd())
    from tests.distributed.elastic.simulated import free_ports

    steps, deadline = STEPS_PER_KILL * (given.kills + 1), time.monotonic() + given.limit_s
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wanted, cold_s = run_whole(folder / "whole", free_ports(given.hosts), steps, given.limit_s)
        (folder / "killed").mkdir()
        job = Job(folder / "killed", steps, free_ports(given.hosts), given.kills, PAUSE_S)
        try:
            kinds, seconds = kill_often(job, given.kills, random.Random(given.seed), deadline)
            codes = job.wait(max(60.0, deadline - time.monotonic()))
            again, difference = check(job.rows(), wanted)
            if job.rows()[-1][2] != steps or any(codes):
                raise SystemExit(f"ended at step {job.rows()[-1][2]} of {steps} with {codes}")
        except BaseException:
            for log in sorted((folder / "killed").glob("agent*.log")):
                print(f"== {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
            raise
        finally:
            job.end()
    found = {
        "hosts": given.hosts, "kills": {kind: kinds.count(kind) for kind in sorted(set(kinds))}, "steps": steps,
        "steps_again": again, "loss_difference": difference, "cold_start_s": round(cold_s, 1),
        "next_step_s": [round(s, 1) for s in seconds], "load": os.getloadavg(),
    }  # fmt: skip
    found["median_s"] = round(statistics.median(seconds), 1) if seconds else None
    print(json.dumps(found))


if __name__ == "__main__":
    main()
