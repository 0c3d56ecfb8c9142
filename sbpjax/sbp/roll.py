"""Rolling: repeated layers of a flat program become one loop.

A traced step of 48 layers is 48 copies of the same equations, and XLA optimises and compiles each of them. Here the
copies are found again (`sbpjax.sbp.plan.tie`), and each stretch of them runs as one `jax.lax.scan`: what a layer hands
to the next is carried, what each layer has of its own (weights, saved activations) is stacked and scanned over, what
all share stays outside. The backward layers scan over the stacks of the forward ones in reverse. So the layers' part of
the program has one size at any depth. XLA:CPU compiles equal kernels only once anyway, and gains little (a tenth at 12
layers).

What it costs: weights and saved activations of the rolled layers are copied into stacks once per step. Stretches
without a contraction (an optimizer's update) are left as they are; stacking them would cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, DropVar, Literal, Var

from .normalise import Program, bind
from .plan.signature import Signatures
from .plan.tie import repetitions

_LEAST_WORK = 16
_LEAST_TURNS = 3


@dataclass
class Loop:
    """A stretch of equations that repeats.

    Attributes:
        start: the position of its first equation.
        period: equations per turn.
        turns: how often it repeats.
        carried: for each carried value its producer in a turn ``(equation, output)`` and the first turn's value.
        shared: values that every turn reads.
        own: for each per-turn value the variables (or literals) of all turns.
        kept: for each output ``(equation, output)`` that is read outside, the variables of all turns.
        slots: how each operand of a turn is found: ``(kind, index)``.
    """

    start: int
    period: int
    turns: int
    carried: list[tuple[tuple[int, int], Var]]
    shared: list[Var]
    own: list[tuple]
    kept: list[tuple[tuple[int, int], tuple[Var, ...]]]
    slots: list[list[tuple]]

    @property
    def stop(self) -> int:
        """The position after its last equation."""
        return self.start + self.period * self.turns


def loops(program: Program) -> list[Loop]:
    """Return the loops that a program can be rolled into, in order and disjoint."""
    signatures = Signatures()
    numbers = [signatures.number(e) for e in program.eqns]
    found = []
    for start, stop, period in repetitions(numbers):
        work = sum(_size(e) for e in program.eqns[start : start + period])
        if work >= _LEAST_WORK and stop - start >= _LEAST_TURNS * period:
            loop = _fit(program, start, stop, period)
            if loop is not None and not _has_effects(program, loop):
                found.append(loop)
    return found


def _size(eqn) -> int:
    """Return how many equations an equation stands for."""
    inner = eqn.params.get("jaxpr")
    return 1 if inner is None else sum(_size(e) for e in getattr(inner, "jaxpr", inner).eqns)


def _has_effects(program: Program, loop: Loop) -> bool:
    turn = program.eqns[loop.start : loop.start + loop.period]
    names = {type(effect).__name__ for e in turn for effect in e.effects}
    return bool(names - {"NamedAxisEffect"})  # collectives have that


def _fit(program: Program, start: int, stop: int, period: int) -> Loop | None:
    """Return the loop of a stretch, less turns at either end where they do not read what the others read."""
    for first, last in ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)):
        a, b = start + first * period, stop - last * period
        if b - a >= _LEAST_TURNS * period:
            loop = _analyse(program, a, b, period)
            if loop is not None:
                return loop
    return None


def _analyse(program: Program, start: int, stop: int, period: int) -> Loop | None:
    eqns = program.eqns
    turns = (stop - start) // period
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
            operands = [eqns[start + k * period + j].invars[o] for k in range(turns)]
            if isinstance(example, Literal):
                values = tuple(v.val for v in operands)
                if all(v == values[0] for v in values):
                    slots[-1].append(("literal", example.val))
                else:
                    slots[-1].append(("own", _number((str(example.aval), *values), operands, own, operands_of)))
                continue
            places: list = [place.get(v) for v in operands]
            if all(p is not None and p[0] == k for k, p in enumerate(places)):
                if len({p[1:] for p in places}) != 1:
                    return None
                slots[-1].append(("turn", places[0][1:]))
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
            variables = tuple(eqns[start + k * period + j].outvars[position] for k in range(turns))
            if any(v in outside for v in variables):
                kept.append(((j, position), variables))
    return Loop(start, period, turns, list(carried), list(shared), operands_of, kept, slots)


def _number(key: tuple, operands: list, known: dict, operands_of: list) -> int:
    """Return the number of a per-turn value, a new one for a new key."""
    if key not in known:
        known[key] = len(operands_of)
        operands_of.append(tuple(operands))
    return known[key]


def rolled(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a traced program with its repeated layers as loops; calls of equal functions count as equations."""
    jaxpr = closed.jaxpr
    consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    program = Program(list(jaxpr.invars), consts, list(jaxpr.eqns), list(jaxpr.outvars))
    if not loops(program):
        return closed
    avals = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in jaxpr.invars]
    return jax.make_jaxpr(lambda *arrays: run_rolled(program, arrays))(*avals)


