"""Weight-cast hoisting: moves casts of weights out of loops and blocks, so that each runs once per step.

Under autocasting a layer casts its weights. In the forward and backward of a block, and in the iterations of a loop,
that is the same cast of the same array again and again: such casts leave the traced part, which gets their results as
further inputs, and the program around it makes each of them once per step.

    (w: f32, x) → bf16(w) @ bf16(x)          becomes          (w: f32, x, w': bf16) → w' @ bf16(x)

`hoist_from_loops` does the same to the loops of a flat program, such as a `jax.lax.scan` over the layers of a step in
plain JAX. Gathered inside a checkpointed loop, the weights of a Llama 7B move twice, once for the forward and once for
the recomputation; the planner can gather their casts, 13.5 GB in bfloat16, once before both.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import jax
import ml_dtypes
import numpy as np

from sbpjax._core.jax_private import ClosedJaxpr, Literal

from .normalise import (
    Program,
    bind,
    live_equations,
    normalise,
    run_program,
    run_scan_with_body,
    scan_counts,
    source_context,
)

_FLOATS = tuple(np.dtype(d) for d in (np.float16, ml_dtypes.bfloat16, np.float32))


class Cast(NamedTuple):
    """A cast that moves from a traced part to its surroundings.

    Attributes:
        place: the position of the input that is cast.
        dtype: the new dtype.
    """

    place: int
    dtype: np.dtype


def without_casts(closed: ClosedJaxpr, places: Collection[int]) -> tuple[ClosedJaxpr, list[Cast]]:
    """Return a program that takes casts of some of its inputs as further inputs, at the end.

    Args:
        closed: the program.
        places: the inputs whose casts leave it.

    Returns:
        The program, and the casts in the order of the further inputs.
    """
    jaxpr = closed.jaxpr
    number = {jaxpr.invars[place]: place for place in places}
    returned = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    casts, made, rest = [], [], []
    for eqn in jaxpr.eqns:
        # Returned casts stay: the surroundings have no equation that could return them.
        if _is_cast(eqn) and eqn.invars[0] in number and eqn.outvars[0] not in returned:
            casts.append(Cast(number[eqn.invars[0]], np.dtype(eqn.params["new_dtype"])))
            made.append(eqn.outvars[0])
        else:
            rest.append(eqn)
    if not casts:
        return closed, []
    names = jaxpr.debug_info.with_unknown_names()
    changed = jaxpr.replace(invars=[*jaxpr.invars, *made], eqns=rest, debug_info=names)
    return ClosedJaxpr(changed, closed.consts), casts


def _is_cast(eqn) -> bool:
    """Return whether an equation is a cast of autocasting: from one of its dtypes to another."""
    if eqn.primitive.name != "convert_element_type" or isinstance(eqn.invars[0], Literal):
        return False
    return eqn.invars[0].aval.dtype in _FLOATS and np.dtype(eqn.params["new_dtype"]) in _FLOATS


def hoist_from_loops(program: Program) -> Program:
    """Return a flat program whose loops take narrowed weights: what every iteration casts is cast before the loop.

    Args:
        program: the program. Of its scans, also inside each other, casts of constants and of stacks to a smaller dtype
            move; equal casts of one array become one.
    """
    loops = {i: loop for i, eqn in enumerate(program.eqns) if (loop := _narrow_loop(eqn)) is not None}
    if not loops:
        return program
    narrowed: dict[tuple, jax.Array] = {}  # by variable and dtype: a backward loop reads what the forward one does

    def equation(i, eqn, operands):
        if i not in loops:
            return bind(eqn, operands)

        def read(source):
            if not isinstance(source, Cast):
                return operands[source]
            key = eqn.invars[source.place], source.dtype
            if key not in narrowed:
                narrowed[key] = jax.lax.convert_element_type(operands[source.place], source.dtype)
            return narrowed[key]

        body, *groups = loops[i]
        with source_context(eqn):
            consts, carried, stacks = (list(map(read, group)) for group in groups)
            return run_scan_with_body(eqn.params, lambda *xs: run_program(body, xs), consts, carried, stacks)

    def run(*arrays):
        return run_program(program, arrays, equation)

    return normalise(jax.make_jaxpr(run)(*[v.aval for v in program.invars]))


class _Loop(NamedTuple):
    """A scan whose casts moved out: its body, and each operand as a position of the scan's own, or a cast of it."""

    body: Program
    consts: list[int | Cast]
    carried: list[int | Cast]
    stacks: list[int | Cast]


def _narrow_loop(eqn) -> _Loop | None:
    """Return a scan without its casts to smaller dtypes of operands that are not carried; None if it has none."""
    if eqn.primitive.name != "scan":
        return None
    plain = normalise(eqn.params["jaxpr"])
    body = hoist_from_loops(plain)
    first, carried = scan_counts(eqn.params)
    last = first + carried
    places = {v: i for i, v in enumerate(body.invars) if not first <= i < last}
    returned = {v for v in body.outvars if not isinstance(v, Literal)}
    casts: dict = {}
    for inner in body.eqns:
        place = None if not inner.invars or isinstance(inner.invars[0], Literal) else places.get(inner.invars[0])
        if place is None:
            continue
        if inner.primitive.name == "optimization_barrier":  # before the recomputation of a block
            places[inner.outvars[0]] = place
        elif _is_narrowing(inner) and inner.outvars[0] not in returned:
            casts[inner.outvars[0]] = Cast(place, np.dtype(inner.params["new_dtype"]))
    if body is plain and not casts:
        return None
    eqns = live_equations([e for e in body.eqns if e.outvars[0] not in casts], body.outvars)
    read = {v for e in eqns for v in e.invars if not isinstance(v, Literal)} | returned
    kept = [(v, i) for i, v in enumerate(body.invars) if v in read or first <= i < last]
    groups = [
        [(v, i) for v, i in kept if i < first] + [(v, cast) for v, cast in casts.items() if cast.place < first],
        [(v, i) for v, i in kept if first <= i < last],
        [(v, i) for v, i in kept if i >= last] + [(v, cast) for v, cast in casts.items() if cast.place >= last],
    ]
    inputs = [v for group in groups for v, _ in group]
    return _Loop(Program(inputs, body.consts, eqns, body.outvars), *([source for _, source in g] for g in groups))


def _is_narrowing(eqn) -> bool:
    return _is_cast(eqn) and np.dtype(eqn.params["new_dtype"]).itemsize < eqn.invars[0].aval.dtype.itemsize
