"""Planner of one eager op: the exact planner, or the linear program for ops with long loops.

To the exact planner a loop is one equation, whose strategies come from planning its body once per seed and, on N-D
placements, once per pair of strategies. A two-layer bidirectional LSTM of 7 steps is four scans of 24 equations, its
backward eight of up to 41: on 2 × 2 ranks that took minutes. The linear program takes the body of a loop as part of the
program around it (`loop_boundary`): about two seconds. Here it is given prices that count as the exact planner does:
bytes, then steps.

An axis on which every input and every pin is broadcast needs no plan: everything stays broadcast there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sbpjax._core.planner.prices.cost import CostModel
from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax._core.programs.rules import Strategy
from sbpjax.sbp.algebra import B

from .control import body_program
from .exact import plan_exactly
from .program import plan_program

# A scan whose body, with all bodies inside it, has more equations than this.
LONG = 16


@dataclass(frozen=True)
class _Bytes(CostModel):
    """The exact planner's prices: bytes, then steps; computing is free."""

    def steps_us(self, steps, block_bytes: float) -> float:
        return sum(self.interconnect_us(s.price) or self.alpha_us for s in steps)


# A byte is 1e-3 µs, a step of a conversion a tenth of that.
# Speeds without end make computing free, as it is to the exact planner.
_BYTES = _Bytes("bytes", 1e24, 1e24, 1e24, 1e24, 1e9, 1e-4)


def plan_one(program: Program, sizes: Codes, in_codes: tuple[Codes, ...], out_pins=None) -> Plan:
    """Return the plan of one eager op: the cheapest, or for an op with a long loop the linear program's.

    ``out_pins``: the nd-sbp wanted of each output; None where the planner is free.
    """
    if not _has_long_loop(program):
        return plan_exactly(program, sizes, in_codes, out_pins)
    pins = tuple(out_pins) if out_pins is not None else (None,) * len(program.outvars)
    # Where one axis of two is left there is no alternation.
    axes = _used_axes(program, sizes, (*in_codes, *(p for p in pins if p is not None)))
    if not axes:
        return _broadcast_plan(program, sizes, in_codes, pins)

    def select_axes(codes):
        return None if codes is None else tuple(codes[a] for a in axes)

    small = plan_program(
        program, select_axes(sizes), [*map(select_axes, in_codes)], [*map(select_axes, pins)], cost=_BYTES
    )
    return _widen_plan(small, sizes, axes)


def _has_long_loop(program: Program) -> bool:
    return any(e.primitive.name == "scan" and _length(body_program(e.params["jaxpr"])) > LONG for e in program.eqns)


def _length(program: Program) -> int:
    inner = (body_program(e.params["jaxpr"]) for e in program.eqns if e.primitive.name == "scan")
    return len(program.eqns) + sum(map(_length, inner))


def _used_axes(program: Program, sizes: Codes, given) -> tuple[int, ...]:
    """Return the axes on which a layout is given; all of them if a pin inside names axes by number."""
    if _has_pins(program):
        return tuple(range(len(sizes)))
    return tuple(a for a in range(len(sizes)) if any(codes[a] != B for codes in given))


def _has_pins(program: Program) -> bool:
    return any(
        e.primitive.name == "to_sbp" or e.primitive.name == "scan" and _has_pins(body_program(e.params["jaxpr"]))
        for e in program.eqns
    )


def _broadcast(eqn) -> Strategy:
    return Strategy((B,) * len(eqn.invars), (B,) * len(eqn.outvars), divided=False)


def _broadcast_plan(program: Program, sizes: Codes, in_codes, pins) -> Plan:
    """Return the plan with everything broadcast."""
    strategies = [(_broadcast(e),) * len(sizes) for e in program.eqns]
    outs = tuple(pin or (B,) * len(sizes) for pin in pins)
    return Plan(program, sizes, in_codes, strategies, outs)


def _widen_plan(plan: Plan, sizes: Codes, axes: tuple[int, ...]) -> Plan:
    """Return a plan on some of the axes as one on all of them, broadcast on the others."""
    if len(axes) == len(sizes):
        return plan

    def codes(found: Codes) -> Codes:
        own = dict(zip(axes, found, strict=True))
        return tuple(own.get(a, B) for a in range(len(sizes)))

    def strategies(eqn, found: tuple[Strategy, ...]) -> tuple[Strategy, ...]:
        own = dict(zip(axes, found, strict=True))
        return tuple(own.get(a) or _broadcast(eqn) for a in range(len(sizes)))

    return replace(
        plan,
        sizes=sizes,
        in_codes=tuple(map(codes, plan.in_codes)),
        strategies=[strategies(e, r) for e, r in zip(plan.program.eqns, plan.strategies, strict=True)],
        out_codes=tuple(map(codes, plan.out_codes)),
        bodies={i: _widen_plan(body, sizes, axes) for i, body in plan.bodies.items()},
        _boxings=None,
    )
