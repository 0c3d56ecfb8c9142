"""Micro-batch loop of a traced step: splits the step into prologue, loop body and epilogue.

A step under gradient accumulation is traced as

    pre (micro-batches, casts of weights) → scan(body) → post (clip, optimizers, loss scale)

The ``scan`` is taken apart here. Its body becomes a program of one iteration with its number as an input; a stacked
output of the ``scan`` becomes a carry that the iteration writes one slice of. So an iteration reads

    iteration │ numbers, seed │ constants │ carries │ whole inputs, of which it takes its slice

and returns the carries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from sbpjax._core.jax_private import ClosedJaxpr, Literal, Var, jaxpr_as_fun
from sbpjax._core.programs.normalise import Program, evaluate, normalise, scan_counts, source_line
from sbpjax._core.programs.primitives import CONTROL
from sbpjax.errors import GraphError
from sbpjax.sbp.stage import stage_transfer_p


@dataclass
class Carry:
    """A value that goes from iteration to iteration.

    Attributes:
        before: the variable that an iteration reads.
        after: its new value after the iteration.
        start: the input of the first iteration: an operand of the loop, or None for zeros.
        last: the variable of the program around it that holds the value after the last iteration.
    """

    before: Var
    after: Any
    start: Any
    last: Var


@dataclass
class MicroBatchLoop:
    """A loop of a program, and the equations around it.

    Attributes:
        count: how many iterations.
        pre: the equations before it that depend on arrays.
        free: those that depend on none, such as the random key and zeros; the body makes them anew.
        body: one iteration; its outputs are the carries.
        iteration: the input of the body that is the iteration's number.
        outer: input of the body → the variable of the program around it that it reads in every iteration.
        carries: the values passed from iteration to iteration.
        post: the equations after it.
    """

    count: int
    pre: list
    free: list
    body: Program
    iteration: Var
    outer: dict[Var, Var]
    carries: list[Carry]
    post: list


def crosses_stages(jaxpr) -> bool:
    """Return whether a jaxpr, or one inside its equations, sends a value to another placement."""
    return any(
        eqn.primitive is stage_transfer_p or any(crosses_stages(inner) for inner in _inner_jaxprs(eqn))
        for eqn in jaxpr.eqns
    )


def _inner_jaxprs(eqn) -> list:
    found = []
    for value in eqn.params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, ClosedJaxpr):
                found.append(item.jaxpr)
            elif hasattr(item, "eqns"):
                found.append(item)
    return found


def find_loop(program: Program, placed: set[Var], operation: str) -> MicroBatchLoop | None:
    """Return the loop over micro-batches of a flat program, None if there is none.

    Args:
        program: the program.
        placed: its inputs that are on a placement.
        operation: the user's request, for messages.

    Raises:
        GraphError: a value goes to another placement inside a loop or branch that is not the one over micro-batches.
    """
    # Of all loops only the one over micro-batches may send: its iterations are the schedule's, those of others run
    # inside one task.
    inside = [eqn for eqn in program.eqns if any(map(crosses_stages, _inner_jaxprs(eqn)))]
    loops = [eqn for eqn in inside if eqn.primitive.name == "scan" and not eqn.params["reverse"]]
    if len(inside) > 1 or len(loops) != len(inside):
        raise _nested_transfer_error(operation, next((eqn for eqn in inside if eqn not in loops), inside[-1]))
    if not loops:
        return None
    for eqn in loops[0].params["jaxpr"].jaxpr.eqns:
        if eqn.primitive.name in CONTROL and any(map(crosses_stages, _inner_jaxprs(eqn))):
            raise _nested_transfer_error(operation, eqn)
    return _split(program, placed, loops[0])


def _nested_transfer_error(operation: str, eqn) -> GraphError:
    line = source_line(eqn)
    return GraphError(
        operation,
        f"a change of placement inside a {eqn.primitive.name}" + f" at {line}" * bool(line),
        "stages are cut at the top level of build; a loop or branch is on one placement",
        "move the value before or after the loop",
    )


def _split(program: Program, placed: set[Var], loop) -> MicroBatchLoop:
    behind, found = set(loop.outvars), set(placed)
    needed = {v for v in loop.invars if isinstance(v, Var)}
    before, later = [], []
    for eqn in program.eqns:
        if eqn is loop:
            continue
        if any(isinstance(v, Var) and v in behind for v in eqn.invars):
            later.append(eqn)
            behind.update(eqn.outvars)
        else:
            before.append(eqn)
            if any(isinstance(v, Var) and v in found for v in eqn.invars):
                found.update(eqn.outvars)
    # From the back: values that the loop does not read need not be made before it, and go after it.
    pre, free, rest = [], [], []
    for eqn in reversed(before):
        wanted = any(v in needed for v in eqn.outvars)
        if wanted:
            needed.update(v for v in eqn.invars if isinstance(v, Var))
        is_free = not any(v in found for v in eqn.outvars)
        if wanted:
            (free if is_free else pre).append(eqn)
        # Equations that depend on no array are repeated wherever they are read.
        if is_free or not wanted:
            rest.append(eqn)
    pre, free, rest = pre[::-1], free[::-1], rest[::-1]
    body, iteration, outer, carries = _body(program, free, loop)
    return MicroBatchLoop(loop.params["length"], [*free, *pre], free, body, iteration, outer, carries, rest + later)


def _body(program: Program, free: list, loop) -> tuple[Program, Var, dict[Var, Var], list[Carry]]:
    """Return one iteration of a loop as a flat program, its number, its reads from outside, and its carries."""
    num_consts, num_carry = scan_counts(loop.params)
    constants, slices = loop.invars[:num_consts], loop.invars[num_consts + num_carry :]
    starts = loop.invars[num_consts : num_consts + num_carry]
    made = {v for eqn in free for v in eqn.outvars} | set(program.consts)
    reads = [*constants, *slices, *(v for eqn in free for v in eqn.invars)]
    outer = [v for v in dict.fromkeys(v for v in reads if isinstance(v, Var)) if v not in made]
    run = jaxpr_as_fun(loop.params["jaxpr"])
    stacked = [v.aval for v in loop.outvars[num_carry:]]

    def one(iteration, wholes, carried, stacks):
        env = {**dict(zip(outer, wholes, strict=True)), **program.consts}
        evaluate(free, env)

        def read(v):
            return jnp.asarray(v.val, v.aval.dtype) if isinstance(v, Literal) else env[v]

        # By the number of the iteration, which is an input: one program for all micro-batches.
        parts = [jax.lax.dynamic_index_in_dim(read(v), iteration, 0, keepdims=False) for v in slices]
        results = run(*[read(v) for v in constants], *carried, *parts)
        # Results that `scan` would stack are written slice by slice into a carry: the tasks of a micro-batch are
        # programs of their own, and there is no `scan` around them any more.
        kept = [
            jax.lax.dynamic_update_index_in_dim(stack, result, iteration, 0)
            for stack, result in zip(stacks, results[num_carry:], strict=True)
        ]
        return [*results[:num_carry], *kept]

    def structs(avals):
        return [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals]

    number = jax.ShapeDtypeStruct((), jnp.int32)
    body = normalise(
        jax.make_jaxpr(one)(
            number, structs([v.aval for v in outer]), structs([v.aval for v in starts]), structs(stacked)
        )
    )
    iteration, *rest = body.invars
    before = rest[len(outer) :]
    begin = [*starts, *[None] * len(stacked)]
    carries = [Carry(*row) for row in zip(before, body.outvars, begin, loop.outvars, strict=True)]
    return body, iteration, dict(zip(rest[: len(outer)], outer, strict=True)), carries
