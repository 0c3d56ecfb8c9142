"""Exact planner of small programs: state-space search over the layouts of one eager op.

Take ``softmax`` of an ``(8, 12)`` tensor with sbp ``S1`` on four ranks: either the tensor goes to ``S0`` by one
all-to-all (72 bytes), or it stays and the row maximum and the row sum are reduced across ranks (96 bytes). The planner
weighs such choices over the whole op.

It walks the equations in order and keeps *states*: for every live value the set of layouts it exists in, with the cost
so far. A state is dropped when another reaches everything it has by conversions at no more cost. Cost is (bytes moved,
conversions, work not divided, order in the table), in that order of weight. Conversions are counted in single-axis
steps; an output that is divided or partial on an axis where every input is broadcast counts as one more: no layout is
invented. Scalars that depend on scalar inputs alone are broadcast and take no part, and parts of the program that share
nothing else (the parameters of an optimizer's update) are planned one by one, equal parts once.
"""

from __future__ import annotations

import functools
import itertools
import logging
import math
from dataclasses import dataclass, replace

from sbpjax._core.jax_private import DropVar, Literal, Var
from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax._core.programs.rules import Strategy, is_refused, jointly_legal, moved_inside, strategies_of
from sbpjax.sbp import boxing
from sbpjax.sbp.algebra import B

from .components import Part, parts_of
from .control import inner_bytes, register_body_planner

log = logging.getLogger("sbpjax.plan")

# The parts of a cost are digits of one integer, compared at once; they are far enough apart that none spills over.
_BYTES = 1 << 120
_CONVERSION = 1 << 90
_UNDIVIDED = 1 << 30
# Beyond this only the cheapest states are kept, and the log warns that the plan may not be optimal.
MAX_STATES = 48


@dataclass(frozen=True)
class Candidate:
    """An n-D strategy of an equation, one per axis, and its cost without conversions."""

    strategies: tuple[Strategy, ...]
    ins: tuple[Codes, ...]
    outs: tuple[Codes, ...]
    cost: int


def candidates(eqn, sizes: Codes) -> list[Candidate]:
    """Return the n-D strategies of an equation on a mesh, in table order."""
    per_axis = [strategies_of(eqn, n, axis) for axis, n in enumerate(sizes)]
    found = []
    count = math.prod(len(strategies) for strategies in per_axis)
    for position, chosen in enumerate(itertools.product(*per_axis)):
        order = position if len(sizes) == 1 else count - 1 - position  # as in OneFlow: in N-D the last wins a tie
        if not jointly_legal(eqn, chosen, sizes):
            continue
        ins = tuple(zip(*(strategy.ins for strategy in chosen), strict=True)) if eqn.invars else ()
        outs = tuple(zip(*(strategy.outs for strategy in chosen), strict=True)) if eqn.outvars else ()
        # Of strategies that move as much, the one that divides more work: else all-B would often win by its place.
        undivided = math.prod(n for n, strategy in zip(sizes, chosen, strict=True) if not strategy.divided)
        work = max((math.prod(getattr(v.aval, "shape", ())) for v in eqn.outvars), default=0)
        cost = equation_traffic_bytes(eqn, chosen, sizes, rough=True) * _BYTES + undivided * work * _UNDIVIDED + order
        found.append(Candidate(chosen, ins, outs, cost))
    axes = tuple(range(len(sizes)))
    return [c for c in found if not is_refused(eqn, c.strategies, axes)] or found


def equation_traffic_bytes(eqn, chosen: tuple[Strategy, ...], sizes: Codes, rough: bool = False) -> int:
    """Return the bytes that an equation moves inside itself under ``chosen``; `rough` as in `inner_bytes`."""
    return inner_bytes(eqn, chosen, sizes, rough) + sum(m.bytes for m in moved_inside(eqn, chosen, sizes))


@register_body_planner
def plan_exactly(
    program: Program,
    sizes: Codes,
    in_codes: tuple[Codes, ...],
    out_pins: tuple[Codes | None, ...] | None = None,
    most: int | None = None,
) -> Plan:
    """Return the cheapest plan of a program for inputs of the given sbp.

    ``out_pins``: the nd-sbp wanted of each output; None where the planner is free.
    """
    out_pins = out_pins or (None,) * len(program.outvars)
    everywhere = (B,) * len(sizes)
    given = dict(zip(program.invars, in_codes, strict=True))
    chosen: list = [None] * len(program.eqns)
    produced: dict = dict(given)
    solved: dict = {}
    free = {v for v, pin in zip(program.outvars, out_pins, strict=True) if pin is None and isinstance(v, Var)}
    for part in parts_of(program, given, out_pins, everywhere):
        key = part.key
        # An optimizer's update is one part per parameter, and all parameters of a shape are one key.
        if key not in solved:
            solved[key] = _solve(part, sizes, free, most or MAX_STATES)
        for i, candidate in zip(part.indices, solved[key], strict=True):
            chosen[i] = candidate
            produced.update(zip(program.eqns[i].outvars, candidate.outs, strict=True))
    out_codes = tuple(
        pin or (everywhere if isinstance(v, Literal) else produced.get(v, everywhere))
        for v, pin in zip(program.outvars, out_pins, strict=True)
    )
    inner = sum(equation_traffic_bytes(e, c.strategies, sizes) for e, c in zip(program.eqns, chosen, strict=True))
    return Plan(program, sizes, in_codes, [c.strategies for c in chosen], out_codes, inner)


