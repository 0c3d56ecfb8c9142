"""Background compilation of eager ops: other threads compile an op before its first call.

The program of an op's backward is known when the forward is recorded, a forward and a loss before it is called:

    this thread     conv2d ─ batch_norm ─ hardswish ─ … ─ loss │ hardswish_backward ─ …
    another one              conv2d_backward ─ batch_norm_backward ─ …

XLA compiles without Python's lock, so with two cores a first step takes a little more than half as long. The other
threads begin with the op recorded first, and the walk backward with the one recorded last: it compiles itself any op
that no thread has begun. All this needs a hint that there will be a backward, `enable_backward_compile`: an optimizer
is made. Its own update is compiled when no backward waits.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core.compiler.eager.options import options_of
from sbpjax._core.jax_private import trace_state_clean
from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh
from sbpjax._core.runtime.cores import cores
from sbpjax.errors import user_line

from . import evaluator, shape_cache
from .evaluator import setting
from .tiered import select_tiered_program

_MOST_WAITING = 256  # new shapes may come faster than they are compiled
_MOST_THREADS = 4
_MOST_OPTIMIZERS = 4  # of those that were made and not stepped, most are never


class FirstCall:
    """The value of `Op.call` until the first call.

    Args:
        op: the op.
    """

    def __init__(self, op: Any) -> None:
        self._op = op
        self._function = op.function()
        self._plain = jit_without_mesh(self._function)

    # Reports read `op.call.lower` and the like.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def __call__(self, *arrays: Any) -> Any:
        if not trace_state_clean():
            return self._plain(*arrays)
        if setting.is_on():
            self._op.call = evaluator.first_use.EvaluatedCall(self._op, self._plain)
        else:
            self._op.options, self._op.call = self._select_first_function(arrays)
        return self._op.call(*arrays)

    @hide_mesh
    def _select_first_function(self, arrays: Sequence) -> tuple:
        """Return the options for arrays, and the function to call now: one of many programs is compiled quickly."""
        options, usual = self.select_function(arrays)
        if not shape_cache.has_many_shapes(self._op.name):
            return options, usual
        return options, select_tiered_program(
            self._function, usual, arrays, functools.partial(setattr, self._op, "call")
        )

    def select_function(self, arrays: Sequence) -> tuple:
        """Return the options for arrays, or `jax.ShapeDtypeStruct`s, and the function to call."""
        options = options_of(self._op.name, self._plain.trace(*arrays).jaxpr)
        # Of the same function: JAX keeps its trace, and the programs compiled with the same options.
        return options, self._plain if options is None else jit_without_mesh(self._function, compiler_options=options)


class BackgroundCompile(FirstCall):
    """A first call that another thread may compile ahead of time.

    Args:
        op: the op.
        structs: shape and dtype of its inputs.
    """

    def __init__(self, op: Any, structs: list) -> None:
        super().__init__(op)
        self._structs = structs
        self._line = user_line()
        self._done = threading.Event()

    def __call__(self, *arrays: Any) -> Any:
        with _lock:
            waits = self not in _waiting
            if not waits:
                _waiting.remove(self)
        if waits:
            self._done.wait()
        return super().__call__(*arrays)

    def compile(self) -> None:
        """Compile on this thread."""
        shape_cache.set_user_line(self._line)
        try:
            # A program that is evaluated at its first calls may never be compiled.
            if not setting.is_on() or not evaluator.first_use.has_rules(self._plain.trace(*self._structs).jaxpr):
                self._select_first_function(self._structs)[1].lower(*self._structs).compile()
        finally:
            shape_cache.set_user_line(None)
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


def compile_ahead(op: Any, structs: list) -> None:
    """Let another thread compile an op for inputs like these, if one is free and a backward is expected."""
    global _threads
    most = min(_MOST_THREADS, cores() - 1)
    if not _expected or most < 1 or len(_waiting) >= _MOST_WAITING or not trace_state_clean():
        return
    op.call = ahead = BackgroundCompile(op, structs)
    with _lock:
        _waiting.append(ahead)
        if _threads >= most:
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
