"""Scan over layers: repeated layers of a flat program become one `jax.lax.scan`.

A traced step of 48 layers is 48 copies of the same equations, and XLA optimises and compiles each of them. Here the
copies are found again (`_core.programs.repeated_layers`), and each stretch of them runs as one `jax.lax.scan`: values
passed from layer to layer are carried, values of each layer (weights, saved activations) are stacked and scanned over,
shared values stay outside. The backward layers scan over the stacks of the forward ones in reverse. So the layers' part
of the program has one size at any depth: 48 layers are traced, planned and compiled in 1.1 times the time of 4. A loop
in the program, such as gradient accumulation, has its body rolled too.

`roll_layers` works on a traced program before it is planned. Inputs and outputs that a caller may keep as stacks
(weights, optimizer state) become stacks, so nothing is copied into one in a step, and an optimizer's update of them is
a loop as well. Other values are stacked in the program; a stretch without a contraction is not worth that and stays as
it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from sbpjax._core.jax_private import ClosedJaxpr, Literal, Var, jaxpr_as_fun

from .normalise import Program, bind, run_scan_with_body, scan_counts
from .repeated_layers import LEAST_ITERATIONS, LayerLoop, layer_loops


@dataclass(frozen=True)
class ScannedProgram:
    """A program with its repeated layers as loops, and its inputs and outputs that became stacks.

    Attributes:
        closed: the program.
        inputs: for every input the positions of the inputs before: one, or all of a stack.
        outputs: the same of the outputs.
    """

    closed: ClosedJaxpr
    inputs: list[tuple[int, ...]]
    outputs: list[tuple[int, ...]]


def roll_layers(
    closed: ClosedJaxpr, resident: dict[int, tuple] | None = None, least_iterations: int = LEAST_ITERATIONS
) -> ScannedProgram:
    """Return a traced program with its repeated layers as loops; calls of equal functions count as equations.

    Args:
        closed: the program.
        resident: position of an input that may be kept as part of a stack from call to call → ``(kind, output)``:
            only inputs of equal kind are stacked, and the output is the position at which the input comes back, or
            None. The stacks are inputs and outputs of the result in the place of their first member.
        least_iterations: the least number of repetitions.
    """
    jaxpr = closed.jaxpr
    consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    program = Program(list(jaxpr.invars), consts, list(jaxpr.eqns), list(jaxpr.outvars))
    resident = resident or {}
    inner = {i: _roll_loop_body(e, least_iterations) for i, e in enumerate(program.eqns) if e.primitive.name == "scan"}
    bodies = {i: body for i, body in inner.items() if body is not None}
    found = layer_loops(program, {program.invars[i] for i in resident}, bodies, least_iterations)
    groups = _groups(program, found, bodies, resident)
    inputs = _partition(len(program.invars), groups)
    outputs = _partition(len(program.outvars), [[resident[i][1] for i in g] for g in groups])
    # The very same program: callers compare by identity whether anything changed.
    if not found and not bodies:
        return ScannedProgram(closed, inputs, outputs)
    avals = [_stacked_aval([program.invars[i].aval for i in group]) for group in inputs]
    run = _Run(program, found, bodies)
    return ScannedProgram(jax.make_jaxpr(lambda *xs: run.run(xs, inputs, outputs))(*avals), inputs, outputs)


def _stacked_aval(avals: list):
    shape = avals[0].shape
    return jax.ShapeDtypeStruct((len(avals), *shape) if len(avals) > 1 else shape, avals[0].dtype)


def _roll_loop_body(eqn, least_iterations: int) -> ScannedProgram | None:
    """Return the body of a loop with its repeated layers rolled, None if it has none."""
    params = eqn.params
    consts, carry = scan_counts(params)
    resident: dict[int, tuple] = {}
    # The scanned operands of a body are slices already. A constant and a carry are of two kinds: a carry comes back
    # from the iteration, and its stack with it.
    for i, v in enumerate(params["jaxpr"].jaxpr.invars[: consts + carry]):
        resident[i] = ((i < consts, str(v.aval)), None if i < consts else i - consts)
    body = roll_layers(params["jaxpr"], resident, least_iterations)
    return None if body.closed is params["jaxpr"] else body


def _groups(program: Program, found: list[LayerLoop], bodies: dict, resident: dict[int, tuple]) -> list[list[int]]:
    """Return the inputs that the loops read as stacks and that may be kept so, in the order of the layers."""
    place = {program.invars[i]: i for i in resident}
    groups: list[list[int]] = []
    taken: set[int] = set()
    read = [own for loop in found for own in loop.own]
    read += [[program.eqns[i].invars[k] for k in group] for i, b in bodies.items() for group in b.inputs if group[1:]]
    for variables in read:
        group = [place[v] for v in variables if isinstance(v, Var) and v in place]
        # An input is in one stack only: where two loops want it in different ones, the second makes its own in the
        # program.
        if len(group) < len(variables) or taken.intersection(group):
            continue
        # Backward reads the layers from last to first; the stack is kept in the order of the layers, and scanned in
        # reverse.
        group = group if group[0] < group[-1] else group[::-1]
        kinds = {resident[i][0] for i in group}
        back = {resident[i][1] is None for i in group}
        if len(kinds) == len(back) == 1 and len(set(group)) == len(group):
            groups.append(group)
            taken.update(group)
    return groups


def _partition(count: int, groups: Sequence) -> list[tuple[int, ...]]:
    """Return positions 0 … count - 1 in order, those of a group together at its first."""
    of = {i: tuple(g) for g in groups for i in g if i is not None}
    return [of.get(i, (i,)) for i in range(count) if i not in of or min(of[i]) == i]


class _Run:
    def __init__(self, program: Program, found: list[LayerLoop], bodies: dict[int, ScannedProgram]) -> None:
        self.program = program
        self.found = found
        self.bodies = bodies
        self.env: dict = dict(program.consts)
        self.stacked: dict = {}  # variable → (which stack, its index there)
        self.stacks: list = []
        own = [v for loop in found for v in loop.own if not any(isinstance(x, Literal) for x in v)]
        self.wanted = {*own, *(variables[::-1] for variables in own)}  # the stacks that loops read, in either order

    def run(self, arrays: Sequence, inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> list:
        """Run the program; an input or output of several positions is a stack."""
        for group, array in zip(inputs, arrays, strict=True):
            self._hold([self.program.invars[i] for i in group], array)
        at = 0
        for loop in self.found:
            self._run_equations(at, loop.start)
            self._loop(loop)
            at = loop.stop
        self._run_equations(at, len(self.program.eqns))
        outvars = self.program.outvars
        return [self._group([outvars[i] for i in group]) for group in outputs]

    def _value(self, v):
        if isinstance(v, Literal):
            return v.val
        if v not in self.env:
            stack, index = self.stacked[v]
            # Kept: one slice per value, however many read it.
            self.env[v] = jax.lax.index_in_dim(self.stacks[stack], index, 0, keepdims=False)
        return self.env[v]

    def _run_equations(self, start: int, stop: int) -> None:
        for i, eqn in enumerate(self.program.eqns[start:stop], start):
            if i in self.bodies:
                self._rolled_scan(eqn, self.bodies[i])
            else:
                self.env.update(zip(eqn.outvars, bind(eqn, [self._value(v) for v in eqn.invars]), strict=True))

    def _rolled_scan(self, eqn, body: ScannedProgram) -> None:
        """Run a loop with a rolled body: stacked inputs of the body are stacked inputs of the loop."""
        params = eqn.params
        consts, carry = scan_counts(params)
        operands = [self._group([eqn.invars[i] for i in group]) for group in body.inputs]
        held = sum(group[0] < consts for group in body.inputs)
        state = sum(group[0] < consts + carry for group in body.inputs) - held
        run = jaxpr_as_fun(body.closed)

        first = held + state
        results = run_scan_with_body(params, run, operands[:held], operands[held:first], operands[first:])
        for group, value in zip(body.outputs, results, strict=True):
            self._hold([eqn.outvars[i] for i in group], value)

    def _hold(self, variables: list, value) -> None:
        """Take the value of a variable, or a stack of the values of several."""
        if len(variables) > 1:
            self._remember(variables, value)
        else:
            self.env[variables[0]] = value

    def _group(self, variables: list):
        return self._stack(variables) if len(variables) > 1 else self._value(variables[0])

    def _loop(self, loop: LayerLoop) -> None:
        # Where the iterations find their values from the end of a stack to its start, the scan runs in reverse: turning
        # the stack round would copy it.
        reverse = any(map(self._is_reversed, loop.own))
        order = -1 if reverse else 1
        scanned = [self._stack(variables[::order]) for variables in loop.own]
        shared = [self._value(v) for v in loop.shared]
        eqns = self.program.eqns[loop.start : loop.start + loop.period]
        starts, kept = self._stacked_outputs(loop)

        def iteration(carry, own):
            made: dict = {}
            for j, eqn in enumerate(eqns):
                operands = []
                for kind, item in loop.slots[j]:
                    if kind == "literal":
                        operands.append(item)
                    elif kind == "iteration":
                        operands.append(made[item])
                    else:
                        operands.append({"carry": carry, "shared": shared, "own": own}[kind][item])
                made.update(((j, position), x) for position, x in enumerate(bind(eqn, operands)))
            stacked = (*(carry[i] for i, _ in starts), *(made[p] for p, _ in kept))
            return tuple(made[producer] for producer, _ in loop.carried), stacked

        avals: list = [v.aval for _, v in loop.carried]
        # The first value may be a bare number, and a carry has one dtype from beginning to end.
        start = tuple(jnp.asarray(self._value(v), a.dtype) for (_, v), a in zip(loop.carried, avals))
        last, stacks = jax.lax.scan(iteration, start, tuple(scanned), length=loop.iterations, reverse=reverse)
        for (_, variables), stack in zip((*starts, *kept), stacks, strict=True):
            self._remember(variables[::order], stack)
        finals = {producer: value for (producer, _), value in zip(loop.carried, last, strict=True)}
        for producer, variables in loop.kept:
            if producer in finals:
                self.env[variables[-1]] = finals[producer]

    def _stacked_outputs(self, loop: LayerLoop) -> tuple[list, list]:
        """Return the stacked outputs of a loop: carried values at the start of iterations, by number, and results."""
        # The carry out of layer k is the carry into layer k + 1. Where a later loop, such as a backward that
        # recomputes, reads the stack of carries at the start, that one is kept, not the one shifted by a place.
        starts, kept = [], []
        carried = {producer: (i, first) for i, (producer, first) in enumerate(loop.carried)}
        for producer, variables in loop.kept:
            number, first = carried.get(producer, (None, None))
            begun = (first, *variables[:-1])
            if number is not None and begun in self.wanted:
                starts.append((number, begun))
            if number is None or begun not in self.wanted or variables in self.wanted:
                kept.append((producer, variables))
        return starts, kept

    def _stack_of(self, variables) -> int | None:
        """Return the stack that holds exactly these variables in this order, if there is one."""
        found: list = [None if isinstance(v, Literal) else self.stacked.get(v) for v in variables]
        if any(f is None for f in found) or len({f[0] for f in found}) != 1:
            return None
        stack = found[0][0]
        # The very stack, in its order: of a part or another order a copy would have to be made.
        whole = self.stacks[stack].shape[0] == len(variables)
        return stack if whole and [f[1] for f in found] == list(range(len(variables))) else None

    def _stack(self, variables):
        stack = self._stack_of(variables)
        if isinstance(variables[0], Literal):
            return jnp.stack([jnp.asarray(v.val, v.aval.dtype) for v in variables])
        if stack is None:
            pieces = self._pieces(variables)
            self._remember(variables, jnp.concatenate(pieces) if pieces[1:] else pieces[0])
            stack = len(self.stacks) - 1
        return self.stacks[stack]

    def _is_reversed(self, variables) -> bool:
        """Return whether the iterations of a loop find a value from the end of a stack to its start."""
        found: list = [None if isinstance(v, Literal) else self.stacked.get(v) for v in variables[:2]]
        return None not in found and found[1] == (found[0][0], found[0][1] - 1)

    def _pieces(self, variables) -> list:
        """Return the pieces of a new stack: stretches of existing stacks, and single values."""
        found: list = [None if isinstance(v, Literal) else self.stacked.get(v) for v in variables]
        pieces, start = [], 0
        for stop in range(1, len(variables) + 1):
            if stop < len(variables) and found[stop] and found[start]:
                stack, index = found[start]
                if found[stop] == (stack, index + stop - start):
                    continue
            if stop - start == 1:
                pieces.append(jnp.expand_dims(self._value(variables[start]), 0))
            else:
                stack, index = found[start]
                pieces.append(jax.lax.slice_in_dim(self.stacks[stack], index, index + stop - start))
            start = stop
        return pieces

    def _remember(self, variables, stack) -> None:
        self.stacks.append(stack)
        self.stacked.update((v, (len(self.stacks) - 1, i)) for i, v in enumerate(variables))
