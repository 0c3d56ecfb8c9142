"""Failure propagation: a failure on one process ends all, so that none waits in a collective for a lost process.

Rank 2 raises an error that the script does not catch. Its hook writes ``rank 2 failed: ValueError: ...`` into the
store of the coordination service and the process ends at once, without JAX's barrier at the exit, for which the
others would have to come. In every other process a thread waits for that entry. A main thread that waits in
`World.exchange` gets an error with that text; one that waits inside a compiled program cannot be woken, so after a few
seconds the watching thread prints the text and ends the process.

Without any failure rank 0 may wait in a program that rank 1 never runs (``if rank == 0: print(x)``). So the thread also
checks whether its main thread has been blocked in a program for the timeout: it used no processor time, and its
innermost Python frame is JAX's or this library's. Then that is the failure, and every rank reports its position.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import jax

from sbpjax._core.runtime import collective_trace, processes, signed_store
from sbpjax._core.runtime.processes import ENDED, Processes
from sbpjax._core.runtime.user_line import is_library_file, line_in_user_code
from sbpjax.errors import AT_ITS_END, ENDS_ALIKE, READ_BY_ALL, AgreementError, DistributedError, ForeignMessageError

from . import comparison
from .abort_message import set_terminate_handler
from .comparison import Comparison

EXIT_CODE = 1
_GRACE_S = 3.0  # the main thread has this long to end on its own, which gives the better traceback
_LAST_WORDS_S = 10.0  # time for a process about to be aborted to find the difference between the ranks
_COORDINATOR_STAYS_S = 1.5
_FOLLOWER_STAYS_S = 2.5
_KEY = "sbpjax/failed"
_DIFFERS = "ranks differ (found by rank "
_LOOK_S = 0.5
_IDLE_CPU_S = 0.01  # a thread that waits in a program uses less in all the time that it waits
_COMPILING = os.path.join(os.path.dirname(jax.__file__), "_src", "compiler.py")
_READING = os.path.join("tensor", "convert.py")
_OWN_TIMEOUTS = (signed_store.__file__, collective_trace.__file__, comparison.__file__, _COMPILING)


class BlockedTimer:
    """Measures how long the main thread has been blocked in a program."""

    def __init__(self) -> None:
        self._main = threading.main_thread().ident or 0
        self._clock = time.pthread_getcpuclockid(self._main) if hasattr(time, "pthread_getcpuclockid") else None
        self._used_s = 0.0
        self._since_s = time.monotonic()

    def frame(self) -> FrameType | None:
        """Return the innermost frame of the main thread."""
        return sys._current_frames().get(self._main)

    def seconds(self) -> float:
        """Return how long the main thread has been blocked in a program, as seen by earlier calls; 0 if it works."""
        now, frame = time.monotonic(), self.frame()
        used_s = time.clock_gettime(self._clock) if self._clock is not None else now
        name = "" if frame is None else frame.f_code.co_filename
        waits = is_library_file(name) and name not in _OWN_TIMEOUTS
        if not waits or used_s - self._used_s > _IDLE_CPU_S:
            self._used_s, self._since_s = used_s, now
        return now - self._since_s

    def reads(self) -> bool:
        """Return whether the main thread reads the value of a global tensor."""
        frame = self.frame()
        while frame is not None:
            if frame.f_code.co_name == "host" and frame.f_code.co_filename.endswith(_READING):
                return True
            frame = frame.f_back
        return False

    def line(self) -> str:
        """Return ``file:line`` of the user's code in which the main thread is."""
        return line_in_user_code(self.frame())


