"""Sharding strategies of ``scan``, ``while`` and ``cond``, found by planning their bodies.

A loop's carry must leave an iteration in the layout in which it entered. For every *seed*, a split of one operand's dim
or a partial operand, the body is planned with that seed and everything else free (broadcast slices for nothing), the
carry is iterated to a fixed point, and the result is one strategy. So a gradient accumulated over micro-batches gets a
strategy in which its carry stays P through the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax.numpy as jnp

from sbpjax._core.programs.normalise import Program, normalise, scan_counts, while_counts
from sbpjax._core.programs.plan import Plan
from sbpjax._core.programs.primitives import CONTROL
from sbpjax._core.programs.rules.table import Strategy, rule
from sbpjax.sbp.algebra import B, P, shift_splits

Codes = tuple[int, ...]


# One object per body: plans of it are cached by its equations, and the lowering finds them again.
@functools.lru_cache(maxsize=4096)
def body_program(closed) -> Program:
    """Return the flat program of a body; the same object for the same body."""
    return normalise(closed)


# The planner plans equations, of which a loop is one, whose strategies come from planning its body: the two modules
# need each other, so the upper one registers itself.
_PLANNER: list[Callable[..., Plan]] = []


def register_body_planner(planner: Callable[..., Plan]) -> Callable[..., Plan]:
    """Register the planner of bodies, which itself needs the strategies of control flow."""
    _PLANNER[:] = [planner]
    return planner


# By the identity of the body: JAX keeps one jaxpr per function and types, and equal layers have the same one.
@functools.lru_cache(maxsize=65536)
def body_plan(closed, sizes: Codes, ins: tuple[Codes, ...], outs: tuple[Codes | None, ...]):
    """Return the exact plan of a body with the given input and output layouts; cached by the body's identity."""
    program = body_program(closed)
    return _PLANNER[0](program, sizes, ins, outs, _FEW_STATES if is_long(program) else None)


# A body is planned once per seed and iteration of its fixed point. One of more equations than this (the backward of a
# recurrent cell has 90) is planned with fewer states, and without the seeds that an earlier strategy already answers.
_LONG, _FEW_STATES = 24, 12


def is_long(program: Program) -> bool:
    """Return whether a body is planned by fewer seeds and states."""
    return len(program.eqns) > _LONG


def inner_bytes(eqn, chosen: tuple[Strategy, ...], sizes: Codes, rough: bool = False) -> int:
    """Return the bytes that the bodies of a control-flow equation move; a ``while`` counts one iteration.

    ``rough``: for a long body on several axes, sum the bytes of each axis with the others broadcast: one plan per
    strategy of an axis instead of one per combination.
    """
    name = eqn.primitive.name
    if name not in CONTROL or all(c == B for strategy in chosen for c in (*strategy.ins, *strategy.outs)):
        return 0
    if rough and len(sizes) > 1 and any(is_long(body_program(body)) for body in _bodies(eqn)):
        return sum(inner_bytes(eqn, (strategy,), (n,)) for strategy, n in zip(chosen, sizes, strict=True))
    ins = tuple(zip(*(strategy.ins for strategy in chosen), strict=True)) if eqn.invars else ()
    outs = tuple(zip(*(strategy.outs for strategy in chosen), strict=True)) if eqn.outvars else ()
    bodies = body_plans(eqn, sizes, ins, outs)
    if name == "cond":
        # The branch taken is not known when it is planned; the most expensive one is an upper bound.
        return max(p.bytes for p in bodies)
    return sum(p.bytes for p in bodies) * eqn.params.get("length", 1)


def _bodies(eqn) -> tuple:
    """Return the closed jaxprs of an equation's bodies."""
    params = eqn.params
    if eqn.primitive.name == "while":
        return params["cond_jaxpr"], params["body_jaxpr"]
    return (params["jaxpr"],) if eqn.primitive.name == "scan" else params["branches"]


def body_plans(eqn, sizes: Codes, ins, outs) -> list:
    """Return the plans of the bodies of an equation under N-D layouts."""
    params, everywhere = eqn.params, (B,) * len(sizes)
    if eqn.primitive.name == "scan":
        consts, carry = scan_counts(params)
        held = consts + carry
        body_in = (*ins[:held], *(shift_splits(c, -1) for c in ins[held:]))
        body_out = (*outs[:carry], *(shift_splits(c, -1) for c in outs[carry:]))
        return [body_plan(params["jaxpr"], sizes, body_in, body_out)]
    if eqn.primitive.name == "while":
        nc, nb = while_counts(params)
        carry = ins[nc + nb :]
        return [
            body_plan(params["cond_jaxpr"], sizes, (*ins[:nc], *carry), (everywhere,)),
            body_plan(params["body_jaxpr"], sizes, (*ins[nc : nc + nb], *carry), carry),
        ]
    return [body_plan(branch, sizes, ins[1:], outs) for branch in params["branches"]]


