"""Evaluate or compile: an op's program for some shapes is evaluated until its calls have cost a compilation.

The number of calls follows from the program alone, never from a clock, so that each run of a script makes the same
choices and has the same bits:

    calls = compilation / cost of an evaluation,   cost = 1 ns an element that an equation writes + 2 us an equation

A program of up to `_SMALL` elements is always evaluated, which is as fast as the compiled one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import ArrayImpl, ClosedJaxpr, trace_state_clean, xla_client
from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh
from sbpjax._core.runtime.lru_cache import LRUCache, most_programs

from ...launch import checks_results
from ..tiered import TieredProgram
from .families import family_of
from .program import bind, program_of
from .symbolic import Signature

_COMPILATION_NS = 100e6
_SMALL = 4096
_put = xla_client.batched_device_put
_programs = LRUCache(most_programs())


class EvaluatedCall:
    """The value of `Op.call` of an op that is evaluated at its first uses.

    Args:
        op: the op.
        compiled: its ``jax.jit`` function.
        bound: its trace with the values of the symbols, where it is known.
    """

    __slots__ = ("_bound", "_compiled", "_op")

    def __init__(self, op: Any, compiled: Callable, bound: tuple | None = None) -> None:
        self._op, self._compiled, self._bound = op, compiled, bound

    # Reports read `op.call.lower` and the like.
    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __call__(self, *arrays: Any) -> Any:
        # A trace takes the op as an equation, also one of concrete arrays, which are inputs of its program; JAX looks
        # for NaN in the results of compiled programs.
        if not trace_state_clean() or checks_results():
            return self._compiled(*arrays)
        kinds: list = [self._op]
        for x in arrays:
            kinds.append(x.aval if x.__class__ is ArrayImpl else (x.__class__, getattr(x, "aval", None)))
        key = tuple(kinds)
        run = _programs.get(key) or _programs.recall(key)
        if run is None:
            run = _programs.keep(key, self._program(arrays, functools.partial(_programs.keep, key)))
        return run(*arrays)

    @hide_mesh
    def _program(self, arrays: Sequence, replace: Callable[[Callable], Any]) -> Callable:
        device = _device_of(arrays)
        if device is None:
            return self._compiled
        avals = [None if x is None else x.aval if x.__class__ is ArrayImpl else jax.typeof(x) for x in arrays]
        if any(a is not None and jax.dtypes.issubdtype(a.dtype, jax.dtypes.extended) for a in avals):
            return self._compiled  # NumPy has no random keys
        found = self._bound or trace_of(self._op, avals)
        if found is None:
            traced = self._compiled.trace(*arrays)
            found = (traced.jaxpr, traced.out_tree), {}
        (closed, tree), sizes = found
        run = program_of(closed, sizes)
        times = 0 if run is None else calls_of(closed, sizes)
        if not times:
            return self._compiled
        program = _EvaluatedProgram(run, closed, sizes, tree, device, self._compiled)
        return program if times == math.inf else TieredProgram(program, self._compiled, replace, int(times))


def has_rules(closed: ClosedJaxpr) -> bool:
    """Return whether each equation of a program can be evaluated."""
    return program_of(closed, {}) is not None


def evaluate(op: Any, bound: tuple) -> None:
    """Let an op be evaluated by a trace of it with sizes, see `EvaluatedCall`."""
    op.call = EvaluatedCall(op, jit_without_mesh(op.function()), bound)


def trace_of(op: Any, avals: Sequence) -> tuple | None:
    """Return the jaxpr and the tree of an op's results with the values of their symbols; None if no trace serves."""
    family, sizes = family_of(op)
    return family.calls.find(Signature(sizes, avals))


def backward_of(op: Any, needs: tuple[int, ...], avals: Sequence, entry: Callable) -> tuple | None:
    """Return the backward that `entry` makes of an op and the values of its symbols; None if no trace serves."""
    family, sizes = family_of(op)
    return family.backwards(needs, entry).find(Signature(sizes, avals))


def result_avals(op: Any, avals: Sequence) -> tuple | None:
    """Return the avals of an op's results; None if no trace serves."""
    found = trace_of(op, avals)
    if found is None:
        return None
    (closed, _), values = found
    return tuple([aval.update(shape=bind(aval.shape, values)) for aval in closed.out_avals])


class _EvaluatedProgram:
    """An evaluated program of arrays on one device; elsewhere the compiled one runs."""

    __slots__ = ("_avals", "_compiled", "_default", "_device", "_run", "_sharding", "_single", "_tree", "_types")

    def __init__(self, run, closed, sizes, tree, device, compiled) -> None:
        self._run, self._tree, self._device, self._compiled = run, tree, device, compiled
        self._avals = [v.aval.update(shape=bind(v.aval.shape, sizes)) for v in closed.jaxpr.outvars]
        self._types = [v.aval.dtype for v in closed.jaxpr.invars]
        self._single = tree.num_leaves == 1 and tree == jax.tree.structure(0)
        self._sharding = jax.sharding.SingleDeviceSharding(device)
        self._default = jax.config.jax_default_device

    def __call__(self, *arrays: Any) -> Any:
        if jax.config.jax_default_device is not self._default:
            return self._compiled(*arrays)
        committed, given = False, []
        for x in arrays:
            if x.__class__ is ArrayImpl:
                if x._committed:
                    committed = True
                    if self._device not in x.devices():
                        return self._compiled(*arrays)
                given.append(np.asarray(x))
            elif x is not None:
                given.append(np.asarray(x, self._types[len(given)]))
        devices, sharding = [self._device], self._sharding
        outs = [_put(a, sharding, [x], devices, committed) for a, x in zip(self._avals, self._run(*given), strict=True)]
        return outs[0] if self._single else jax.tree.unflatten(self._tree, outs)


def _device_of(arrays: Sequence) -> Any:
    """Return the one CPU device of the arrays, None if there are several or it is another's."""
    found = {d for x in arrays if x.__class__ is ArrayImpl for d in x.devices()}
    device = found.pop() if found else jax.config.jax_default_device or jax.local_devices()[0]
    return device if not found and getattr(device, "platform", "") == "cpu" else None


def calls_of(closed: ClosedJaxpr, sizes: dict[str, int]) -> float:
    """Return how often a program is evaluated before it is compiled."""
    written = [math.prod(bind(v.aval.shape, sizes)) for eqn in closed.jaxpr.eqns for v in eqn.outvars]
    if max(written, default=0) <= _SMALL:
        return math.inf
    return _COMPILATION_NS // (sum(written) + 2e3 * len(written))
