"""Per-shape program cache: one bounded table for the programs of ops with ever new shapes.

``op.call`` is a ``jax.jit`` function, which keeps a program for every shape without bound. An op that has compiled 16
of them goes over to `ShapeCache`: a table of single programs, shared by all such ops, that drops those not used for
longest. Ops with fewer shapes, nearly all, never pay for the look into that table. Programs of the table, and those of
ops of a name that has compiled 64, are compiled quickly first, see `_core.compiler.eager.tiered`: of ``x[:i]`` each i
is an op of its own, and so is each shape's backward.

JAX calls listeners for each compilation (`jax.monitoring`), with the name of the function but not the function itself:
the op whose trace came last on this thread is the one.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import jax

from sbpjax._core.compiler import mappings
from sbpjax._core.compiler.eager import recompile_log
from sbpjax._core.jax_private import ArrayImpl
from sbpjax._core.runtime.lru_cache import LRUCache, most_programs

# Shapes of one op, from which on its programs are counted and dropped.
MANY = 16
# Programs of ops of one name, from which on they are compiled quickly first; layers of a large model have fewer.
_MANY_OF_A_NAME = 64
_COMPILED = "/jax/core/compile/backend_compile_duration"

_programs = LRUCache(most_programs())
_names = LRUCache(4096)


# Compilations of one thread call listeners in that thread.
class _Traced(threading.local):
    op: Any = None
    shapes: tuple = ()
    line: str | None = None


_traced = _Traced()


class ShapeCache:
    """The programs of one op, one ``jax.jit`` function per kind of inputs.

    Args:
        op: the op.
        whole: its function for all shapes, which serves traces.
        make: makes a function for some inputs, given them and a callback that receives its replacement.
    """

    def __init__(self, op: Any, whole: Callable, make: Callable[[tuple, Callable], Callable]) -> None:
        self._op, self._whole, self._make = op, whole, make

    # Reports read `op.call.lower` and the like.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def __call__(self, *arrays: Any) -> Any:
        kinds: list = [self._op]
        for x in arrays:
            if x.__class__ is ArrayImpl:
                kinds.append(x.aval)
            # A trace takes the op as an equation of its own program, which is kept there.
            elif isinstance(x, jax.core.Tracer):
                return self._whole(*arrays)
            else:
                kinds.append((x.__class__, getattr(x, "shape", None), getattr(x, "dtype", None)))
        key = tuple(kinds)
        call = _programs.get(key) or _programs.promote_older(key)
        if call is None:
            call = _programs.keep(key, self._make(arrays, functools.partial(_programs.keep, key)))
        return call(*arrays)


def has_many_shapes(name: str) -> bool:
    """Return whether ops of a name have compiled so many programs that more will come."""
    return (_names.find(name) or 0) >= _MANY_OF_A_NAME


def traced(op: Any, arrays: tuple) -> None:
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
    recompile_log.waited.add(duration)
    op.programs += 1
    _names.keep(op.name, (_names.find(op.name) or 0) + 1)
    if op.programs == MANY:
        op.spread()
    recompile_log.count_compilation(op.name, shapes, _traced.line)


jax.monitoring.register_event_duration_secs_listener(_note_compilation)
