"""Traced op calls: inside a trace an op is traced once per kind of inputs, then called as a `jit` function.

A GPT of 24 layers runs 17 recorded ops per layer. Each was a ``jax.vjp`` of its function: half a hundred equations
bound one by one under three levels of tracers, 3 ms. Here the forward of an op with its residuals is one
``jit`` whose jaxpr is kept, and its backward another; a call of either takes 15 µs
(`_core.tensor.dispatch.traced_calls`).

    layer_norm(x, w, b)  →  y, residuals = jit[op layer_norm](x, w, b)
                            gx, gw, gb   = jit[op layer_norm_backward](residuals, gy)

`inline_calls` puts the bodies in place of the calls when the trace is over, each equation under the name and the source
line of its call, so later passes see no difference.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from sbpjax._core.jax_private import ClosedJaxpr, Literal, Var
from sbpjax._core.programs.normalise import Body, body_of
from sbpjax._core.programs.rewrite import rewrite_program

from ..handle.mode import mode
from . import explicit_axes
from .op import Op, _is_float
from .traced_calls import TracedCall

_ARRAYS = (jax.Array, np.ndarray)

# Prefix of the names of the calls; no name of a user has a space.
_MARK = "op call "
_MAX_CALLS = 4096
_forwards: dict[tuple, Callable] = {}
_backwards: dict[str, Callable] = {}


# Static, so that a jit may return it: it becomes part of the structure of the result, not an array.
@jax.tree_util.register_static
class OutputFacts(tuple):
    """Facts about the outputs of a traced forward: whether it is one array, and which are differentiable."""


@functools.cache  # JAX keeps one with every shape that an op is traced for
def _outs(single: bool, diff: tuple[int, ...]) -> OutputFacts:
    return OutputFacts((single, diff))


@contextlib.contextmanager
def trace_calls():
    """Trace recorded ops as calls within the block; the tracing code puts their bodies back with `inline_calls`."""
    before, mode.calls = mode.calls, True
    try:
        yield
    finally:
        mode.calls = before


def can_call(op: Op) -> bool:
    """Return whether one trace of an op serves all its calls: its function holds on to nothing of a trace."""
    # A closure may hold a tracer of the trace that is going on, and a kept call would use it in the next one.
    return getattr(op.fn, "__closure__", op) is None


def forward(op: Op, needs: Sequence[int], arrays: Sequence) -> tuple:
    """Return the float outputs of an op, its vjp, the other outputs, and `OutputFacts`.

    ``arrays``: its inputs; numbers and None are part of the program, as they are where the op is traced itself.
    """
    fixed = tuple([(i, x.__class__, x) for i, x in enumerate(arrays) if not isinstance(x, _ARRAYS)])
    given = [x for x in arrays if isinstance(x, _ARRAYS)]
    if not (mode.calls and can_call(op)):
        return _make_differentiable_call(op, needs, fixed)(*given)
    key = (op, tuple(needs), len(given), tuple([(*f, str(f[2])) for f in fixed]))  # -0.0 and 0.0 are equal
    call = _forwards.get(key)
    if call is None:
        if len(_forwards) >= _MAX_CALLS:
            _forwards.clear()
        run = _make_differentiable_call(op, needs, fixed)
        run.__name__ = run.__qualname__ = _MARK + op.name
        call = _forwards[key] = TracedCall(run)
    return call(*given)


def backward(op: Op, vjp, cotangents: tuple) -> tuple:
    """Return the gradients of an op's inputs from the vjp that `forward` gave."""
    if not (mode.calls and can_call(op)):
        return vjp(cotangents)
    # By name alone: the vjp is a pytree whose structure holds the jaxpr, so `jit` distinguishes two ops of one name.
    call = _backwards.get(op.name)
    if call is None:

        def run(vjp, cotangents):
            return vjp(cotangents)

        run.__name__ = run.__qualname__ = f"{_MARK}{op.name}_backward"
        call = _backwards[op.name] = TracedCall(run)
    return call(vjp, cotangents)


def _make_differentiable_call(op: Op, needs: Sequence[int], fixed: tuple) -> Callable:
    """Return the differentiated op as a function of its arrays."""

    def run(*given):
        rest, held = iter(given), {i: x for i, _, x in fixed}
        arrays = [held[i] if i in held else next(rest) for i in range(len(given) + len(fixed))]
        facts: list = []

        def call_op(*chosen):
            merged = list(arrays)
            for i, value in zip(needs, chosen, strict=True):
                merged[i] = value
            out = explicit_axes.call(op, merged)
            single = not isinstance(out, (tuple, list))
            outs = (out,) if single else tuple(out)
            diff = tuple([i for i, o in enumerate(outs) if _is_float(o.dtype)])
            facts[:] = single, diff
            return tuple([outs[i] for i in diff]), tuple([o for i, o in enumerate(outs) if i not in diff])

        # Outputs without a gradient (indices) are auxiliary: `jax.vjp` would require cotangents of dtype float0 for
        # them.
        diff, vjp, others = jax.vjp(call_op, *[arrays[i] for i in needs], has_aux=True)
        return diff, vjp, others, _outs(*facts)

    return run


# -- putting the bodies in place of the calls ------------------------------------------------------------------------


def inline_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a traced program with the bodies of op calls in place of the calls, inside loops too."""
    return rewrite_program(closed, _inline)


def _is_call(eqn) -> bool:
    return eqn.primitive.name in ("jit", "pjit") and eqn.params["name"].startswith(_MARK)


def _inline(closed: ClosedJaxpr, inside: Callable) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    eqns: list = []
    # The results of a call → the variables in its inlined body.
    now: dict[Var, Any] = {}
    consts: dict[Var, Any] = {}
    bodies: dict[int, Body] = {}
    for eqn in jaxpr.eqns:
        invars = eqn.invars
        if now:
            for v in invars:
                if v.__class__ is not Literal and v in now:
                    invars = [v if v.__class__ is Literal else now.get(v, v) for v in invars]
                    break
        if not _is_call(eqn):
            eqns.append(inside(eqn if invars is eqn.invars else eqn.replace(invars=invars)))
            continue
        inner = eqn.params["jaxpr"]
        body = bodies.get(id(inner))
        if body is None:
            body = bodies[id(inner)] = body_of(inner)
        results = body.splice(invars, eqn.source_info, eqns, consts, own_lines=False)
        now.update(zip(eqn.outvars, results, strict=True))
    if len(eqns) == len(jaxpr.eqns) and all(a is b for a, b in zip(eqns, jaxpr.eqns)):
        return closed
    outvars = [v if isinstance(v, Literal) else now.get(v, v) for v in jaxpr.outvars]
    changed = jaxpr.replace(
        constvars=[*jaxpr.constvars, *consts],
        eqns=eqns,
        outvars=outvars,
        effects=jaxpr.effects,
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return ClosedJaxpr(changed, [*closed.consts, *consts.values()])