def _demand(plan, position: int, given: int) -> int:
    """Return the one layout in which a body reads an input on a 1-D mesh, or ``given`` if it reads several."""
    variable = plan.program.invars[position]
    wanted = {
        plan.ins(i)[j][0] for i, e in enumerate(plan.program.eqns) for j, v in enumerate(e.invars) if v is variable
    }
    wanted |= {c[0] for v, c in zip(plan.program.outvars, plan.out_codes, strict=True) if v is variable}
    return wanted.pop() if len(wanted) == 1 else given


def _seeds(avals) -> list[tuple[int, int]]:
    found = []
    for i, aval in enumerate(avals):
        found += [(i, d) for d, n in enumerate(aval.shape) if n > 1]
    found += [(i, P) for i, aval in enumerate(avals) if _is_inexact(aval)]
    return found


def _is_inexact(aval) -> bool:
    return hasattr(aval, "dtype") and jnp.issubdtype(aval.dtype, jnp.inexact)


def _fixed_point(closed, size: int, codes: list[int], carried: dict[int, int]):
    """Return ``(input codes, plan)`` of a loop body whose carry keeps its layout, on one axis.

    Args:
        closed: the body.
        size: ranks on the axis.
        codes: the first guess of the body's input codes.
        carried: output position → input position of each carried value.
    """
    program = body_program(closed)
    free = tuple(None for _ in program.outvars)
    # A split enters the carry in the first iteration, values computed from it in the second. If it has not converged by
    # then, the pins below restore the carry's layout by conversions in the body.
    for _ in range(3):
        plan = body_plan(closed, (size,), tuple((c,) for c in codes), free)
        after = list(codes)
        for o, i in carried.items():
            # Only from broadcast away, never back or across: else the carry could change its layout for ever.
            if codes[i] == B and plan.out_codes[o][0] != B:
                after[i] = plan.out_codes[o][0]
        for i, c in enumerate(after):
            if c == B and i not in carried.values():
                after[i] = _demand(plan, i, B)
        if after == codes:
            break
        codes = after
    pins = tuple((codes[carried[o]],) if o in carried else None for o in range(len(free)))
    return codes, body_plan(closed, (size,), tuple((c,) for c in codes), pins)


@rule("scan")
def scan_strategies(eqn, size: int) -> list[Strategy]:
    """Return one strategy per seed; the scanned dim itself is never split."""
    params = eqn.params
    consts, carry = scan_counts(params)
    held = consts + carry
    closed = params["jaxpr"]
    long = is_long(body_program(closed))
    found = []
    for i, seed in _seeds([v.aval for v in closed.jaxpr.invars]):
        # An earlier strategy that splits this operand so answers the seed, too. For short bodies planning again is
        # cheap and may find another strategy.
        if long and any(
            (*strategy.ins[:held], *shift_splits(strategy.ins[held:], -1))[i] == seed for strategy in found
        ):
            continue
        codes = [B] * len(closed.jaxpr.invars)
        codes[i] = seed
        codes, plan = _fixed_point(closed, size, codes, {o: consts + o for o in range(carry)})
        ins = (*codes[:held], *shift_splits(tuple(codes[held:]), 1))
        outs = (*codes[consts:held], *(shift_splits(c, 1)[0] for c in plan.out_codes[carry:]))
        found.append(Strategy(tuple(ins), tuple(outs)))
    return found


@rule("while")
def while_strategies(eqn, size: int) -> list[Strategy]:
    """Return one strategy per seed on the carry or the body's constants."""
    params = eqn.params
    nc, nb = while_counts(params)
    closed = params["body_jaxpr"]
    found = []
    for i, seed in _seeds([v.aval for v in closed.jaxpr.invars]):
        codes = [B] * len(closed.jaxpr.invars)
        codes[i] = seed
        codes, _ = _fixed_point(closed, size, codes, {o: nb + o for o in range(len(eqn.outvars))})
        found.append(Strategy((B,) * nc + tuple(codes), tuple(codes[nb:])))
    return found


@rule("cond")
def cond_strategies(eqn, size: int) -> list[Strategy]:
    """Return one strategy per seed: the first branch sets the layouts of the outputs, the others follow."""
    branches = eqn.params["branches"]
    closed = branches[-1]
    found = []
    for i, seed in _seeds([v.aval for v in closed.jaxpr.invars]):
        codes = [B] * len(closed.jaxpr.invars)
        codes[i] = seed
        codes, plan = _fixed_point(closed, size, codes, {})
        found.append(Strategy((B, *codes), tuple(c[0] for c in plan.out_codes)))
    return found
