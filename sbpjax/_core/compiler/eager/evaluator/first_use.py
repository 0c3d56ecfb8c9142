"""Evaluate or compile: an op's program for some shapes is evaluated until its calls have cost a compilation.

The number of calls follows from the program alone, never from a clock, so that each run of a script makes the same
choices and has the same bits:

    calls = 50 ms / cost of a call,   cost = 10 us + 2 us an equation + 1 ns an element that an equation reads or writes

`program.cost_of` has the cost of equations. `relu` of 8 x 8 is compiled at its 4,200th call, a layer norm of 64 x 512
at its 100th, and what takes 50 ms at once.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import ArrayImpl, ClosedJaxpr, trace_state_clean, xla_client
from sbpjax._core.runtime.ambient_mesh import hide_mesh, jit_without_mesh
from sbpjax._core.runtime.lru_cache import LRUCache, most_programs

from ...launch import checks_results
from .families import family_of
from .program import bind, program_of
from .setting import setting
from .symbolic import Signature

_COMPILATION_NS, _CALL_NS = 50e6, 10e3
_RANDOMS = "sbpjax._core.ops.randoms."
_aval_of = attrgetter("aval")
_put = xla_client.batched_device_put
_programs = LRUCache(most_programs())
log = logging.getLogger("sbpjax")


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
        try:
            run = _programs.get((self._op, *map(_aval_of, arrays)))
        except AttributeError:  # an input that is absent, or an array of NumPy's
            run = None
        return self._find(arrays)(*arrays) if run is None else run(*arrays)

    def _find(self, arrays: Sequence) -> Callable:
        """Return the program for inputs like these."""
        key = (self._op, *[getattr(x, "aval", x.__class__) for x in arrays])
        run = _programs.find(key)
        if run is None:
            if not may_evaluate():
                return self._compiled
            run = _programs.keep(key, self._program(arrays, functools.partial(_programs.keep, key)))
        return run

    @hide_mesh
    def _program(self, arrays: Sequence, replace: Callable[[Callable], Any]) -> Callable:
        device = _device_of(arrays)
        # A random number has the same bits in each layout.
        if device is None or getattr(self._op.fn, "__module__", "").startswith(_RANDOMS):
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
        calls = 0 if run is None else int(_COMPILATION_NS // (_CALL_NS + run.cost_ns))
        if not calls:
            return self._compiled
        return _EvaluatedProgram(run, closed, sizes, tree, device, self._compiled, calls, replace)


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
    """A program of arrays on one CPU device that is evaluated; the compiled one takes over after some calls.

    Args:
        run: the program of NumPy calls.
        closed: its jaxpr.
        sizes: the values of the symbols there.
        tree: the tree of its results.
        device: of its inputs.
        compiled: the ``jax.jit`` function, which also runs for other devices, in traces, and where JAX checks results.
        calls: how often it is evaluated.
        replace: called with `compiled` when that takes over.
    """

    __slots__ = (
        "_avals", "_calls", "_compiled", "_default", "_device", "_replace", "_run", "_sharding", "_single", "_tree",
        "_types",
    )  # fmt: skip

    def __init__(self, run, closed, sizes, tree, device, compiled, calls, replace) -> None:
        self._run, self._tree, self._device, self._compiled = run, tree, device, compiled
        self._calls, self._replace = calls, replace
        self._avals = [v.aval.update(shape=bind(v.aval.shape, sizes)) for v in closed.jaxpr.outvars]
        self._types = [v.aval.dtype for v in closed.jaxpr.invars]
        self._single = tree.num_leaves == 1 and tree == jax.tree.structure(0)
        self._sharding = jax.sharding.SingleDeviceSharding(device)
        self._default = jax.config.jax_default_device

    def __call__(self, *arrays: Any) -> Any:
        if not may_evaluate() or jax.config.jax_default_device is not self._default:
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
        self._calls -= 1
        if self._calls < 0:
            return self._replace(self._compiled)(*arrays)
        try:
            outs = self._run(*given)
        except MemoryError:
            raise
        except Exception as error:  # of any class: NumPy computes it otherwise, or not at all
            log.info("%s is compiled, as NumPy raised %s", getattr(self._compiled, "__name__", "an op"), error)
            return self._replace(self._compiled)(*arrays)
        if self._single:
            return _put(self._avals[0], self._sharding, outs, [self._device], committed)
        devices, sharding = [self._device], self._sharding
        outs = [_put(a, sharding, [x], devices, committed) for a, x in zip(self._avals, outs, strict=True)]
        return jax.tree.unflatten(self._tree, outs)


def may_evaluate() -> bool:
    """Return whether a call may be evaluated now.

    A trace takes an op as an equation, also one of concrete arrays, which are inputs of its program; and JAX looks for
    NaN in the results of compiled programs.
    """
    return trace_state_clean() and setting.allowed and not setting.held and not checks_results()


def _device_of(arrays: Sequence) -> Any:
    """Return the one CPU device of the arrays, None if there are several or it is another's."""
    found = {d for x in arrays if x.__class__ is ArrayImpl for d in x.devices()}
    device = found.pop() if found else jax.config.jax_default_device or jax.local_devices()[0]
    return device if not found and getattr(device, "platform", "") == "cpu" else None
