"""Agents as processes, whose ranks write a line every 20 ms: the time, their epoch, host, rank and the world's size."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.distributed.elastic.bare import ROOT
from tests.distributed.elastic.simulated import overlaps

RANK = """
import os, signal, sys, time
names = ("SBPJAX_JOB_EPOCH", "NODE", "RANK", "WORLD_SIZE", "MASTER_ADDR", "SBPJAX_JOB_SECRET")
facts = " ".join(os.environ[name] for name in names)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
with open(os.path.join(sys.argv[1], f"{os.getpid()}-{time.monotonic_ns()}"), "w", buffering=1) as log:
    while not os.path.exists(os.path.join(sys.argv[1], "over")):
        log.write(f"{time.monotonic()} {facts}\\n")
        time.sleep(0.02)
"""


class Agents:
    """The agents of a job on this machine.

    Args:
        folder: for their files.
        addresses: of the agents, by host.
        silence_s: after which a host is lost.
        before: the words before a host's command.
    """

    def __init__(self, folder, addresses, silence_s, *options, before=lambda node: ()):
        self.folder, self.addresses, self.before, self.processes = Path(folder), addresses, before, {}
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        (self.folder / "rank.py").write_text(RANK)
        self.options = ["--hosts", ",".join(addresses), "--host_timeout", silence_s, "--join_wait", "0.5", *options]
        self.silence_s = silence_s

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
        for process in self.processes.values():
            process.wait()
        if error[0] is not None:
            for file in sorted(self.folder.glob("agent*")):
                print(f"== {file.name}\n{file.read_text()[-3000:]}")

    def start(self, *nodes):
        for node in nodes:
            command = [*self.before(node), sys.executable, Path(__file__).parent / "bare.py", "--nnodes"]
            command += [f"1:{len(self.addresses)}", "--node_rank", node, *self.options]
            command += [self.folder / "rank.py", self.logs]
            env = {**os.environ, "NODE": str(node), "PYTHONPATH": str(ROOT), "SBPJAX_JOB_SECRET": "s" * 32}
            with open(self.folder / f"agent{node}", "a") as file:
                self.processes[node] = subprocess.Popen(
                    list(map(str, command)), env=env, stdout=file, stderr=file, start_new_session=True
                )

    def signal(self, node, number):
        self.processes[node].send_signal(number)
        if number == signal.SIGKILL:
            self.processes.pop(node).wait()

    def finish(self):
        """Have the ranks end, and return the agents' exit codes."""
        (self.logs / "over").touch()
        return {node: process.wait(60) for node, process in self.processes.items()}

    def runs(self):
        """Return ``(host, epoch, first time, last time, facts)`` of every rank that ran."""
        found = []
        for file in self.logs.iterdir():
            lines = [line for line in file.read_text().splitlines() if len(line.split()) == 7]
            if lines:
                epoch, node, *facts = lines[0].split()[1:]
                found.append((int(node), int(epoch), float(lines[0].split()[0]), float(lines[-1].split()[0]), facts))
        return found

    def trains(self, nodes, after=0, limit_s=90):
        """Wait until exactly these hosts train in one epoch later than ``after``; return its number."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            begun = time.monotonic()
            time.sleep(0.3)
            live = {(run[0], run[1]) for run in self.runs() if run[3] > begun}
            if {node for node, _ in live} == set(nodes) and len({epoch for _, epoch in live}) == 1:
                epoch = live.pop()[1]
                if epoch > after:
                    return epoch
        raise AssertionError(f"{nodes} do not train, but {live}")

    def check(self):
        """Fail if ranks of two epochs ran at the same time, or ranks of one epoch disagree."""
        runs = self.runs()
        assert not overlaps(runs), overlaps(runs)
        secrets = {}
        for _, epoch, _, _, (_, world_size, master, secret) in runs:
            assert secrets.setdefault(epoch, (world_size, master, secret)) == (world_size, master, secret)
        assert len({secret for _, _, secret in secrets.values()}) == len(secrets)  # each epoch has one of its own


@contextlib.contextmanager
def namespaces(count):
    """Yield network namespaces, their addresses, and functions that cut and join the two halves of the network.

    Each half has a bridge; a pair of veth joins the bridges.
    """
    tag = f"sbp{os.getpid() % 10000}"

    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    names = [f"{tag}n{node}" for node in range(count)]
    addresses = [f"10.213.7.{node + 1}" for node in range(count)]
    try:
        for half in range(2):
            ip("link", "add", f"{tag}b{half}", "type", "bridge")
            ip("link", "set", f"{tag}b{half}", "up")
        ip("link", "add", f"{tag}t0", "type", "veth", "peer", "name", f"{tag}t1")
        for half in range(2):
            ip("link", "set", f"{tag}t{half}", "master", f"{tag}b{half}", "up")
        for node, name in enumerate(names):
            ip("netns", "add", name)
            ip("link", "add", f"{tag}v{node}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{tag}v{node}", "master", f"{tag}b{int(node >= count / 2)}", "up")
            ip("-n", name, "addr", "add", f"{addresses[node]}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        cut, join = (lambda state=state: ip("link", "set", f"{tag}t0", state) for state in ("down", "up"))
        yield names, addresses, cut, join
    finally:
        for link in [f"{tag}b0", f"{tag}b1", f"{tag}t0"]:
            subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
