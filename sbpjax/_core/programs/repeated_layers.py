"""Repeated layers: finds periodic runs of equations in a flat program.

`repetitions` finds runs in a list of equation forms: in ``a b c b c b c d`` the run ``b c`` of period 2 occurs three
times. `layer_loops` finds the dataflow between the layers of such a run: carried values, values of each layer, and
shared values.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from sbpjax._core.jax_private import DropVar, Literal, Var
from sbpjax._core.programs.primitives import LOOPS, PRODUCTS

from .equation_form import EquationForms
from .normalise import Program

# Three readers search, each in the program of its own step, because the repetitions differ from step to step:
# * `scan_layers` before the program is flat. A layer that was traced as a block is one call there, so a 12-layer step
#   has a few hundred equations, and the result decides which inputs become stacks.
# * `planner/shared_variables.py` in the flat program, with the pins. Where every second layer is tensor-parallel, a
#   period is two layers; where the later half is, one run becomes two. Runs of equal forms alone tied layers of unlike
#   pins.
# * `outline` in the lowered program. Layers that the plan lays out differently are different code by then, and the
#   collectives are between them. Equations cannot be followed there from the flat program: rules bind several for one,
#   and XLA names operations, and files compiled programs, by the name stack that could carry a mark. Nor can the trace
#   mark it: functions without modules, hooked modules and the optimizer's update, which is the longest run, are no
#   blocks.
# The three searches take 0.02, 0.4 and 0.6 of the 22 s in which a 12-layer step is made on CPU.

# The number of candidate periods tried on one stretch of equations; each costs one pass over it.
_CANDIDATES = 12
# Equations of an iteration from which a loop is worth its stacks.
_LEAST_WORK = 16
LEAST_ITERATIONS = 3
_CONTRACTIONS = PRODUCTS | LOOPS


@dataclass
class LayerLoop:
    """A stretch of equations that repeats.

    Attributes:
        start: the position of its first equation.
        period: equations per iteration.
        iterations: the number of repetitions.
        carried: for each carried value its producer in an iteration ``(equation, output)`` and the first iteration's
            value.
        shared: values that every iteration reads.
        own: for each per-iteration value the variables (or literals) of all iterations.
        kept: for each output ``(equation, output)`` that is read outside, the variables of all iterations.
        slots: the source of each operand of an iteration: ``(kind, index)``.
    """

    start: int
    period: int
    iterations: int
    carried: list[tuple[tuple[int, int], Var]]
    shared: list[Var]
    own: list[tuple]
    kept: list[tuple[tuple[int, int], tuple[Var, ...]]]
    slots: list[list[tuple]]

    @property
    def stop(self) -> int:
        """The position after its last equation."""
        return self.start + self.period * self.iterations


def layer_loops(
    program: Program,
    resident: Collection[Var] = (),
    bodies: dict | None = None,
    least_iterations: int = LEAST_ITERATIONS,
) -> list[LayerLoop]:
    """Return the loops that a program can be rolled into, in order and disjoint.

    Args:
        program: its equations; calls of equal functions are equal equations.
        resident: inputs that may be stacks already; a stretch without a contraction is rolled only if nothing has to be
            stacked for it.
        bodies: the equations that are loops themselves, with their rolled bodies.
        least_iterations: the least number of repetitions.
    """
    forms = EquationForms()
    numbers = [forms.number(e) for e in program.eqns]
    found: list[LayerLoop] = []
    stacked = set(resident)
    for i, body in (bodies or {}).items():
        stacked.update(program.eqns[i].outvars[k] for group in body.outputs if group[1:] for k in group)
    for start, stop, period in repetitions(numbers, [_size(e) for e in program.eqns]):
        if stop - start >= least_iterations * period:
            loop = _trim_to_loop(program, start, stop, period, least_iterations)
            if loop is not None and _is_worth_it(program, loop, stacked):
                found.append(loop)
                stacked.update(v for _, variables in loop.kept for v in variables)
    return found


def _is_worth_it(program: Program, loop: LayerLoop, stacked: set) -> bool:
    iteration = program.eqns[loop.start : loop.start + loop.period]
    names = {type(effect).__name__ for e in iteration for effect in e.effects}
    # A print or a callback must happen as often, and in the order, in which the user wrote it.
    if names - {"NamedAxisEffect"}:  # collectives have that
        return False
    operands = [v for variables in loop.own for v in variables if isinstance(v, Var)]
    if operands and all(v in stacked for v in operands):
        return True
    return sum(map(_size, iteration)) >= _LEAST_WORK and any(map(_contracts, iteration))


def _contracts(eqn) -> bool:
    inner = eqn.params.get("jaxpr")
    if eqn.primitive.name in _CONTRACTIONS or inner is None:
        return eqn.primitive.name in _CONTRACTIONS
    return any(_contracts(e) for e in getattr(inner, "jaxpr", inner).eqns)


# Equal layers call the same body: its size is found once, not once per call.
@functools.lru_cache(maxsize=1024)
def _size_of_body(closed) -> int:
    return sum(_size(e) for e in getattr(closed, "jaxpr", closed).eqns)


def _size(eqn) -> int:
    """Return the number of equations inside an equation."""
    inner = eqn.params.get("jaxpr")
    return 1 if inner is None else _size_of_body(inner)


def _trim_to_loop(program: Program, start: int, stop: int, period: int, least_iterations: int) -> LayerLoop | None:
    """Return the loop of a stretch, without iterations at either end whose operands differ from the others'."""
    # The first layer reads the embedding, and the head reads the last: those at the ends may be connected otherwise.
    for first, last in ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)):
        a, b = start + first * period, stop - last * period
        if b - a >= least_iterations * period:
            loop = _analyse(program, a, b, period)
            if loop is not None:
                return loop
    return None


