"""Background compilation of eager ops: other threads compile a program before its first call.

The program of an op's backward is known when the forward is recorded, a forward and a loss before it is called:

    this thread     conv2d ─ batch_norm ─ hardswish ─ … ─ loss │ hardswish_backward ─ …
    another one              conv2d_backward ─ batch_norm_backward ─ …

XLA compiles without Python's lock, so with two cores a first step takes a little more than half as long. The other
threads begin with the op recorded first, and the walk backward with the one recorded last: it compiles itself any op
that no thread has begun. All this needs a hint that there will be a backward, `enable_backward_compile`: an optimizer
is made. Its own update is compiled when no backward waits. A program that is evaluated at its first calls comes when
half of these are over.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.runtime.compilation_cache import compile_cached
from sbpjax._core.runtime.host_limits import cores
from sbpjax._core.runtime.user_line import user_line

from . import evaluator, recompile_log
from .evaluator import setting

_MOST_WAITING = 256  # new shapes may come faster than they are compiled
_MOST_THREADS = 4
_MOST_OPTIMIZERS = 4  # of those that were made and not stepped, most are never


class BackgroundCompile:
    """A compilation by another thread.

    Args:
        misses: of the op, see `op_calls`.
        structs: shape and dtype of its inputs.
        at_once: whether it is compiled also if it will be evaluated first.
    """

    def __init__(self, misses: Any, structs: list, at_once: bool) -> None:
        self._misses, self._structs, self._at_once = misses, structs, at_once
        self._line = user_line()
        self._done = threading.Event()

    def finish(self) -> None:
        """Wait for the thread that has begun it; drop it if none has."""
        with _lock:
            waits = self not in _waiting
            if not waits:
                _waiting.remove(self)
        if waits:
            self._done.wait()
        self._misses.ahead = None

    def compile(self) -> None:
        """Compile on this thread."""
        recompile_log.set_user_line(self._line)
        try:
            jitted = self._misses.jit_function(self._structs)
            traced = jitted.trace(*self._structs)
            if self._at_once or not (setting.is_on() and evaluator.first_use.is_evaluated(traced.jaxpr)):
                compile_cached(traced.lower())
        finally:
            recompile_log.set_user_line(None)
            self._done.set()


_lock = threading.Lock()
_waiting: deque[BackgroundCompile] = deque()
_behind: deque[Callable[[], None]] = deque(maxlen=_MOST_OPTIMIZERS)
_threads = 0
_expected = False


def enable_backward_compile(behind: Callable[[], None]) -> None:
    """Note that recorded ops will be differentiated, so that backwards are worth compiling ahead.

    Args:
        behind: compiles the programs after the backward; another thread calls it when no backward waits.
    """
    global _expected
    _expected = True
    _behind.append(behind)


def compile_backward(misses: Any, structs: list) -> None:
    """Let another thread compile an op for inputs like these, if one is free and a backward is expected."""
    if _expected and trace_state_clean():
        compile_soon(misses, structs, at_once=False)


def compile_soon(misses: Any, structs: list, at_once: bool = True) -> None:
    """Let another thread compile an op for inputs like these, if one is free."""
    if cores() > 1 and len(_waiting) < _MOST_WAITING:
        misses.ahead = BackgroundCompile(misses, structs, at_once)
        _start(_waiting, misses.ahead)


def run_soon(task: Callable[[], None]) -> None:
    """Let another thread run a compilation when no op waits, if one is free."""
    if cores() > 1:
        _start(_behind, task)


def _start(queue: deque, task: Any) -> None:
    global _threads
    with _lock:
        queue.append(task)
        if _threads >= min(_MOST_THREADS, cores() - 1):
            return
        _threads += 1
    threading.Thread(target=_compile_queued, name="sbpjax-compile").start()


def _compile_queued() -> None:
    """Compile the queued programs, then end; a process that ends waits for one program at most."""
    global _threads
    while True:
        with _lock:
            if not (_waiting or _behind) or not threading.main_thread().is_alive():
                _threads -= 1
                return
            task = _waiting.popleft().compile if _waiting else _behind.popleft()
        # An error of any class occurs again in the call, and is raised where the user sees it.
        with contextlib.suppress(Exception):
            task()
