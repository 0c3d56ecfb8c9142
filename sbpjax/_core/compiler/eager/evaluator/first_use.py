"""Evaluate or compile: an op's program for some shapes is evaluated until its calls have cost a compilation.

The number of calls follows from the program alone, never from a clock, so that each run of a script makes the same
choices and has the same bits:

    calls = (30 ms + 2 ms an equation) / cost of a call
    cost of a call = 10 us + 5 us an equation or result + 1 ns an element that one reads or writes

`program.cost_of` has the cost of equations. `relu` of 8 x 8 is compiled at its 1,300th call, a layer norm of 64 x 512
at its 170th, and what takes as long as compiling it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from sbpjax._core.jax_private import ArrayImpl, ClosedJaxpr
from sbpjax._core.runtime.gc_pause import pause_gc

from .evaluated import EvaluatedProgram
from .families import family_of, keep_trace
from .program import bind, program_of
from .setting import is_on
from .symbolic import Signature

_COMPILATION_NS, _EQUATION_NS, _CALL_NS = 30e6, 2e6, 10e3
_KEY = "key<fry>"  # of JAX's default generator
_RANDOMS = "sbpjax._core.ops.randoms."


def program_for(op: Any, arrays: Sequence) -> EvaluatedProgram | None:
    """Return the evaluated program of an op for inputs like these; None if it is compiled from its first call on.

    Args:
        op: the op; its ``bound`` is a trace of it with the values of the symbols, or None.
        arrays: arrays, numbers, or None for an absent input.
    """
    device = _device_of(arrays)
    # A random number has the same bits in each layout, and XLA rounds a product and its sum once.
    if device is None or not is_on() or getattr(op.fn, "__module__", "").startswith(_RANDOMS):
        return None
    avals = [None if x is None else x.aval if x.__class__ is ArrayImpl else jax.typeof(x) for x in arrays]
    keys = {str(a.dtype) for a in avals if a is not None and jax.dtypes.issubdtype(a.dtype, jax.dtypes.extended)}
    if keys and not (keys == {_KEY} and jax.config.jax_threefry_partitionable):
        return None
    found = op.bound if op.bound is not None and _serves(*op.bound, avals) else trace_of(op, avals)
    if found is None:
        found = keep_trace(op, avals, op.misses.trace(arrays)), {}
    return _evaluated_program(op.name, *found, device)


def _serves(trace: tuple, sizes: dict[str, int], avals: Sequence) -> bool:
    """Return whether a trace is one of inputs like these."""
    given = [(a.shape, a.dtype) for a in avals if a is not None]
    return given == [(bind(a.shape, sizes), a.dtype) for a in trace[0].in_avals]


@pause_gc()
def evaluate_traced(name: str, jitted: Any, arrays: Sequence) -> EvaluatedProgram | None:
    """Return the evaluated program of a ``jax.jit`` function, as `program_for` that of an op."""
    device = _device_of(arrays)
    if device is None:
        return None
    traced = jitted.trace(*arrays)
    return _evaluated_program(name, (traced.jaxpr, traced.out_tree), {}, device)


def _evaluated_program(name: str, trace: tuple, sizes: dict[str, int], device: jax.Device) -> EvaluatedProgram | None:
    closed, tree = trace
    run = program_of(closed, sizes)
    calls = _calls_of(run)
    if not calls:
        return None
    outs = [v.aval.update(shape=bind(v.aval.shape, sizes)) for v in closed.jaxpr.outvars]
    return EvaluatedProgram(name, run, [v.aval.dtype for v in closed.jaxpr.invars], outs, tree, device, calls)


def evaluate_elementwise(name: str, run: Any, arrays: Sequence, outs: Sequence) -> EvaluatedProgram | None:
    """Return the evaluated program of a function of NumPy arrays that returns arrays like some of its inputs.

    Args:
        name: of the program.
        run: the function, with the attributes of `program.program_of`.
        arrays: the inputs, arrays and numbers.
        outs: the positions of the inputs that the results are like.
    """
    device, calls = _device_of(arrays), _calls_of(run)
    if device is None or not calls:
        return None
    avals = [jax.typeof(x) for x in arrays]
    tree = jax.tree.structure((0,) * len(outs))
    return EvaluatedProgram(name, run, [a.dtype for a in avals], [avals[i] for i in outs], tree, device, calls)


def _calls_of(run: Any) -> int:
    """Return how often a program is evaluated before it is compiled."""
    if run is None:
        return 0
    return int((_COMPILATION_NS + _EQUATION_NS * run.equations) // (_CALL_NS + run.cost_ns))


def is_evaluated(closed: ClosedJaxpr) -> bool:
    """Return whether a program is evaluated at its first call."""
    return is_on() and _calls_of(program_of(closed, {})) > 0


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


def _device_of(arrays: Sequence) -> Any:
    """Return the one CPU device of the arrays, None if there are several or it is another's."""
    found = {d for x in arrays if isinstance(x, jax.Array) for d in x.devices()}
    device = found.pop() if found else jax.config.jax_default_device or jax.local_devices()[0]
    return device if not found and getattr(device, "platform", "") == "cpu" else None
