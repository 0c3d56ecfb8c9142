"""Kills of one long job over several hosts: ``python -m benchmarks.elastic_kills 20 --folder /var/tmp/kills``.

A small GPT under `Trainer`, with snapshots in memory, on hosts of two CPU devices each: launchers as processes, each
rank a process. A kill is SIGKILL to a rank, to a launcher (its host dies, and comes back), or to the launcher that
leads. It is aimed at a moment of rank 0: ``compile`` (from the start to the first step), ``collective`` (within a
step), ``step`` (between two), ``save`` (of a checkpoint), ``restart`` (while the ranks of the last kill start again),
and counted under the moment that rank 0 was in. After the last one all launchers get SIGTERM: the job saves, and goes
on in the next call with the same folder. Losses are compared with those of an uninterrupted run, and each start has to
go on where an earlier one had been. Prints a line of JSON after each kill, the last one for all calls of the folder.

The first call with a folder makes the run without kills, for as long as ``--limit_s``. With ``--grow`` two hosts train,
steps take a second, and two more launchers start: seconds to the first step of all four, in snapshot intervals of 20.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

EVERY, SAVES_EVERY, PAUSE_S = 5, 10, 0.15
TARGETS, MOMENTS = ("rank", "host", "leader"), ("compile", "collective", "step", "save", "restart")
WITHIN_S = {"compile": 3.0, "collective": 0.03, "step": 0.15, "save": 0.03, "restart": 1.5}  # of the moment's begin
EVENTS = ("launch: epoch", "launch: waiting", "[rank 0] resumed")  # begins of lines in logs
GROWN_S = 120.0  # limit of a restart
SAMPLES = 1 << 20


def train(folder, piece, pause_s):
    """Train; the script of a rank."""
    import functools

    import numpy as np

    import sbpjax as flow
    from sbpjax import models, optim
    from sbpjax.train import Checkpoints, Hook, LineWriter, Snapshots, Trainer
    from sbpjax.train.data import Numbered

    begun_s = (
        time.process_time() if "sbpjax.distributed.standby" in sys.modules else 0.0
    )  # a standby's imports are over
    now = os.open(f"{folder}/moment.{os.environ['RANK']}", os.O_WRONLY | os.O_CREAT)

    def enter(moment):
        os.pwrite(now, f"{moment:12}".encode(), 0)

    enter("compile")

    class Tokens(Numbered):
        def sample(self, number):
            drawn = np.random.default_rng(number).integers(0, 64, 33)
            return drawn[:-1], drawn[1:]

    class Collective(Hook):
        """Writes the time, the epoch, the step and its loss."""

        steps = 0

        def before_step(self, trainer):
            if self.steps:
                enter("collective")

        def after_step(self, trainer):
            self.steps += 1
            if self.steps == 1:
                Path(f"{folder}/cpu.{os.environ['RANK']}").write_text(str(time.process_time() - begun_s))
            loss = float(trainer.loss.numpy())
            epoch = os.environ["SBPJAX_JOB_EPOCH"]
            with open(f"{folder}/steps.{os.environ['RANK']}", "a") as file:
                file.write(f"{time.time():.3f} {piece} {epoch} {trainer.step} {loss!r}\n")
            if trainer.step % SAVES_EVERY == 0:
                enter("save")

    class Pause(Hook):
        order = 2

        def after_step(self, trainer):
            enter("step")
            time.sleep(pause_s)

    flow.manual_seed(3)
    config = models.gpt2.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=1, n_head=2)
    trainer = Trainer(
        model=models.gpt2.GPT2(config),
        optimizer=functools.partial(optim.AdamW, lr=1e-3),
        data=Tokens(SAMPLES),
        batch_size=8,
        max_steps=SAMPLES // 8,
        parallel=models.Parallel(data=len(flow.placement.all("cpu").ranks)),
        hooks=[Collective(), Checkpoints(every=SAVES_EVERY), Snapshots(every=EVERY), Pause()]
        if pause_s
        else [Collective(), Checkpoints(every=SAMPLES)],
        writers=[LineWriter()],
        out=f"{folder}/run",
    )
    trainer.resume()
    trainer.fit()


class Job:
    """The launchers of a job.

    Args:
        folder: of the job.
        ports: of its hosts' launchers.
        pause_s: between two steps.
        standby: whether a standby waits for each rank.
        hosts: the limits of the number of hosts, if it may change.
    """

    def __init__(self, folder, ports, pause_s=PAUSE_S, standby=False, hosts=None, first=None):
        folder.mkdir(exist_ok=True)
        self.folder, self.pause_s, self.standby, self.hosts = folder, pause_s, standby, hosts
        self.addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.piece = 1 + max((row[1] for row in self.rows()), default=0)
        self.agents = {}
        for node in range(len(ports) if first is None else first):
            self.start(node)

    def start(self, node):
        command = [sys.executable, "-m", "sbpjax.distributed.launch", "--hosts", self.addresses, "--node_rank", node]
        command += ["--cpu_devices", 2, "--max_restarts", 999, "--host_timeout", 5, "--join_wait", 1]
        command += ["--standby", ""] if self.standby else []
        command += ["--nnodes", self.hosts] if self.hosts else []
        command += ["--state_dir", self.folder / "votes", "-m", "benchmarks.elastic_kills"]
        command += ["--train", self.folder, self.piece, self.pause_s]
        env = os.environ | {"SBPJAX_JOB_SECRET": "s" * 32, "SBPJAX_CACHE_DIR": str(self.folder.parent / "cache")}
        with open(self.folder / f"agent{node}.log", "a") as log:
            self.agents[node] = subprocess.Popen(list(map(str, command)), env=env, stdout=log, stderr=log)

    def rows(self):
        """Return ``(time, call of the benchmark, epoch, step, loss)`` of rank 0."""
        path = self.folder / "steps.0"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(float(t), int(p), int(e), int(s), float(x)) for t, p, e, s, x in map(str.split, lines)]

    def start_of_last(self):
        """Return call and epoch of the latest step."""
        return next((row[1:3] for row in reversed(self.rows())), (0, 0))

    def cpu_s(self):
        """Return the CPU time of rank 0 from its start, or a standby's place, to its first step."""
        return float((self.folder / "cpu.0").read_text())

    def moment(self):
        """Return the moment of rank 0, ``restart`` if it is not there."""
        path = self.folder / "moment.0"
        return path.read_text().strip() if path.exists() and self.ranks(0) else "restart"

    def leader(self):
        """Return the host that led last."""
        logs = {node: (self.folder / f"agent{node}.log") for node in self.agents}
        started = {
            n: [line for line in log.read_text().splitlines() if " starts on hosts" in line] for n, log in logs.items()
        }
        return max(started, key=lambda node: int(started[node][-1].split()[2]) if started[node] else 0)

    def ranks(self, node):
        """Return the processes of a host's ranks, not those of standbys."""
        path, agent = self.folder / f"moment.{node}", self.agents[node].pid
        try:
            children = Path(f"/proc/{agent}/task/{agent}/children").read_text().split()
        except OSError:  # it ended
            return []
        return [int(pid) for pid in children if _has_open(pid, path)]

    def kill(self, target, node):
        """Kill a rank or a launcher, which comes back at once; return whether there was one."""
        if target == "rank":
            ranks = self.ranks(node)
            for pid in ranks[:1]:
                os.kill(pid, signal.SIGKILL)
            return bool(ranks)
        self.agents[node].kill()
        self.agents[node].wait()
        self.start(node)
        return True

    def is_running(self):
        return all(agent.poll() is None for agent in self.agents.values())

    def wait(self, limit_s):
        deadline = time.monotonic() + limit_s
        for agent in self.agents.values():
            agent.wait(max(1.0, deadline - time.monotonic()))
        return [agent.returncode for agent in self.agents.values()]

    def save(self, limit_s):
        """End the job by SIGTERM; return the exit codes of its launchers."""
        for agent in self.agents.values():
            agent.terminate()
        return self.wait(limit_s)

    def end(self):
        for agent in self.agents.values():
            agent.kill()
            agent.wait()

    def logs(self):
        """Return the ends of the launchers' logs."""
        return "\n".join(f"== {log.name}\n{log.read_text()[-3000:]}" for log in sorted(self.folder.glob("agent*.log")))


