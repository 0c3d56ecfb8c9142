"""Named ranges of a program, seen in traces and counted by `profile`.

    with record_function("attention"):
        ...

JAX launches and goes on, so a range's time on the host is the time of its launches. With ``SBPJAX_PROFILE_SYNC=1``, the
end of a range waits for the work that it launched.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax


class Range(NamedTuple):
    """One range.

    Attributes:
        name: its name.
        start_s: when it began.
        duration_s: how long it took.
        depth: in how many ranges it is nested.
    """

    name: str
    start_s: float
    duration_s: float
    depth: int


_collectors: list[list[Range]] = []
_stack = threading.local()


def collect(into: list[Range]) -> None:
    """Append every stretch that ends from now on to a list."""
    _collectors.append(into)


def stop_collecting(into: list[Range]) -> None:
    """Stop the recording started by `collect`."""
    _collectors[:] = [c for c in _collectors if c is not into]


class record_function:
    """A named stretch, as a block or as a decorator.

    Args:
        name: its name.
        args: accepted.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        self._annotation = jax.profiler.TraceAnnotation(self.name)
        self._annotation.__enter__()
        depth = getattr(_stack, "depth", 0)
        _stack.depth, self._depth = depth + 1, depth
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: Any) -> None:
        if os.environ.get("SBPJAX_PROFILE_SYNC", "0") not in ("", "0"):
            for device in jax.local_devices():
                jax.device_put(0, device).block_until_ready()
        duration = time.perf_counter() - self._start
        _stack.depth = self._depth
        self._annotation.__exit__(None, None, None)
        for collector in _collectors:
            collector.append(Range(self.name, self._start, duration, self._depth))

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return wrapper


def range_push(range_name: str) -> None:
    """Begin a stretch, ended by `range_pop`."""
    stack = _stack.__dict__.setdefault("pushed", [])
    stack.append(record_function(range_name).__enter__())


def range_pop() -> None:
    """End the stretch begun last."""
    stack = _stack.__dict__.get("pushed")
    if stack:
        stack.pop().__exit__()


def profiler_start() -> None:
    """Start a trace of JAX's profiler into the directory ``$SBPJAX_TRACE_DIR``, else ``./sbpjax_trace``."""
    jax.profiler.start_trace(os.environ.get("SBPJAX_TRACE_DIR", "sbpjax_trace"))


def profiler_stop() -> None:
    """Stop the trace that `profiler_start` began."""
    jax.profiler.stop_trace()
