"""A failure on one process reaches all: nobody waits in a collective for a process that does not come.

Rank 2 raises an error that the script does not catch. Its hook writes ``rank 2 failed: ValueError: ...`` into the
store of the coordination service and the process ends at once, without JAX's barrier at the exit, for which the
others would have to come. In every other process a thread waits for that entry. Whoever waits in `World.exchange`
gets an error with that text; who waits inside a compiled program cannot be woken, so after a few seconds the thread
prints the text and ends the process.

Nobody may have failed, and yet rank 0 waits in a program that rank 1 never runs (``if rank == 0: print(x)``). So the
thread also looks whether its main thread has stood in a program for the timeout: it used no processor time, and its
innermost Python frame is JAX's or this library's. Then that is the failure, and every rank says where it stood.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from types import FrameType
from typing import Any, NoReturn

import jax

from sbpjax import world as _world
from sbpjax.errors import is_library_file
from sbpjax.world import ENDED, World

EXIT_CODE = 1
_GRACE_S = 3.0  # the main thread has this long to end on its own, which gives the better traceback
_COORDINATOR_STAYS_S = 1.5
_FOLLOWER_STAYS_S = 2.5
_KEY = "sbpjax/failed"
_LOOK_S = 0.5
_IDLE_CPU_S = 0.01  # a thread that waits in a program uses less in all the time that it waits
_OWN_TIMEOUTS = (_world.__file__, os.path.join(os.path.dirname(jax.__file__), "_src", "compiler.py"))


class Standing:
    """How long the main thread has stood in a program that it waits for."""

    def __init__(self) -> None:
        self._main = threading.main_thread().ident or 0
        self._clock = time.pthread_getcpuclockid(self._main) if hasattr(time, "pthread_getcpuclockid") else None
        self._used_s = 0.0
        self._since_s = time.monotonic()

    def frame(self) -> FrameType | None:
        """Return the innermost frame of the main thread."""
        return sys._current_frames().get(self._main)

    def seconds(self) -> float:
        """Return for how long the thread has waited in a program, as far as earlier calls saw it; 0 if it works."""
        now, frame = time.monotonic(), self.frame()
        used_s = time.clock_gettime(self._clock) if self._clock is not None else now
        name = "" if frame is None else frame.f_code.co_filename
        waits = is_library_file(name) and name not in _OWN_TIMEOUTS
        if not waits or used_s - self._used_s > _IDLE_CPU_S:
            self._used_s, self._since_s = used_s, now
        return now - self._since_s

    def line(self) -> str:
        """Return ``file:line`` of the user's code in which the main thread is."""
        frame = self.frame()
        while frame is not None:
            if not is_library_file(frame.f_code.co_filename):
                return f"{frame.f_code.co_filename}:{frame.f_lineno}"
            frame = frame.f_back
        return "<unknown>"


class Watch:
    """Reports this process's failure and waits for those of others.

    Args:
        world: who takes part.
        client: the client of JAX's coordination service.
        launcher: the process that started this one, which ends when that is gone; 0 without one.
    """

    def __init__(self, world: World, client, launcher: int = 0) -> None:
        self.world = world
        self.launcher = launcher
        self.client = client
        self.failed = False
        self.code: int | None = None  # of sys.exit
        self._before = sys.excepthook
        self._exit = sys.exit
        self._over = threading.Event()
        self._standing = Standing()
        self._thread = threading.Thread(target=self._wait, name="sbpjax-failures", daemon=True)

    def start(self) -> None:
        """Install the hooks and start to wait."""
        sys.excepthook = self._on_error
        sys.exit = self._on_exit
        atexit.register(self._at_exit)
        self._thread.start()

    def report(self, how: str) -> None:
        """Tell the other processes that this one failed."""
        if self.failed:
            return
        self.failed = True
        try:
            self.client.key_value_set(_KEY, f"rank {self.world.rank} {how}")
        except jax.errors.JaxRuntimeError:  # another one was first, or the coordinator is gone
            pass

    def _on_error(self, kind, error, trace) -> None:
        self.report(f"failed: {type(error).__name__}: {str(error)[:2000]}")
        self._before(kind, error, trace)

    def _on_exit(self, code: Any = None) -> NoReturn:
        """Note the code of ``sys.exit(code)``, which Python tells no hook."""
        self.code = 0 if code is None else code if isinstance(code, int) else EXIT_CODE
        self._exit(code)

    def _at_exit(self) -> None:
        if not self.failed and self.code not in (0, None):
            self.report(f"ended with exit code {self.code}")
        if not self.failed:
            with contextlib.suppress(jax.errors.JaxRuntimeError):  # the coordinator is gone
                self.client.key_value_set(f"{ENDED}/{self.world.rank}", "0")
        self._over.set()
        self._thread.join(5.0)
        if self.failed:
            sys.stdout.flush()
            sys.stderr.flush()
            self._end()

    def _end(self) -> NoReturn:
        if self.world.failure is not None:  # another one failed first: let the launcher see that one end first
            time.sleep(_FOLLOWER_STAYS_S)
        elif self.world.rank == 0:  # with this process the coordination service ends: let the others hear of it before
            time.sleep(_COORDINATOR_STAYS_S)
        os._exit(self.code or EXIT_CODE)

    def _wait(self) -> None:
        # A short look each time: a thread that waits inside the client when Python ends would abort the process.
        text = None
        while text is None:
            if self._over.wait(max(_LOOK_S, self.world.size / 500)):
                return
            if self.launcher and os.getppid() != self.launcher:
                print(f"sbpjax: the launcher is gone; rank {self.world.rank} ends", file=sys.stderr, flush=True)
                os._exit(EXIT_CODE)
            try:
                text = self.client.key_value_try_get(_KEY)
            except jax.errors.JaxRuntimeError as error:
                if "NOT_FOUND" not in str(error):
                    return  # the coordinator is gone; JAX's client says so itself
            if text is None and self._standing.seconds() > _world.timeout_s():
                self._stuck()
        if self.failed:
            return
        self.world.failure = text
        if not self.failed:  # at once: with the coordinator JAX's client would end this process without a word
            where = f"rank {self.world.rank} is at {self._standing.line()}"
            print(f"sbpjax: {text}\nsbpjax: {where}", file=sys.stderr, flush=True)
        if not self._over.wait(_GRACE_S):
            self._end()

    def _stuck(self) -> NoReturn:
        """Report that this rank waits for others in a program, and end."""
        seconds, ended = _world.timeout_s(), [r for r in range(self.world.size) if self.world.ended(r)]
        how = f"waited {seconds:g} s for other ranks in a program, at {self._standing.line()}"
        how += f"; ranks {ended} have come to the end of theirs" if ended else ""
        self.report(how)
        rule = "every rank runs the same operations in the same order, reading a global tensor included"
        fix = "look where the other ranks are; SBPJAX_TIMEOUT=<seconds> changes how long ranks wait"
        text = f"rank {self.world.rank} {how}\n  rule: {rule}\n  fix:  {fix}"
        print(f"sbpjax: {text}", file=sys.stderr, flush=True)
        self._end()
