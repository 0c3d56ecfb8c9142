"""Tiered compilation: a program is compiled quickly first, and with full optimization when called often.

A loop over ever-changing lengths compiles each of its ops for each length, 30 to 180 ms a program, and calls it a few
times. Where that changes no bit, such a program is compiled at the compiler's lowest level first, in a third of the
time. It runs two to four times as long, some nanoseconds an element: once the slower calls have used up the saved time,
it is compiled with the usual options.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from sbpjax._core.compiler.eager.options import cold_options_of
from sbpjax._core.jax_private import ClosedJaxpr
from sbpjax._core.runtime.ambient_mesh import jit_without_mesh

# The saved compile time, at 8 ns an element.
_ELEMENTS = 1 << 22
_LEAST_CALLS = 4


class TieredProgram:
    """A quickly compiled program, replaced by an optimized one after enough calls.

    Args:
        quick: the program compiled quickly.
        usual: the same compiled well.
        replace: called with `usual` when it takes over.
        times: calls until then.
    """

    __slots__ = ("_quick", "_replace", "_times", "_usual")

    def __init__(self, quick: Callable, usual: Callable, replace: Callable[[Callable], Any], times: int) -> None:
        self._quick, self._usual, self._replace, self._times = quick, usual, replace, times

    # Reports, and the compilation on another thread, read `op.call.lower` and the like.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._quick, name)

    def __call__(self, *arrays: Any) -> Any:
        self._times -= 1
        if self._times >= 0:
            return self._quick(*arrays)
        self._replace(self._usual)
        return self._usual(*arrays)


def select_tiered_program(
    function: Callable, usual: Callable, arrays: Sequence, replace: Callable[[Callable], Any]
) -> Callable:
    """Return the function for inputs like these: a `TieredProgram`, or `usual` where its bits or its time forbid that.

    Args:
        function: a function of arrays.
        usual: ``jax.jit`` of it.
        arrays: inputs, or `jax.ShapeDtypeStruct`s.
        replace: called with `usual` when it takes over.
    """
    closed = usual.trace(*arrays).jaxpr
    options = cold_options_of(closed)
    if options is None or (times := _ELEMENTS // _most_elements(closed)) < _LEAST_CALLS:
        return usual
    return TieredProgram(jit_without_mesh(function, compiler_options=options), usual, replace, times)


def _most_elements(closed: ClosedJaxpr) -> int:
    """Return the elements of the largest array of a program, one at least."""
    jaxpr = closed.jaxpr
    avals = [v.aval for v in (*jaxpr.invars, *[v for eqn in jaxpr.eqns for v in eqn.outvars])]
    return max([1, *[math.prod(a.shape) for a in avals]])