def run_rolled(program: Program, arrays: Sequence) -> list:
    """Run a flat program on arrays (traced), its repeated layers as loops."""
    return _Run(program).run(arrays)


class _Run:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.env: dict = dict(program.consts)
        self.stacked: dict = {}  # variable → (which stack, its index there)
        self.stacks: list = []

    def run(self, arrays: Sequence) -> list:
        self.env.update(zip(self.program.invars, arrays, strict=True))
        at = 0
        for loop in loops(self.program):
            self._straight(at, loop.start)
            self._loop(loop)
            at = loop.stop
        self._straight(at, len(self.program.eqns))
        return [self._value(v) for v in self.program.outvars]

    def _value(self, v):
        if isinstance(v, Literal):
            return v.val
        if v not in self.env:
            stack, index = self.stacked[v]
            self.env[v] = jax.lax.index_in_dim(self.stacks[stack], index, 0, keepdims=False)
        return self.env[v]

    def _straight(self, start: int, stop: int) -> None:
        for eqn in self.program.eqns[start:stop]:
            self.env.update(zip(eqn.outvars, bind(eqn, [self._value(v) for v in eqn.invars]), strict=True))

    def _loop(self, loop: Loop) -> None:
        reverse = any(self._stack_of(variables[::-1]) is not None for variables in loop.own)
        order = -1 if reverse else 1
        scanned = [self._stack(variables[::order]) for variables in loop.own]
        shared = [self._value(v) for v in loop.shared]
        eqns = self.program.eqns[loop.start : loop.start + loop.period]

        def turn(carry, own):
            made: dict = {}
            for j, eqn in enumerate(eqns):
                operands = []
                for kind, what in loop.slots[j]:
                    if kind == "literal":
                        operands.append(what)
                    elif kind == "turn":
                        operands.append(made[what])
                    else:
                        operands.append({"carry": carry, "shared": shared, "own": own}[kind][what])
                made.update(((j, position), x) for position, x in enumerate(bind(eqn, operands)))
            return tuple(made[producer] for producer, _ in loop.carried), tuple(made[p] for p, _ in loop.kept)

        avals: list = [v.aval for _, v in loop.carried]
        start = tuple(jnp.asarray(self._value(v), a.dtype) for (_, v), a in zip(loop.carried, avals))
        last, kept = jax.lax.scan(turn, start, tuple(scanned), length=loop.turns, reverse=reverse)
        for (_, variables), stack in zip(loop.kept, kept, strict=True):
            self._remember(variables[::order], stack)
        finals = {producer: value for (producer, _), value in zip(loop.carried, last, strict=True)}
        for producer, variables in loop.kept:
            if producer in finals:
                self.env[variables[-1]] = finals[producer]

    def _stack_of(self, variables) -> int | None:
        """Return the stack that holds exactly these variables in this order, if there is one."""
        found: list = [None if isinstance(v, Literal) else self.stacked.get(v) for v in variables]
        if any(f is None for f in found) or len({f[0] for f in found}) != 1:
            return None
        stack = found[0][0]
        whole = self.stacks[stack].shape[0] == len(variables)
        return stack if whole and [f[1] for f in found] == list(range(len(variables))) else None

    def _stack(self, variables):
        stack = self._stack_of(variables)
        if isinstance(variables[0], Literal):
            return jnp.stack([jnp.asarray(v.val, v.aval.dtype) for v in variables])
        if stack is None:
            self._remember(variables, jnp.stack([self._value(v) for v in variables]))
            stack = len(self.stacks) - 1
        return self.stacks[stack]

    def _remember(self, variables, stack) -> None:
        self.stacks.append(stack)
        self.stacked.update((v, (len(self.stacks) - 1, i)) for i, v in enumerate(variables))