def _solve(part: Part, sizes: Codes, free: set, most: int) -> list[Candidate]:
    """Return the cheapest candidate of each equation of a part; ``free`` are the outputs without a pin."""
    everywhere = (B,) * len(sizes)
    # The choices are a linked list from the last one back: states share their beginnings, and copies of lists would be
    # quadratic.
    states = [(0, {v: frozenset((c,)) for v, c in part.given.items()}, None)]
    for position, eqn in enumerate(part.eqns):
        options = _charge_conversions(candidates(eqn, sizes), eqn, part.uniform)
        reads = [(i, v) for i, v in enumerate(eqn.invars) if isinstance(v, Var) and v not in part.uniform]
        made = [
            (o, v)
            for o, v in enumerate(eqn.outvars)
            if v in part.live and v not in part.uniform and not isinstance(v, DropVar)
        ]
        # Cheapest first, so that a state is only held against cheaper ones; the sort is stable: ties keep table order.
        ranked = sorted(_rank_options(states, options, reads, sizes), key=lambda entry: entry[0])
        states = _drop_dominated(_successors(ranked, reads, made, part.last_reads[position]), sizes, most)
    # No layout is invented for the caller: where he split nothing, a divided result only defers a gather to its
    # readers.
    unpinned = [a for a in range(len(sizes)) if all(c[a] == B for c in part.given.values())]
    best, trail = None, None
    for cost, env, options in states:
        total = cost
        for v, pin in part.pins:
            have = env.get(v, frozenset((everywhere,)))
            if pin not in have:
                total += _convert(v.aval.shape, v.aval.dtype.itemsize, sizes, have, pin)
        total += _CONVERSION * _count_invented(env, free, unpinned)
        if best is None or total < best:
            best, trail = total, options
    result = []
    while trail is not None:
        trail, option = trail
        result.append(option)
    return result[::-1]


def _count_invented(env: dict, free: set, unpinned: list[int]) -> int:
    """Return the number of axes on which outputs are divided or partial although every input is broadcast."""
    if not unpinned:
        return 0
    return sum(codes[a] != B for v in free if v in env for codes in env[v] for a in unpinned)


def _charge_conversions(options: list[Candidate], eqn, uniform: set) -> list[Candidate]:
    """Charge a conversion for each number that is wanted as a partial sum: ``x * 2`` of a broadcast stays broadcast."""
    numbers = [i for i, v in enumerate(eqn.invars) if isinstance(v, Literal) or v in uniform]
    if not numbers:
        return options
    return [
        replace(option, cost=option.cost + _CONVERSION * sum(c != B for i in numbers for c in option.ins[i]))
        for option in options
    ]


def _rank_options(states, options, reads, sizes: Codes):
    """Yield ``(cost, state, option)`` for every state and every n-D strategy of one equation."""
    for state in states:
        cost, env, _ = state
        price: dict = {}
        for option in options:
            total = cost + option.cost
            paid = set()
            for i, v in reads:
                want = option.ins[i]
                key = (v, want)
                if key in paid:
                    continue
                found = price.get(key)
                if found is None:
                    have = env[v]
                    found = 0 if want in have else _convert(v.aval.shape, v.aval.dtype.itemsize, sizes, have, want)
                    price[key] = found
                paid.add(key)
                total += found
            yield total, state, option


def _successors(ranked, reads, made, dead):
    """Yield the states that follow, cheapest first."""
    for total, (_, env, trail), option in ranked:
        # Dead values are dropped at once: states that differ in them alone become equal, and one of the two goes.
        after = {v: c for v, c in env.items() if v not in dead}
        for i, v in reads:
            if v in after and option.ins[i] not in after[v]:
                after[v] = after[v] | {option.ins[i]}
        for o, v in made:
            after[v] = frozenset((option.outs[o],))
        yield total, after, (trail, option)


def _drop_dominated(states, sizes: Codes, most: int) -> list:
    """Keep the states, cheapest first, that no cheaper one reaches within the difference of their costs."""
    kept: list = []
    for state in states:
        for other in kept:
            if other.dominates(state, sizes):
                break
        else:
            kept.append(_PricedState(state))
            if len(kept) == most:
                log.debug("more than %d states: the plan of this op may not be the cheapest", most)
                break
    return [k.state for k in kept]


class _PricedState:
    """A state with the prices, found so far, of making further copies from it."""

    __slots__ = ("cost", "env", "prices", "state")

    def __init__(self, state) -> None:
        self.state = state
        self.cost, self.env, _ = state
        self.prices: dict = {}

    def dominates(self, state, sizes: Codes) -> bool:
        """Return whether every copy of ``state`` can be made from this one within the difference of their costs."""
        cost, want, _ = state
        budget = cost - self.cost
        env, prices = self.env, self.prices
        for v, copies in want.items():
            mine = env[v]
            if mine is copies or mine == copies:  # most values are the same since the states parted
                continue
            for codes in copies:
                if codes in mine:
                    continue
                if budget <= 0:  # before the price, which is a shortest path
                    return False
                key = (v, codes)
                price = prices.get(key)
                if price is None:
                    price = prices[key] = _convert(v.aval.shape, v.aval.dtype.itemsize, sizes, mine, codes)
                budget -= price
                if budget < 0:
                    return False
        return True


# One op needs the same conversion thousands of times, and each is a shortest path.
@functools.lru_cache(maxsize=1 << 18)
def _convert(shape, itemsize: int, sizes: Codes, have: frozenset, want: Codes) -> int:
    ways = ((shape, itemsize, sizes, c, want) for c in have)
    return min(boxing.cost(*way) * _BYTES + boxing.hops(*way) * _CONVERSION for way in ways)
