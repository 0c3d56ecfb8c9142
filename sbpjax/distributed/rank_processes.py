"""Rank processes of one machine: start, output with the rank before each line, report of a failure, end.

    ranks = RankProcesses(options)
    ranks.make_tie()
    ranks.start_rank(3, 1, os.environ)      # [rank 3] loss 2.31
    ranks.stop(grace_s=10.0)                # SIGTERM to each rank, then SIGKILL to its process group

Each rank is the leader of a session, tied to this process (`_core.runtime.parent_death`): it ends with it, and so do
the processes that it started. The launcher of one job (`launch`) and that of a job over changing hosts (`elastic`)
start their ranks through this class.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sbpjax._core.runtime import parent_death
from sbpjax._core.serialization import signing

EXIT_RESTART = 75  # EX_TEMPFAIL of sysexits.h: "try again later"
# Gloo prints it for every process and every group of them (jaxlib 0.10.2), and no setting of its own turns it off. It
# does so in pieces: those of two threads may come between each other.
_CONNECTED = re.compile(
    r"\[Gloo\] Rank \d+ is connected to (\d+) peer ranks\. Expected number of connected peer ranks is : (\d+)"
)
_PIECES = re.compile(
    r"\d*(?:(?:\[Gloo\] Rank | is connected to | peer ranks\. |Expected number of connected peer ranks is : )\d*)+"
)
_KEPT_LINES = 20
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()  # for snapshots
_SILENCE_S, _DRAIN_S = 5.0, 60.0  # of output that a process left: how long none may come, how long it may take
_STANDBY_AFTER_S = 20.0  # of the ranks' start, which needs the processors first


def is_connected_message(line: str) -> bool:
    """Return whether a line only reports that Gloo connected all expected processes."""
    found = _CONNECTED.fullmatch(line)
    return _PIECES.fullmatch(line) is not None if found is None else found[1] == found[2]


@dataclass
class Rank:
    """One started process.

    Attributes:
        rank: its rank among all processes; None of a standby.
        process: the process.
        last: the last lines of its output.
        errors: the last lines of its error output, which the other must not crowd out.
        readers: the threads that pass its output on.
        lines: how many lines they have passed on.
        writing: lock of the launcher's own output.
        log: the directory with its output, if that is redirected.
    """

    rank: int | None
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


class RankProcesses:
    """The rank processes of this machine.

    Args:
        options: the options of the launcher, see `launch.parser`.
        environment: additional variables of the processes.

    Attributes:
        snapshots: the folder in memory in which the trainer's snapshots outlive the ranks.
    """

    def __init__(self, options, environment: dict[str, str] | None = None) -> None:
        self.options = options
        self.environment = environment or {}
        self.ranks: list[Rank] = []
        self.world_size = 1
        self.snapshots = str(signing.private_folder(f"{MEMORY}/sbpjax-{os.getuid()}") / secrets.token_hex(8))
        self._lock = threading.Lock()
        self._tie: Any = None
        self._standbys: list[Rank] = []
        self._begun = 0.0

    def make_tie(self, lease: str | None = None) -> None:
        """Tie the ranks that are started from now on to this process; see `parent_death.ProcessTie`."""
        self._tie = parent_death.ProcessTie(lease)

    def start_rank(self, rank: int, local: int, env: Mapping[str, str]) -> None:
        """Start a rank.

        Args:
            rank: its index among all ranks.
            local: its index on this machine.
            env: the variables that all ranks have.
        """
        o = self.options
        self._begun = time.monotonic()
        env = self._with_settings(env)
        env.update(
            RANK=str(rank),
            LOCAL_RANK=str(local),
            LOCAL_WORLD_SIZE=str(o.nproc_per_node),
            SBPJAX_LAUNCHED=str(os.getpid()),
            SBPJAX_SNAPSHOT_DIR=self.snapshots,
        )
        standby = self._standbys.pop() if self._standbys else None
        if standby is not None and _give_place(standby, rank, env):
            self.ranks.append(standby)
            return
        command = [o.training_script, *o.training_script_args]
        if not o.no_python:
            command = [sys.executable, "-u", *(["-m"] if o.module else []), *command]
        if o.redirect_stdout_and_stderr:
            log = os.path.join(o.logdir, f"rank_{rank}")
            os.makedirs(log, exist_ok=True)
            with open(os.path.join(log, "stdout"), "ab") as out, open(os.path.join(log, "stderr"), "ab") as err:
                process = self._tie.start(command, env=env, stdout=out, stderr=err)
            self.ranks.append(Rank(rank, process, log=log))
            return
        self.ranks.append(self._start_with_readers(self._tie, rank, command, env=env))

    def keep_standbys(self) -> None:
        """Start a standby for each rank of this machine once the ranks have run for some time; see `standby`."""
        o = self.options
        if o.standby is None or self._standbys or time.monotonic() < self._begun + _STANDBY_AFTER_S:
            return
        program = [*(["-m"] if o.module else []), o.training_script, *o.training_script_args]
        command = [sys.executable, "-u", "-m", "sbpjax.distributed.standby", o.standby, *program]
        env, tie = self._with_settings(os.environ | self.environment), self._make_standby_tie()
        for _ in range(o.nproc_per_node):
            self._standbys.append(self._start_with_readers(tie, None, command, env=env, stdin=subprocess.PIPE))

    def end_standbys(self) -> None:
        """End the standbys."""
        for standby in self._standbys:
            _close_input(standby)
            kill(standby.process, signal.SIGKILL)
            standby.process.wait()
        self._standbys = []

    def _make_standby_tie(self) -> Any:
        return self._tie

    def _with_settings(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with what the options set for all ranks alike."""
        found = {"PYTHONHASHSEED": "0", **env, "PYTHONUNBUFFERED": "1"}  # sets of names are walked through alike
        if self.options.timeout is not None:
            found["SBPJAX_TIMEOUT"] = str(self.options.timeout)
        if self.options.cpu_devices is not None:
            found["SBPJAX_CPU_DEVICES"] = str(self.options.cpu_devices)
        return found

    def _start_with_readers(self, tie: Any, rank: int | None, command: list[str], **options: Any) -> Rank:
        """Start a process whose output is passed on."""
        process = tie.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        started = Rank(rank, process, writing=self._lock)
        ends = ((process.stdout, sys.stdout, started.last), (process.stderr, sys.stderr, started.errors))
        for source, sink, last in ends:
            reader = threading.Thread(target=self._pass_on, args=(started, source, sink, last), daemon=True)
            reader.start()
            started.readers.append(reader)
        return started

    def _pass_on(self, rank: Rank, source, sink, last: collections.deque) -> None:
        for raw in source:
            prefix = "[standby] " if rank.rank is None else f"[rank {rank.rank}] " if self.world_size > 1 else ""
            line = raw.decode("utf-8", "replace").rstrip("\n")
            rank.lines += 1
            if is_connected_message(line):
                continue
            last.append(line)
            with self._lock:
                sink.write(f"{prefix}{line}\n")
                sink.flush()
        source.close()

    def report(self, rank: Rank) -> None:
        """Print the end of a rank, and its last lines."""
        code = rank.process.returncode
        how = f"exited with code {code}" if code > 0 else f"was killed by {signal_name(-code)}"
        lines = rank.last_lines()
        how = f"rank {rank.rank} (process {rank.process.pid}) {how}"
        early = _early_ended_ranks(lines)
        if early:
            names = ", ".join(f"rank {r}" for r in early)
            how = f"{names} came to the end of the program while other ranks went on: look there first; {how}"
        self.log(f"{how}; the other ranks are stopped")
        if any("gloo::EnforceNotMet" in line for line in lines):
            self.log("ranks ran different operations: run again with SBPJAX_CHECK=always, which names them")
        for other in self.ranks:
            if other.process.poll() == 0:
                self.log(f"rank {other.rank} (process {other.process.pid}) had ended before, with code 0")
            elif is_stopped(other.process):
                self.log(f"rank {other.rank} (process {other.process.pid}) was stopped by a signal, and did not go on")
        if lines:
            where = f" (more in {rank.log})" if rank.log else ""
            text = "\n".join(f"    {line}" for line in lines)
            self.log(f"the last lines of rank {rank.rank}{where}:\n{text}")

    def log(self, text: str) -> None:
        """Print a line of the launcher."""
        with self._lock:
            sys.stderr.write(f"launch: {text}\n")
            sys.stderr.flush()

    def send(self, number: int) -> None:
        """Send a signal to the ranks that still run."""
        for rank in self.ranks:
            if rank.process.poll() is None:
                rank.process.send_signal(number)

    def stop(self, grace_s: float) -> None:
        """End the processes that still run, and their children."""
        if grace_s:
            self.send(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        for rank in self.ranks:
            if is_stopped(rank.process):  # it hears no other signal
                kill(rank.process, signal.SIGKILL)
            try:
                rank.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            kill(rank.process, signal.SIGKILL)
            rank.process.wait()
        for rank in self.ranks:
            rank.drain()


def _early_ended_ranks(lines: list[str]) -> list[int]:
    """Return the ranks that ended while others waited for them; see `_core.runtime.trace_difference`."""
    return sorted({int(r) for line in lines for r in re.findall(r"rank (\d+) has come to the end of its", line)})


def _give_place(standby: Rank, rank: int, env: Mapping[str, str]) -> bool:
    """Let a standby go on as a rank; return whether it is there."""
    standby.rank = rank
    with contextlib.suppress(OSError):
        standby.process.stdin.write(json.dumps(dict(env)).encode() + b"\n")  # type: ignore[union-attr]
    _close_input(standby)
    return standby.process.poll() is None


def _close_input(standby: Rank) -> None:
    with contextlib.suppress(OSError):
        standby.process.stdin.close()  # type: ignore[union-attr]


def kill(process: subprocess.Popen, number: int) -> None:
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


def is_stopped(process: subprocess.Popen) -> bool:
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