def _analyse(program: Program, start: int, stop: int, period: int) -> LayerLoop | None:
    eqns = program.eqns
    iterations = (stop - start) // period
    place = {
        v: (i // period, i % period, position)
        for i in range(stop - start)
        for position, v in enumerate(eqns[start + i].outvars)
        if not isinstance(v, DropVar)
    }
    carried: dict = {}
    shared: dict = {}
    own: dict = {}
    operands_of: list[tuple] = []  # of each own value
    slots: list[list[tuple]] = []
    for j in range(period):
        slots.append([])
        for o, example in enumerate(eqns[start + j].invars):
            operands = [eqns[start + k * period + j].invars[o] for k in range(iterations)]
            if isinstance(example, Literal):
                values = tuple(v.val for v in operands)
                if all(v == values[0] for v in values):
                    slots[-1].append(("literal", example.val))
                else:
                    # Literals have no identity: two are one value if dtype and bytes are equal.
                    key = (str(example.aval), *(np.asarray(v).tobytes() for v in values))
                    slots[-1].append(("own", _number(key, operands, own, operands_of)))
                continue
            places: list = [place.get(v) for v in operands]
            # Made in the iteration itself, which has to be by the same equation in all of them.
            if all(p is not None and p[0] == k for k, p in enumerate(places)):
                if len({p[1:] for p in places}) != 1:
                    return None
                slots[-1].append(("iteration", places[0][1:]))
            # Made by the iteration before, and for the first one outside. The first value is part of the key: one
            # result that is passed on twice, with two initial values, is two carries.
            elif places[0] is None and all(p is not None and p[0] == k for k, p in enumerate(places[1:])):
                if len({p[1:] for p in places[1:]}) != 1:
                    return None
                key = (places[1][1:], operands[0])
                slots[-1].append(("carry", carried.setdefault(key, len(carried))))
            elif all(p is None for p in places):
                if len(set(operands)) == 1:
                    slots[-1].append(("shared", shared.setdefault(operands[0], len(shared))))
                else:
                    slots[-1].append(("own", _number(tuple(operands), operands, own, operands_of)))
            else:
                return None
    outside = {v for v in program.outvars if isinstance(v, Var)}
    for i, eqn in enumerate(eqns):
        if not start <= i < stop:
            outside.update(v for v in eqn.invars if isinstance(v, Var))
    kept = []
    for j in range(period):
        for position in range(len(eqns[start + j].outvars)):
            variables = tuple(eqns[start + k * period + j].outvars[position] for k in range(iterations))
            if any(v in outside for v in variables):
                kept.append(((j, position), variables))
    return LayerLoop(start, period, iterations, list(carried), list(shared), operands_of, kept, slots)


def _number(key: tuple, operands: list, known: dict, operands_of: list) -> int:
    """Return the number of a per-iteration value, a new one for a new key."""
    if key not in known:
        known[key] = len(operands_of)
        operands_of.append(tuple(operands))
    return known[key]


def repetitions(forms: Sequence[int], weights: Sequence[int] | None = None) -> list[tuple[int, int, int]]:
    """Return disjoint runs ``(start, stop, period)`` in which every element equals the one a period before it.

    Args:
        forms: the number of each equation's form.
        weights: the weight of each equation, e.g. a call as the equations inside it; 1 each by default.
    """
    weights = [1] * len(forms) if weights is None else weights
    before = [0, *itertools.accumulate(weights)]
    found: list[tuple[int, int, int]] = []
    stretches = [(0, len(forms))]
    while stretches:
        start, stop = stretches.pop()
        if stop - start < 4:
            continue
        run = _longest(forms, weights, before, start, stop)
        if run is None:
            continue
        first, last, _ = run
        found.append(run)
        stretches.append((start, first))
        stretches.append((last, stop))
    return sorted(found)


def _longest(forms, weights, before, start: int, stop: int) -> tuple[int, int, int] | None:
    """Return the run that saves the most weight within ``start:stop``, whole periods only; `before` adds weights up."""
    gaps: Counter = Counter()
    last: dict[int, int] = {}
    for i in range(start, stop):
        form = forms[i]
        if form in last:
            gaps[i - last[form]] += weights[i]
        last[form] = i
    # Rare elements repeat at exactly the period, frequent ones at its parts: large gaps that occur often are the
    # candidates.
    ranked = sorted(gaps, key=lambda gap: (-gap * gaps[gap], gap))[:_CANDIDATES]
    best = None
    for period in ranked:
        i = start
        while i + period < stop:
            first = i
            while i + period < stop and forms[i] == forms[i + period]:
                i += 1
            length = i - first + period
            # A loop saves all of its iterations but one.
            saved = before[first + length // period * period] - before[first + period]
            if saved > 0 and (best is None or saved > best[0] or (saved == best[0] and period < best[1][2])):
                best = (saved, (first, first + length // period * period, period))
            i += 1
    return best[1] if best else None
