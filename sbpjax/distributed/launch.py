"""Launcher, one process per rank: ``python -m sbpjax.distributed.launch --nproc_per_node 4 train.py --lr 0.1``.

Every process gets ``MASTER_ADDR``, ``MASTER_PORT``, ``WORLD_SIZE``, ``RANK``, ``LOCAL_RANK``, ``LOCAL_WORLD_SIZE`` and
``NODE_SIZE`` in its environment, and importing sbpjax connects them. ``SBPJAX_JOB_SECRET``, new for every start,
authenticates them; with several machines ``--secret_file`` names a file of mode 600 that holds one secret for all. The
launcher passes on their output line by line with the rank before it, and forwards signals to them. When one dies it
stops the others, reports the rank, its exit status and last output, and ends with its exit code. With
``--max_restarts`` it starts all of them again, from the last checkpoint if the script loads one; a script requests that
itself by exit code 75 (`EXIT_RESTART`). The ranks of a killed launcher end with it (`_core.runtime.parent_death`).

The launcher itself holds no device: ranks claim them. With ``--nnodes MIN:MAX`` hosts may leave and join (`elastic`).
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
import time

from sbpjax._core.runtime.commands import command_parser
from sbpjax._core.runtime.optional_packages import LazyModule
from sbpjax.distributed.rank_processes import EXIT_RESTART as EXIT_RESTART
from sbpjax.distributed.rank_processes import Rank, RankProcesses, kill

elastic = LazyModule("sbpjax.distributed.elastic.run")  # of jobs whose machines change

_GRACE_S = 10.0  # between SIGTERM and SIGKILL


def parser() -> argparse.ArgumentParser:
    """Return the parser of the launcher's options."""
    p = command_parser("sbpjax.distributed.launch")
    p.add_argument("--nnodes", type=_node_counts, default=1, help="number of machines; MIN:MAX for an elastic job")
    p.add_argument("--node_rank", type=int, default=None, help="index of this machine (0)")
    p.add_argument("--nproc_per_node", type=int, default=1, help="processes on this machine")
    p.add_argument("--master_addr", default="127.0.0.1", help="the machine of rank 0")
    p.add_argument(
        "--master_port", "--port", type=int, default=None, help="port of rank 0 (29500); 0 picks a free port"
    )
    p.add_argument("-m", "--module", action="store_true", help="the script is a module, as with python -m")
    p.add_argument("--no_python", action="store_true", help="the script is an executable, not a Python file")
    p.add_argument("--redirect_stdout_and_stderr", action="store_true", help="write output to files in --logdir")
    p.add_argument("--logdir", default="log", help="folder of redirected output: <logdir>/rank_<r>/stdout, stderr")
    p.add_argument(
        "--max_restarts", type=int, default=0, help="number of times that all processes are restarted after one dies"
    )
    p.add_argument("--standby", default=None, metavar="MODULES", help="keep a process ready for each rank's next start")
    p.add_argument("--monitor_interval", type=float, default=0.1, help="seconds between checks of the processes")
    p.add_argument("--timeout", type=float, default=None, help="seconds that ranks wait for each other (600)")
    p.add_argument("--cpu_devices", type=int, default=None, help="virtual CPU devices of each process")
    p.add_argument("--secret_file", default=None, help="a file of mode 600 with the secret of the job (16+ characters)")
    hosts = p.add_argument_group("elastic jobs")
    hosts.add_argument("--hosts", default=None, help="host[:port],… of all agents, in the order of their indices")
    hosts.add_argument("--min_hosts", type=int, default=None, help="with fewer hosts, the job waits")
    hosts.add_argument("--max_hosts", type=int, default=None, help="hosts beyond this number wait as spares")
    hosts.add_argument("--agent_port", type=int, default=29400, help="port of the agents")
    hosts.add_argument("--local_addr", default=None, help="address of this machine for the other agents")
    hosts.add_argument("--host_timeout", type=float, default=10.0, help="seconds of silence after which a host is lost")
    hosts.add_argument("--join_wait", type=float, default=5.0, help="seconds to wait for more hosts than the fewest")
    hosts.add_argument("--state_dir", default=None, help="where this machine's votes survive a restart of its launcher")
    hosts.add_argument("--tls_cert", default=None, help="certificate of this machine, for mutual TLS between agents")
    hosts.add_argument("--tls_key", default=None, help="its private key")
    hosts.add_argument("--tls_ca", default=None, help="the authority that signed the certificates of all machines")
    p.add_argument("training_script", help="the script")
    p.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return p


def main(arguments: list[str] | None = None) -> int:
    """Run the launcher and return its exit code."""
    p = parser()
    options = p.parse_args(arguments)
    if options.module and options.no_python:
        p.error("-m and --no_python exclude each other")
    if options.standby is not None and (options.no_python or options.redirect_stdout_and_stderr):
        p.error("--standby excludes --no_python and --redirect_stdout_and_stderr")
    if isinstance(options.nnodes, tuple) or (options.hosts, options.min_hosts, options.max_hosts) != (None, None, None):
        return _run_elastic(p, options)
    node_rank = options.node_rank or 0
    if options.nnodes < 1 or options.nproc_per_node < 1 or not 0 <= node_rank < options.nnodes:
        p.error(
            f"--nnodes {options.nnodes} --node_rank {node_rank} --nproc_per_node {options.nproc_per_node}: "
            "there is at least one machine and one process, and 0 <= node_rank < nnodes"
        )
    if options.master_port == 0 and options.nnodes > 1:
        p.error("--master_port 0 takes a free port of this machine: with several machines name one")
    return Launcher(options).run()


