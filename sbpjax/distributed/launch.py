"""Launcher, one process per rank: ``python -m sbpjax.distributed.launch --nproc_per_node 4 train.py --lr 0.1``.

Every process gets ``MASTER_ADDR``, ``MASTER_PORT``, ``WORLD_SIZE``, ``RANK``, ``LOCAL_RANK``, ``LOCAL_WORLD_SIZE`` and
``NODE_SIZE`` in its environment, and importing sbpjax connects them. ``SBPJAX_JOB_SECRET``, new for every start,
authenticates them; with several machines ``--secret_file`` names a file of mode 600 that holds one secret for all. The
launcher passes on their output line by line with the rank before it, and forwards signals to them. When one dies it
stops the others, reports the rank, its exit status and last output, and ends with its exit code. With
``--max_restarts`` it starts all of them again, from the last checkpoint if the script loads one; a script requests that
itself by exit code 75 (`EXIT_RESTART`). The ranks of a killed launcher end with it (`_core.runtime.parent_death`).

This file needs nothing but Python, so the launcher itself holds no device and little memory.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from sbpjax._core.runtime.commands import command_parser

EXIT_RESTART = 75  # EX_TEMPFAIL of sysexits.h: "try again later"
_GRACE_S = 10.0  # between SIGTERM and SIGKILL
# Gloo prints it for every process and every group of them (jaxlib 0.10.2), and no setting of its own turns it off. It
# does so in pieces: those of two threads may come between each other.
_CONNECTED = re.compile(
    r"\[Gloo\] Rank \d+ is connected to (\d+) peer ranks\. Expected number of connected peer ranks is : (\d+)"
)
_PIECES = re.compile(
    r"\d*(?:(?:\[Gloo\] Rank | is connected to | peer ranks\. |Expected number of connected peer ranks is : )\d*)+"
)
_KEPT_LINES = 20
_SILENCE_S, _DRAIN_S = 5.0, 60.0  # of output that a process left: how long none may come, how long it may take


def _load_module_by_path(*names: str):
    """Load a module of this package by its path, without importing the package, which needs JAX."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *names)
    spec = importlib.util.spec_from_file_location(f"_sbpjax_{names[-1].removesuffix('.py')}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_parent_death = _load_module_by_path("_core", "runtime", "parent_death.py")


def is_connected_message(line: str) -> bool:
    """Return whether a line only reports that Gloo connected all expected processes."""
    found = _CONNECTED.fullmatch(line)
    return _PIECES.fullmatch(line) is not None if found is None else found[1] == found[2]


@dataclass
class Rank:
    """One started process.

    Attributes:
        rank: its rank among all processes.
        process: the process.
        last: the last lines of its output.
        errors: the last lines of its error output, which the other must not crowd out.
        readers: the threads that pass its output on.
        lines: how many lines they have passed on.
        writing: lock of the launcher's own output.
        log: the directory with its output, if that is redirected.
    """

    rank: int
    process: subprocess.Popen
    last: collections.deque = field(default_factory=lambda: collections.deque(maxlen=_KEPT_LINES))
    errors: collections.deque = field(default_factory=lambda: collections.deque(maxlen=_KEPT_LINES))
    readers: list[threading.Thread] = field(default_factory=list)
    lines: int = 0
    writing: threading.Lock = field(default_factory=threading.Lock)
    log: str | None = None

    def drain(self) -> None:
        """Wait until the output of an ended process has been passed on.

        A machine under load may take its time, and so may a reader of the launcher's own output. A child that has left
        the session of the process may hold its output open for ever, so silence is an end, too.
        """
        last = begun = time.monotonic()
        passed = self.lines
        for reader in self.readers:
            while reader.is_alive() and (now := time.monotonic()) < min(begun + _DRAIN_S, last + _SILENCE_S):
                if self.writing.locked():
                    begun = last = now
                elif self.lines != passed:
                    passed, last = self.lines, now
                reader.join(0.05)

    def last_lines(self) -> list[str]:
        """Return the last output of the process."""
        self.drain()
        if self.log is None:
            return [*self.last, *self.errors]
        with open(os.path.join(self.log, "stderr"), encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in collections.deque(file, _KEPT_LINES)]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the launcher's options."""
    p = command_parser("sbpjax.distributed.launch")
    p.add_argument("--nnodes", type=int, default=1, help="number of machines")
    p.add_argument("--node_rank", type=int, default=0, help="index of this machine")
    p.add_argument("--nproc_per_node", type=int, default=1, help="processes on this machine")
    p.add_argument("--master_addr", default="127.0.0.1", help="the machine of rank 0")
    p.add_argument("--master_port", "--port", type=int, default=29500, help="its port; 0: a free one (one machine)")
    p.add_argument("-m", "--module", action="store_true", help="the script is a module, as with python -m")
    p.add_argument("--no_python", action="store_true", help="the script is a program of its own")
    p.add_argument("--redirect_stdout_and_stderr", action="store_true", help="write output to files in --logdir")
    p.add_argument("--logdir", default="log", help="where redirected output goes: <logdir>/rank_<r>/stdout, stderr")
    p.add_argument("--max_restarts", type=int, default=0, help="start all processes again, so often, when one dies")
    p.add_argument("--monitor_interval", type=float, default=0.1, help="seconds between looks at the processes")
    p.add_argument("--timeout", type=float, default=None, help="seconds that ranks wait for each other (600)")
    p.add_argument("--cpu_devices", type=int, default=None, help="virtual CPU devices of each process")
    p.add_argument("--secret_file", default=None, help="a file of mode 600 with the secret of the job (16+ characters)")
    p.add_argument("training_script", help="the script")
    p.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return p


def main(arguments: list[str] | None = None) -> int:
    """Run the launcher and return its exit code."""
    p = parser()
    options = p.parse_args(arguments)
    if options.nnodes < 1 or options.nproc_per_node < 1 or not 0 <= options.node_rank < options.nnodes:
        p.error(
            f"--nnodes {options.nnodes} --node_rank {options.node_rank} --nproc_per_node {options.nproc_per_node}: "
            "there is at least one machine and one process, and 0 <= node_rank < nnodes"
        )
    if options.module and options.no_python:
        p.error("-m and --no_python exclude each other")
    if options.master_port == 0 and options.nnodes > 1:
        p.error("--master_port 0 takes a free port of this machine: with several machines name one")
    return Launcher(options).run()


class Launcher:
    """Starts the processes of this machine and watches them.

    Args:
        options: the result of `parser`.
        environment: additional variables of the processes.
    """

    def __init__(self, options, environment: dict[str, str] | None = None) -> None:
        self.options = options
        self.environment = environment or {}
        self.ranks: list[Rank] = []
        self.signal: int | None = None
        self._secret = ""
        self._lock = threading.Lock()
        self._tie: Any = None

    def run(self) -> int:
        """Run until all processes ended, and return the exit code."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, self._on_signal)
        self._tie = _parent_death.ProcessTie()
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
                self._log(f"starting all ranks again ({cause})")
        finally:
            self._stop(0.0)
            self._tie.close()
            for number, handler in before.items():
                signal.signal(number, handler)

    # -- start -----------------------------------------------------------------------------------------------------

    def _start(self, restarts: int) -> None:
        o = self.options
        port = o.master_port or _free_port()
        self.ranks = []
        self._secret = secrets.token_hex(32)
        for local in range(o.nproc_per_node):
            rank = o.node_rank * o.nproc_per_node + local
            self.ranks.append(self._start_rank(rank, local, port, restarts))

    def _start_rank(self, rank: int, local: int, port: int, restarts: int) -> Rank:
        o = self.options
        env = {**os.environ, **self.environment}
        env.update(
            MASTER_ADDR=o.master_addr,
            MASTER_PORT=str(port),
            WORLD_SIZE=str(o.nnodes * o.nproc_per_node),
            RANK=str(rank),
            LOCAL_RANK=str(local),
            LOCAL_WORLD_SIZE=str(o.nproc_per_node),
            NODE_SIZE=str(o.nnodes),
            RESTART_COUNT=str(restarts),
            SBPJAX_LAUNCHED=str(os.getpid()),
            PYTHONUNBUFFERED="1",
        )
        env.setdefault("PYTHONHASHSEED", "0")  # sets of names are walked through alike on all ranks
        if o.secret_file is not None:
            env.pop("SBPJAX_JOB_SECRET", None)
            env["SBPJAX_JOB_SECRET_FILE"] = os.path.abspath(o.secret_file)
        elif o.nnodes == 1 and not env.get("SBPJAX_JOB_SECRET_FILE"):
            env.setdefault("SBPJAX_JOB_SECRET", self._secret)
        if o.timeout is not None:
            env["SBPJAX_TIMEOUT"] = str(o.timeout)
        if o.cpu_devices is not None:
            env["SBPJAX_CPU_DEVICES"] = str(o.cpu_devices)
        command = [o.training_script, *o.training_script_args]
        if not o.no_python:
            command = [sys.executable, "-u", *(["-m"] if o.module else []), *command]
        if o.redirect_stdout_and_stderr:
            log = os.path.join(o.logdir, f"rank_{rank}")
            os.makedirs(log, exist_ok=True)
            with open(os.path.join(log, "stdout"), "ab") as out, open(os.path.join(log, "stderr"), "ab") as err:
                process = self._tie.start(command, env=env, stdout=out, stderr=err)
            return Rank(rank, process, log=log)
        process = self._tie.start(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started = Rank(rank, process, writing=self._lock)
        ends = ((process.stdout, sys.stdout, started.last), (process.stderr, sys.stderr, started.errors))
        for source, sink, last in ends:
            reader = threading.Thread(target=self._pass_on, args=(started, source, sink, last), daemon=True)
            reader.start()
            started.readers.append(reader)
        return started

    def _pass_on(self, rank: Rank, source, sink, last: collections.deque) -> None:
        prefix = f"[rank {rank.rank}] " if self.options.nnodes * self.options.nproc_per_node > 1 else ""
        for raw in source:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            rank.lines += 1
            if is_connected_message(line):
                continue
            last.append(line)
            with self._lock:
                sink.write(f"{prefix}{line}\n")
                sink.flush()
        source.close()

    # -- watch -----------------------------------------------------------------------------------------------------

    def _watch(self) -> Rank | None:
        """Wait until all processes end well (None), or one fails: return that one and stop the others."""
        received = None
        while True:
            if self.signal is not None and received != self.signal:
                received = self.signal
                self._send(received)
                deadline = time.monotonic() + _GRACE_S
            if received is not None and time.monotonic() > deadline:
                self._stop(0.0)
            codes = [r.process.poll() for r in self.ranks]
            if received is None:
                for rank, code in zip(self.ranks, codes, strict=True):
                    if code not in (None, 0):
                        _kill(rank.process, signal.SIGKILL)  # its children hold its output open
                        self._report(rank)
                        self._stop(_GRACE_S)
                        return rank
            if all(code is not None for code in codes):
                for rank in self.ranks:
                    rank.drain()
                return None
            time.sleep(self.options.monitor_interval)

    def _report(self, rank: Rank) -> None:
        code = rank.process.returncode
        how = f"exited with code {code}" if code > 0 else f"was killed by {signal_name(-code)}"
        lines = rank.last_lines()
        how = f"rank {rank.rank} (process {rank.process.pid}) {how}"
        early = _early_ended_ranks(lines)
        if early:
            names = ", ".join(f"rank {r}" for r in early)
            how = f"{names} came to the end of the program while other ranks went on: look there first; {how}"
        self._log(f"{how}; the other ranks are stopped")
        if any("gloo::EnforceNotMet" in line for line in lines):
            self._log("ranks ran different operations: run again with SBPJAX_CHECK=always, which names them")
        for other in self.ranks:
            if other.process.poll() == 0:
                self._log(f"rank {other.rank} (process {other.process.pid}) had ended before, with code 0")
            elif _is_stopped(other.process):
                self._log(f"rank {other.rank} (process {other.process.pid}) was stopped by a signal, and did not go on")
        if lines:
            where = f" (more in {rank.log})" if rank.log else ""
            text = "\n".join(f"    {line}" for line in lines)
            self._log(f"the last lines of rank {rank.rank}{where}:\n{text}")

    def _code(self, failed: Rank | None) -> int:
        if failed is not None:
            code = failed.process.returncode
            return code if code > 0 else 128 - code
        if self.signal is not None:
            codes = [r.process.returncode for r in self.ranks]
            return EXIT_RESTART if EXIT_RESTART in codes else 128 + self.signal
        return 0

    def _log(self, text: str) -> None:
        with self._lock:
            sys.stderr.write(f"launch: {text}\n")
            sys.stderr.flush()

    # -- end -------------------------------------------------------------------------------------------------------

    def _on_signal(self, number: int, frame) -> None:
        if self.signal is not None:  # the user insists
            for rank in self.ranks:
                _kill(rank.process, signal.SIGKILL)
        self.signal = number

    def _send(self, number: int) -> None:
        for rank in self.ranks:
            if rank.process.poll() is None:
                rank.process.send_signal(number)

    def _stop(self, grace_s: float) -> None:
        """End the processes that still run, and their children."""
        if grace_s:
            self._send(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        for rank in self.ranks:
            if _is_stopped(rank.process):  # it hears no other signal
                _kill(rank.process, signal.SIGKILL)
            try:
                rank.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            _kill(rank.process, signal.SIGKILL)
            rank.process.wait()
        for rank in self.ranks:
            rank.drain()


def _early_ended_ranks(lines: list[str]) -> list[int]:
    """Return the ranks that ended while others waited for them; see `_core.runtime.trace_difference`."""
    return sorted({int(r) for line in lines for r in re.findall(r"rank (\d+) has come to the end of its", line)})


def _kill(process: subprocess.Popen, number: int) -> None:
    """Send a signal to the process group of a rank: the rank and its children, a session of their own."""
    try:
        if process.returncode is not None and _exists(process.pid):
            return  # a rank that ended long ago; its process id may be reused
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_stopped(process: subprocess.Popen) -> bool:
    """Return whether a signal (SIGSTOP) halted the process; not known without /proc."""
    try:
        with open(f"/proc/{process.pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False


def signal_name(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())