class FailureMonitor:
    """Reports this process's failure and waits for those of others.

    Args:
        world: the processes that take part.
        launcher: the process that started this one, which ends when that is gone; 0 without one.
    """

    def __init__(self, world: Processes, launcher: int = 0) -> None:
        self.world = world
        self.launcher = launcher
        self.failed = False
        self.code: int | None = None  # of sys.exit
        self._ended = self._differ = False
        self._before = sys.excepthook
        self._exit = sys.exit
        self._aborts_as_before: Callable[[], None] = lambda: None
        self._over = threading.Event()
        self._seen = threading.Event()  # another one's failure was printed
        self._standing = BlockedTimer()
        self._comparison = Comparison(world, self._report_difference)
        self._thread = threading.Thread(target=self._wait, name="sbpjax-failures", daemon=True)

    def start(self) -> None:
        """Install the hooks and start to wait."""
        self.world.report = self.report
        sys.excepthook = self._on_error
        sys.exit = self._on_exit
        self._aborts_as_before = set_terminate_handler(self._abort_message)
        atexit.register(self._at_exit)
        self._thread.start()
        if collective_trace.mode() != "off":
            self._comparison.start()

    def report(self, how: str) -> None:
        """Report this process's failure to the others."""
        if self.failed:
            return
        self.failed = True
        self._report(f"rank {self.world.rank} {how}")

    def _report(self, text: str) -> None:
        try:
            self.world.store.put(_KEY, text)
        except (jax.errors.JaxRuntimeError, ForeignMessageError):
            pass  # another one was first, or the coordinator is gone; a stranger's entry is replaced

    def _report_difference(self, text: str) -> None:
        """Report a difference between ranks to all processes, this one too; the main thread may be blocked."""
        self._report(f"{_DIFFERS}{self.world.rank}): {text}")

    def _on_error(self, kind, error, trace) -> None:
        try:
            processes.raise_for_ranks(error)
        except DistributedError as theirs:
            kind, error, trace = type(theirs), theirs.with_traceback(None), None  # its cause has the user's lines
        if isinstance(error, AgreementError) and not self.failed:
            self._differ = self.failed = True
            self._report_difference(str(error)[:2000])
        self.report(f"failed: {type(error).__name__}: {str(error)[:2000]}")
        self._before(kind, error, trace)

    def _on_exit(self, code: Any = None) -> NoReturn:
        """Record the code of ``sys.exit(code)``, which Python passes to no hook."""
        self.code = 0 if code is None else code if isinstance(code, int) else EXIT_CODE
        self._exit(code)

    def _at_exit(self) -> None:
        self._ended = True
        if not self.failed and self.code not in (0, None):
            self.report(f"ended with exit code {self.code}")
        if not self.failed:
            with contextlib.suppress(jax.errors.JaxRuntimeError, ForeignMessageError):  # as in `report`
                self.world.store.put(f"{ENDED}/{self.world.rank}", 0)
            self._comparison.finish()
            if collective_trace.find_stop_reason() is not None:
                self._seen.wait(_GRACE_S)
                self.failed = self._differ = True
        self._over.set()
        self._thread.join(5.0)
        self._aborts_as_before()
        if self.failed:
            sys.stdout.flush()
            sys.stderr.flush()
            self._end()

    def _end(self) -> NoReturn:
        self.world.finish_background()  # a checkpoint that all ranks have handed over is not lost
        # Another one failed first: let the launcher see that one end first. If ranks differ, all of them report it.
        if self.world.failure is not None or self._differ:
            time.sleep(_FOLLOWER_STAYS_S)
        elif self.world.rank == 0:  # with this process the coordination service ends: let the others hear of it before
            time.sleep(_COORDINATOR_STAYS_S)
        os._exit(self.code or EXIT_CODE)

    def _wait(self) -> None:
        # A short look each time: a thread that waits inside the client when Python ends would abort the process.
        text, forged = None, False
        while text is None:
            if self._over.wait(max(_LOOK_S, self.world.size / 500)):
                return
            if self.launcher and os.getppid() != self.launcher:
                print(f"sbpjax: the launcher is gone; rank {self.world.rank} ends", file=sys.stderr, flush=True)
                os._exit(EXIT_CODE)
            try:
                text = self.world.store.get_value(_KEY)
            except ForeignMessageError as error:
                forged = self._log_forged(error, forged)
            except jax.errors.JaxRuntimeError as error:
                if "NOT_FOUND" not in str(error):
                    return  # the coordinator is gone; JAX's client reports that itself
            if text is None and self._standing.seconds() > processes.timeout_s():
                self._report_blocked()
        if self.failed:
            return
        if text.startswith(_DIFFERS):
            collective_trace.stop(text.split("): ", 1)[1])
        self.world.failure = text
        if not self.failed:  # at once: with the coordinator JAX's client would end this process without a word
            place = "its end" if self._ended else self._standing.line()
            where = f"rank {self.world.rank} is at {place}"
            print(f"sbpjax: {text}\nsbpjax: {where}", file=sys.stderr, flush=True)
        self._seen.set()
        if not self._over.wait(_GRACE_S):
            self._end()

    def _abort_message(self) -> None:
        """Wait, in Gloo's thread, until the other threads report the difference of the ranks; then let it abort."""
        self._comparison.compare_often()
        deadline = time.monotonic() + _LAST_WORDS_S * (collective_trace.mode() != "off")
        while self._thread.is_alive() and time.monotonic() < deadline:  # it ends this process after its report
            time.sleep(0.05)

    def _log_forged(self, error: ForeignMessageError, is_reported: bool) -> bool:
        """Log once that an unauthenticated failure report was ignored."""
        if not is_reported:
            print(f"sbpjax: rank {self.world.rank} does not believe {_KEY}: {error}", file=sys.stderr, flush=True)
        return True

    def _report_blocked(self) -> NoReturn:
        """Report that this rank is blocked in a program, and end."""
        seconds, ended = processes.timeout_s(), [r for r in range(self.world.size) if self.world.has_ended(r)]
        how = f"waited {seconds:g} s for other ranks in a program, at {self._standing.line()}"
        how += "".join(f"; rank {r} {AT_ITS_END}" for r in ended)
        self.report(how)
        rule = "every rank runs the same operations in the same order, reading a global tensor included"
        fix = "look where the other ranks are; SBPJAX_TIMEOUT=<seconds> changes how long ranks wait"
        if ended:
            rule, fix = ENDS_ALIKE
        elif self._standing.reads():
            rule, fix = READ_BY_ALL
        text = f"rank {self.world.rank} {how}\n  rule: {rule}\n  fix:  {fix}"
        print(f"sbpjax: {text}", file=sys.stderr, flush=True)
        self._end()