def _node_counts(text: str) -> int | tuple[int, int]:
    fewest, colon, most = text.partition(":")
    return (int(fewest), int(most)) if colon else int(text)


def _run_elastic(p: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Run the agent of this machine, in a job whose machines may leave and join."""
    listed = None if options.hosts is None else len(options.hosts.split(","))
    counts = options.nnodes if isinstance(options.nnodes, tuple) else (listed or options.nnodes,) * 2
    options.max_hosts = options.max_hosts or max(counts[1], options.min_hosts or 0)
    options.min_hosts = options.min_hosts or counts[0]
    if not 1 <= options.min_hosts <= options.max_hosts or options.nproc_per_node < 1:
        p.error(
            f"--min_hosts {options.min_hosts} --max_hosts {options.max_hosts} "
            f"--nproc_per_node {options.nproc_per_node}: there is at least one process, and 1 <= min <= max"
        )
    if options.host_timeout < 1:
        p.error(f"--host_timeout {options.host_timeout:g}: hosts are silent for up to a second when they are busy")
    return elastic.run(options)


class Launcher(RankProcesses):
    """Starts the processes of this machine and watches them.

    Args:
        options: the result of `parser`.
        environment: additional variables of the processes.
    """

    def __init__(self, options, environment: dict[str, str] | None = None) -> None:
        super().__init__(options, environment)
        self.world_size = options.nnodes * options.nproc_per_node
        self.port = 29500 if options.master_port is None else options.master_port
        self.signal: int | None = None

    def run(self) -> int:
        """Run until all processes ended, and return the exit code."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, self._on_signal)
        self.make_tie()
        try:
            starts = failures = 0
            while True:
                self._start(starts)
                failed = self._watch()
                code = self._code(failed)
                if failed is None or self.signal is not None:
                    return code
                requested = failed.process.returncode == EXIT_RESTART and self.options.max_restarts > 0
                if not requested:
                    if failures >= self.options.max_restarts:
                        return code
                    failures += 1
                starts += 1
                cause = "as requested" if requested else f"{failures} of {self.options.max_restarts} restarts"
                self.log(f"starting all ranks again ({cause})")
        finally:
            self.stop(0.0)
            self.end_standbys()
            self._tie.close()
            shutil.rmtree(self.snapshots, ignore_errors=True)
            for number, handler in before.items():
                signal.signal(number, handler)

    # -- start -----------------------------------------------------------------------------------------------------

    def _start(self, restarts: int) -> None:
        o = self.options
        self.ranks = []
        env = {
            **os.environ,
            **self.environment,
            "MASTER_ADDR": o.master_addr,
            "MASTER_PORT": str(self.port or _free_port()),
            "WORLD_SIZE": str(self.world_size),
            "NODE_SIZE": str(o.nnodes),
            "RESTART_COUNT": str(restarts),
        }
        if o.secret_file is not None:
            env.pop("SBPJAX_JOB_SECRET", None)
            env["SBPJAX_JOB_SECRET_FILE"] = os.path.abspath(o.secret_file)
        elif o.nnodes == 1 and not env.get("SBPJAX_JOB_SECRET_FILE"):
            env.setdefault("SBPJAX_JOB_SECRET", secrets.token_hex(32))
        for local in range(o.nproc_per_node):
            self.start_rank((o.node_rank or 0) * o.nproc_per_node + local, local, env)

    # -- watch -----------------------------------------------------------------------------------------------------

    def _watch(self) -> Rank | None:
        """Wait until all processes end well (None), or one fails: return that one and stop the others."""
        received = None
        while True:
            if self.signal is not None and received != self.signal:
                received = self.signal
                self.send(received)
                deadline = time.monotonic() + _GRACE_S
            if received is not None and time.monotonic() > deadline:
                self.stop(0.0)
            codes = [r.process.poll() for r in self.ranks]
            if received is None:
                self.keep_standbys()
                for rank, code in zip(self.ranks, codes, strict=True):
                    if code not in (None, 0):
                        kill(rank.process, signal.SIGKILL)  # its children hold its output open
                        self.report(rank)
                        self.stop(_GRACE_S)
                        return rank
            if all(code is not None for code in codes):
                for rank in self.ranks:
                    rank.drain()
                return None
            time.sleep(self.options.monitor_interval)

    def _code(self, failed: Rank | None) -> int:
        if failed is not None:
            code = failed.process.returncode
            return code if code > 0 else 128 - code
        if self.signal is not None:
            codes = [r.process.returncode for r in self.ranks]
            return EXIT_RESTART if EXIT_RESTART in codes else 128 + self.signal
        return 0

    # -- end -------------------------------------------------------------------------------------------------------

    def _on_signal(self, number: int, frame) -> None:
        if self.signal is not None:  # the user insists
            for rank in self.ranks:
                kill(rank.process, signal.SIGKILL)
        self.signal = number


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
