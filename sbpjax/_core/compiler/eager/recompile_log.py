"""Recompilation warnings: total compile time, and the source lines that cause it.

A loop over batches of ever-changing length compiles every op of its body for each: a line that does so in ten steps,
counted by their backwards, is worth a warning, and so is the 60th shape of an op at one line. The layers of a model
that share a line differ in their weights, so shapes of all inputs but the first are part of the count; lines without
weights, and those that draw them, meet up to 50 in the first step of a large model, and no more.

Both are warnings of the logger ``sbpjax``; ``SBPJAX_COMPILE_NOTE=off`` leaves out the first.

JAX calls listeners for each compilation (`jax.monitoring`), with the name of the function but not the function itself:
the op whose trace came last on this thread is the one.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

import jax

from sbpjax._core.compiler import mappings
from sbpjax._core.runtime.lru_cache import LRUCache
from sbpjax._core.runtime.user_line import UNKNOWN_LINE, user_line

log = logging.getLogger("sbpjax")
WARN_AT_SHAPES = 60  # shapes
WARN_IN_STEPS = 10  # steps

SLOW_S = 2.0
REPEAT_S = 9.0
_COMPILED = "/jax/core/compile/backend_compile_duration"

_programs = LRUCache(16384)
# Lines of the program that runs: as many as it has.
_said: set[str] = set()


class CompileCounter:
    """The number of op programs that this process has compiled, and the seconds that this took.

    Attributes:
        programs: their number.
        seconds: of compiling.
        reported: those of the last line.
        next_s: the time before which there is no further line.
    """

    __slots__ = ("next_s", "programs", "reported", "seconds")

    def __init__(self) -> None:
        self.programs, self.seconds, self.reported, self.next_s = 0, 0.0, 0.0, 0.0

    def add(self, seconds: float) -> None:
        """Count a program; log a line after two seconds, and every nine seconds that contain two more."""
        self.programs += 1
        self.seconds += seconds
        if self.seconds - self.reported < SLOW_S or time.monotonic() < self.next_s:
            return
        self.reported, self.next_s = self.seconds, time.monotonic() + REPEAT_S
        if os.environ.get("SBPJAX_COMPILE_NOTE", "").lower() not in ("off", "0"):
            text = "compiling op programs: %d, %.1f s so far; nn.Graph compiles the step as one"
            log.warning(text, self.programs, self.seconds)


waited = CompileCounter()


class BackwardCounter:
    """The number of backwards that have run."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = 0


steps = BackwardCounter()


def count_compilation(name: str, shapes: tuple, line: str | None = None) -> None:
    """Count a program of a line of the user's.

    Args:
        name: the op.
        shapes: of its inputs; None for an absent one.
        line: the line; by default the one that is running.
    """
    line = line or user_line()
    key = line, name, shapes[1:]
    found, in_steps, last = _programs.find(key) or (0, 0, -1)
    found, in_steps = found + 1, in_steps + (last != steps.done)
    _programs.keep(key, (found, in_steps, steps.done))
    if (found == WARN_AT_SHAPES or in_steps == WARN_IN_STEPS) and line not in _said and line != UNKNOWN_LINE:
        _said.add(line)
        text = "%s has compiled %d shapes of %s, now %s; each takes 25 to 600 ms and some MB: pad to a few sizes"
        log.warning(text, line, found, name, list(shapes[0] or ()) if shapes else [])


# Compilations of one thread call listeners in that thread.
class _Traced(threading.local):
    op: Any = None
    shapes: tuple = ()
    line: str | None = None


_traced = _Traced()


def note_trace(op: Any, arrays: tuple) -> None:
    """Note that an op is traced for new shapes; if a compilation follows, it is this op's."""
    _traced.op = op
    _traced.shapes = tuple([None if x is None else getattr(x, "shape", ()) for x in arrays])


def set_user_line(line: str | None) -> None:
    """Note the user's line for which this thread compiles; None: the one that it runs."""
    _traced.line = line


def _note_compilation(event: str, duration: float, fun_name: str = "", **_: Any) -> None:
    if event != _COMPILED:
        return
    mappings.count_program()
    op, shapes, _traced.op = _traced.op, _traced.shapes, None
    if op is None or fun_name not in ("", f"jit({op.name})"):
        # For example a graph in which the op was traced before.
        return
    waited.add(duration)
    op.programs += 1
    count_compilation(op.name, shapes, _traced.line)


jax.monitoring.register_event_duration_secs_listener(_note_compilation)
