"""Child processes that are killed when their parent dies, also by SIGKILL.

    tie = ProcessTie()
    process = tie.start(["python", "train.py"], stdout=subprocess.PIPE)
    tie.close()  # or this process dies, by SIGKILL too: the process and its session are killed

A process that is killed cannot clean up. So this file is started instead of the program: it starts a watcher, then
becomes the program, with the same process id.

    launcher ── pipe ──▶ watcher of rank 0, in the session of rank 0 ── end of the pipe: SIGKILL to the session
             ── pipe ──▶ watcher of rank 1, …

The watcher is there before the first instruction of the program, so a launcher killed meanwhile is noticed, too.
As long as it is a member of the process group, no other group gets its number. On Linux the kernel kills the program as
well (PR_SET_PDEATHSIG), if anything has ended the watcher. It does so when the *thread* that started the program ends,
see prctl(2), so only the main thread makes use of it.

A parent may also be there and not run: stopped by SIGSTOP, or blocked. With a *lease*, a file in which the parent keeps
the time of `time.monotonic` until which the programs may run, the watchers kill them after that time.

This file needs nothing but Python, and is run alone, by its path.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time

_PR_SET_PDEATHSIG = 1
_POLL_S = 1.0
_LEASE_POLL_MS = 50
_PYTHON = ("-I", "-S")  # a quick start: no site-packages, no variables


class ProcessTie:
    """A launcher of processes that end when this process does, or closes it.

    Args:
        lease: the path of a file that `extend_lease` wrote; the processes are killed when it has run out.
    """

    def __init__(self, lease: str | None = None) -> None:
        self._read, self._write = os.pipe()
        self._open = True
        self._lease = lease or ""

    def start(self, command: list[str], **options):
        """Start a program in a session of its own, and return its `subprocess.Popen`.

        Args:
            command: the program and its arguments. One that cannot be run ends with code 127 and a message.
            options: those of `subprocess.Popen`.
        """
        import subprocess  # not for those that this file watches

        by_main = threading.current_thread() is threading.main_thread()
        facts = [str(self._read), str(os.getpid()), str(int(by_main)), self._lease]
        command = [sys.executable, *_PYTHON, os.path.abspath(__file__), *facts, *command]
        return subprocess.Popen(command, pass_fds=[self._read], start_new_session=True, **options)

    def close(self) -> None:
        """Kill the started processes that are still there."""
        if self._open:
            self._open = False
            os.close(self._write)
            os.close(self._read)

    def __enter__(self) -> ProcessTie:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def end_with_parent(parent: int, by_main_thread: bool) -> None:
    """End this process at once when its parent is gone.

    Args:
        parent: the process id of the parent, as given by itself.
        by_main_thread: whether the parent's main thread started this process, which lives as long as the parent.
    """
    if by_main_thread:
        die_with_parent()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL_S)
        os._exit(1)

    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=look, daemon=True, name="sbpjax-parent").start()


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends; Linux only."""
    with contextlib.suppress(Exception):  # no Linux, no ctypes, or a sandbox that forbids it: others watch, too
        import ctypes  # here: not every Python has it

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def extend_lease(path: str, until: float) -> None:
    """Allow the processes of a lease to run until a time of `time.monotonic`, which all processes of Linux share."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(handle, f"{until:018.6f}".encode(), 0)
    finally:
        os.close(handle)


def _exec_watched(pipe: int, parent: int, by_main_thread: bool, lease: str, command: list[str]) -> None:
    """Start a watcher and become a program."""
    ends = [pipe]
    with contextlib.suppress(AttributeError, OSError):  # Linux 5.3: also if a copy of the parent holds the pipe
        ends.append(os.pidfd_open(parent))
    if by_main_thread:
        die_with_parent()
    if os.getppid() != parent:  # it was gone before anything watched it
        os._exit(1)
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            for end in ends:
                os.set_inheritable(end, True)
            watcher = [sys.executable, *_PYTHON, os.path.abspath(__file__), "watch", lease, *map(str, ends)]
            os.execv(sys.executable, watcher)  # its command line must not look like that of the program
        os._exit(0)
    os.waitpid(child, 0)  # the watcher is no child of the program, which may wait for its children
    for end in ends:
        os.close(end)
    for number in ("SIGPIPE", "SIGXFZ", "SIGXFSZ"):  # Python ignores them, and a program inherits that
        if hasattr(signal, number):
            signal.signal(getattr(signal, number), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]!r}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)


def _watch(lease: str, ends: list[int]) -> None:
    """Wait until the parent is gone, has closed the pipe, or lets the lease run out, and kill this session."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):  # meant for the program
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for taken in range(3):  # a reader of the program's output must find its end
        os.dup2(null, taken)
    os.chdir("/")
    waiting = select.poll()
    for end in ends:
        waiting.register(end, select.POLLIN)
    if lease:
        while not waiting.poll(_LEASE_POLL_MS) and not _is_over(lease):
            pass
    else:
        waiting.poll()
    os.killpg(os.getpgid(0), signal.SIGKILL)  # this process, too


def _is_over(lease: str) -> bool:
    try:
        with open(lease, "rb") as file:
            return time.monotonic() > float(file.read())
    except (OSError, ValueError):  # removed with the folder of its parent
        return True


if __name__ == "__main__":
    if sys.argv[1] == "watch":
        _watch(sys.argv[2], [int(end) for end in sys.argv[3:]])
    else:
        _exec_watched(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1", sys.argv[4], sys.argv[5:])