def _has_open(pid, path):
    try:
        return str(path) in [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # it ended
        return False


def check(rows, wanted):
    """Check that no step is left out.

    Returns:
        The steps done again, the most of them after one start, and the largest relative difference of a loss.
    """
    again, most, difference, last = 0, 0, 0.0, 0
    start = None
    for _, piece, epoch, step, loss in rows:
        if (piece, epoch) != start:
            if step > last + 1:
                raise SystemExit(f"epoch {epoch} begins at step {step} after step {last}")
            again, most = again + last + 1 - step, max(most, last + 1 - step)
        elif step != last + 1:
            raise SystemExit(f"step {step} after step {last} in epoch {epoch}")
        start, last = (piece, epoch), step
        if step in wanted:
            difference = max(difference, abs(loss - wanted[step]) / abs(wanted[step]))
    return again, most, difference


def run_whole(folder, ports, limit_s):
    """Start a job with an empty cache, then train without kills, in one process of as many devices, for some time.

    Returns:
        The losses by step, and the seconds to the job's first step.
    """
    begun = time.time()
    job = Job(folder / "cold", ports)
    try:
        cold_s = await_step(job, (0, 0), limit_s) - begun
    finally:
        job.end()
    (folder / "whole").mkdir()
    env = os.environ | {"SBPJAX_CPU_DEVICES": str(2 * len(ports)), "RANK": "0", "SBPJAX_JOB_EPOCH": "0"}
    command = [sys.executable, "-m", "benchmarks.elastic_kills", "--train", folder / "whole", "1", "0.0"]
    process = subprocess.Popen(list(map(str, command)), env=env)
    try:
        process.wait(max(60.0, begun + limit_s - time.time()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    lines = (folder / "whole" / "steps.0").read_text().splitlines()
    return {int(line.split()[3]): float(line.split()[4]) for line in lines}, cold_s


def kill_once(job, chance, aim, target, deadline):
    """Kill at a moment; return the facts, None if it did not come.

    Returns:
        Target, moment, and the seconds to the next step: None if the next kill comes before.
    """
    node = job.leader() if target == "leader" else chance.choice(sorted(job.agents))
    while job.moment() != aim and time.monotonic() < deadline:
        time.sleep(0.003)
    time.sleep(chance.uniform(0.0, WITHIN_S[aim]))
    moment, killed, start = job.moment(), time.time(), job.start_of_last()
    if time.monotonic() > deadline or not job.kill(target, node):
        return None
    return {"target": target, "moment": moment, "killed": killed, "start": start, "next_s": None}


def await_step(job, start, limit_s):
    """Wait for the first step after a start; return its time."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and job.is_running():
        rows = [row for row in job.rows() if row[1:3] > start]
        if rows:
            return rows[0][0]
        time.sleep(0.05)
    raise SystemExit(f"no step for {limit_s:g} s after {start}\n{job.logs()}")


def kill_often(job, kills, chance, deadline):
    """Kill at random moments; yield the facts of each kill once the job went on."""
    done = 0
    while done < kills and time.monotonic() < deadline:
        aims = [chance.choice(["collective", "step", "save"])]
        aims += chance.choice([[], [], ["restart"], ["compile"], ["restart", "compile"]])  # before the job goes on
        tried = [kill_once(job, chance, aim, chance.choice(TARGETS), deadline) for aim in aims]
        killed = [facts for facts in tried if facts is not None]
        if not killed:
            continue
        done += len(killed)
        killed[-1]["next_s"] = await_step(job, killed[-1]["start"], GROWN_S) - killed[-1]["killed"]
        yield from killed
        time.sleep(chance.uniform(0.5, 3.0))


class Timeline(threading.Thread):
    """Notes when lines of the launchers and of rank 0 appear in the logs of a job."""

    def __init__(self, job):
        super().__init__(daemon=True)
        self.job, self.events, self.is_over = job, [], False

    def run(self):
        """Read the logs until the timeline is over."""
        seen = collections.Counter()
        while not self.is_over:
            for log in sorted(self.job.folder.glob("agent*.log")):
                lines = log.read_text().splitlines()[seen[log] :]
                seen[log] += len(lines)
                words = [
                    line for line in lines if line.startswith(("launch: epoch", "launch: waiting", "[rank 0] resu"))
                ]
                self.events += [(time.time(), line) for line in words]
            time.sleep(0.05)


def compare_with_cold(folder, ports, standby):
    """Return the seconds of a start with an empty cache, and from kills in that job to the next step.

    Each with the CPU time of rank 0 to its first step, which the load of the machine changes less.
    """
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        begun = time.time()
        job = Job(Path(fresh, "job"), ports, standby=standby)
        timeline = Timeline(job)
        timeline.start()
        try:
            found = {"cold_s": await_step(job, (0, 0), GROWN_S) - begun, "cold_cpu_s": job.cpu_s()}
            for target in ("rank", "host", "leader", "rank"):
                time.sleep(40.0)  # standbys are there
                start, killed, last = job.start_of_last(), time.time(), job.rows()[-1][3]
                job.kill(target, job.leader() if target == "leader" else len(ports) - 1)
                found[f"{target}_s"] = await_step(job, start, GROWN_S) - killed
                found[f"{target}_ratio"] = found[f"{target}_s"] / found["cold_s"]
                found[f"{target}_cpu_s"] = job.cpu_s()
                print(f"   0.0 SIGKILL of a {target} after step {last}")
                print("\n".join(f"{at - killed:6.1f} {line}" for at, line in timeline.events if at > killed))
                print(f"{found[f'{target}_s']:6.1f} step {[row for row in job.rows() if row[1:3] > start][0][3]}")
        finally:
            timeline.is_over = True
            job.end()
    return {name: round(value, 2) for name, value in found.items()} | {"load": round(os.getloadavg()[0], 1)}


def grow(folder, ports, wanted, standby):
    """Return the facts of a job that grows from two to four hosts."""
    begun = sum(1 for _ in folder.glob("grown*"))
    job = Job(folder / f"grown{begun}", ports, pause_s=1.0, standby=standby, hosts="2:4", first=2)
    try:
        start = await_step(job, (0, 0), GROWN_S) and job.start_of_last()
        while len(job.rows()) < 15:
            time.sleep(0.1)
        rows, started = job.rows(), time.time()
        step_s = (rows[-1][0] - rows[5][0]) / (len(rows) - 6)
        for node in (2, 3):
            job.start(node)
        while " starts on hosts [0, 1, 2, 3]" not in (job.folder / "agent0.log").read_text():
            start, _ = job.start_of_last(), time.sleep(0.1)
        grown_s = await_step(job, start, GROWN_S) - started
        time.sleep(5.0)
        again, _, difference = check(job.rows(), wanted)
    finally:
        job.end()
    facts = {"grown_s": grown_s, "step_s": step_s, "intervals": grown_s / (20 * step_s)}
    return {"steps_again": again, "loss_difference": difference} | {n: round(x, 2) for n, x in facts.items()}


def summarise(kills, rows, wanted, cold_s):
    """Return the facts of all kills."""
    again, most, difference = check(rows, wanted)
    found = {"kills": len(kills), "cold_s": round(cold_s, 1), "steps": rows[-1][3], "steps_again": again}
    found["most_again"] = most
    found["loss_difference"] = difference
    for name in ("target", "moment"):
        found[name] = dict(sorted(collections.Counter(facts[name] for facts in kills).items()))
    for target in TARGETS:
        seconds = [facts["next_s"] for facts in kills if facts["target"] == target and facts["next_s"] is not None]
        if seconds:
            median = statistics.median(seconds)
            found[f"{target}_s"], found[f"{target}_ratio"] = round(median, 1), round(median / cold_s, 2)
    return found | {"load": round(os.getloadavg()[0], 1)}


def main():
    """Kill, and print a line of JSON after each kill."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kills", type=int, nargs="?", default=5)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit_s", type=float, default=420.0)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp/elastic_kills"))
    parser.add_argument("--standby", action="store_true")
    parser.add_argument("--ratio", action="store_true", help="of single kills to a cold start in the same job")
    parser.add_argument("--grow", action="store_true")
    parser.add_argument("--train", nargs=3, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.train is not None:
        return train(given.train[0], int(given.train[1]), float(given.train[2]))
    sys.path.insert(0, os.getcwd())
    from tests.distributed.elastic.simulated import free_ports

    deadline = time.monotonic() + given.limit_s
    given.folder.mkdir(exist_ok=True)
    whole, kept = given.folder / "whole.json", given.folder / "kills.json"
    if not whole.exists():
        found = run_whole(given.folder, free_ports(given.hosts), given.limit_s)
        whole.write_text(json.dumps(found))
        return print(json.dumps({"reference": len(found[0]), "cold_s": round(found[1], 1)}))
    losses, cold_s = json.loads(whole.read_text())
    wanted = {int(step): loss for step, loss in losses.items()}
    if given.ratio:
        return print(json.dumps(compare_with_cold(given.folder, free_ports(given.hosts), given.standby)))
    if given.grow:
        return print(json.dumps(grow(given.folder, free_ports(4), wanted, given.standby)))
    kills = json.loads(kept.read_text()) if kept.exists() else []
    ports = given.folder / "ports.json"
    if not ports.exists():  # snapshots in memory are found again at the same addresses
        ports.write_text(json.dumps(free_ports(given.hosts)))
    job = Job(given.folder / "killed", json.loads(ports.read_text()), standby=given.standby)
    try:
        await_step(job, (job.piece, 0), GROWN_S)
        chance = random.Random(f"{given.seed} {job.piece}")
        for facts in kill_often(job, given.kills, chance, deadline):
            kills.append(facts)
            print(json.dumps({"last": facts} | summarise(kills, job.rows(), wanted, cold_s)), flush=True)
            kept.write_text(json.dumps(kills))
        codes = job.save(GROWN_S)
        if set(codes) != {75}:
            raise SystemExit(f"the launchers ended with {codes}")
    except BaseException:
        print(job.logs(), file=sys.stderr)
        raise
    finally:
        job.end()
    print(json.dumps(summarise(kills, job.rows(), wanted, cold_s)))


if __name__ == "__main__":
    main()
