"""Partition of a flat program over several placements into tasks of one placement each.

Worked case: two stages, forward and backward of one micro-batch

    placement 0:  x ─ F0 ─┐send            ┌─ B0 ─ gradients of stage 0
    placement 1:          └─ F1 loss B1 ─send ─ gradients of stage 1

An equation is placed with its operands, and its *depth* is the greatest number of sends before it. All equations of one
placement and depth are a task: here (0, depth 0), (1, depth 1), (0, depth 2). Three things need care:

* equations that depend on no placed value (iota, dropout masks) are copied into every task that reads them;
* backward equations go to the depth where they are read, else a recomputation of the forward (a checkpoint) would be
  made in the forward and kept; so do equations on labels, which enter at the last stage but depend on no send;
* scalars (the norm of all gradients, a flag of overflow) are sent to their readers; for anything larger a program that
  computes on two placements is an error that names the line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sbpjax._core.jax_private import Literal, Var
from sbpjax._core.programs.normalise import Program, source_line
from sbpjax.errors import MixedTensorError
from sbpjax.sbp.placement import placement as Placement
from sbpjax.sbp.stage import stage_transfer_p


class Send(NamedTuple):
    """A value that goes to another placement.

    Attributes:
        value: the variable to send.
        arrived: the variable of the arrived value.
        target: its placement.
        line: the user's source line.
    """

    value: Var
    arrived: Var
    target: Placement
    line: str


@dataclass
class Task:
    """A part of a program on one placement.

    Attributes:
        placement: where it runs.
        depth: how many sends come before it.
        eqns: its equations, in order; those without placement are copies.
        ins: the values that it reads: inputs of the program, values of earlier tasks, values that arrived.
        outs: its values that others read: later tasks, sends, and the program's outputs.
        backward: whether it holds equations of a backward.
        forward: whether it holds equations of a forward.
        weights: whether it is the part of a backward that no other stage waits for.
    """

    placement: Placement
    depth: int
    eqns: list
    ins: list[Var] = field(default_factory=list)
    outs: list[Var] = field(default_factory=list)
    backward: bool = False
    forward: bool = False
    weights: bool = False


@dataclass
class Partition:
    """A program in tasks.

    Attributes:
        tasks: in an order in which they can run.
        sends: the values that go between placements.
        where: variable → placement; None for values that depend on no placed value.
        outvars: the program's outputs, transfers looked through.
    """

    tasks: list[Task]
    sends: list[Send]
    where: dict[Var, Placement | None]
    outvars: list


def partition(
    program: Program,
    places: Mapping[Var, Placement | None],
    *,
    home: Placement | None = None,
    operation: str = "a pipelined program",
    is_backward=lambda eqn: False,
) -> Partition:
    """Return a program in tasks.

    Args:
        program: a flat program.
        places: the placements of its inputs, None for numbers and seeds.
        home: the placement of outputs that depend on no placed value.
        operation: the user's request, for messages.
        is_backward: whether an equation belongs to a backward.

    Raises:
        MixedTensorError: an equation reads values of more than one element on two placements.
    """
    colours = _Colours(program, places, operation, is_backward)
    deepest = colours.deepest_forward()
    # A gradient that depends on no forward, such as that of a sum, starts after the forward too.
    if deepest:
        colours = _Colours(program, places, operation, is_backward, deepest)
    colours.sink()
    return _tasks(colours, program, home)


def places_of(program: Program, places: Mapping[Var, Placement | None], operation: str) -> list[Placement | None]:
    """Return the placements of the outputs of a flat program, None for those that depend on no placed value."""
    colours = _Colours(program, places, operation, lambda eqn: False)
    outs = [colours.read(v) for v in program.outvars]
    return [colours.where.get(v) if isinstance(v, Var) else None for v in outs]


class _Colours:
    """Placement and depth of every equation and variable."""

    def __init__(self, program: Program, places: Mapping, operation: str, is_backward, floor: int = 0) -> None:
        self.program = program
        self.operation = operation
        self._is_backward = is_backward
        self._floor = floor  # the least depth of a backward
        self.where: dict[Var, Placement | None] = {v: places.get(v) for v in program.invars}
        self.where.update(dict.fromkeys(program.consts))
        self.depth: dict[Var, int] = dict.fromkeys(self.where, 0)
        self.behind_send: set[Var] = set()  # values that depend on a send
        self.alias: dict[Var, Var] = {}
        # Without transfers, and with operands renamed.
        self.eqns: list = []
        self.place: list[Placement | None] = []
        self.level: list[int] = []
        self.forward: list[
            bool | None
        ] = []  # whether an equation is of a forward; None if it only went where it is read
        self.sends: list[Send] = []
        self._sent: dict[tuple[Var, Placement], Var] = {}
        self._walk()
        self._mark_backward()

    def deepest_forward(self) -> int:
        """Return the greatest depth of an equation of the forward; 0 if there is no backward."""
        if all(self.forward):
            return 0
        return max((level for level, forward in zip(self.level, self.forward, strict=True) if forward), default=0)

    def read(self, atom):
        """Return an operand with transfers looked through."""
        while not isinstance(atom, Literal) and atom in self.alias:
            atom = self.alias[atom]
        return atom

    def _walk(self) -> None:
        """Give every equation its placement and depth, from the inputs on."""
        for eqn in self.program.eqns:
            operands = [self.read(v) for v in eqn.invars]
            if eqn.primitive is stage_transfer_p:
                self.alias[eqn.outvars[0]] = self._send_value(operands[0], eqn.params["target"], eqn)
                continue
            placed = [v for v in operands if isinstance(v, Var) and self.where[v] is not None]
            home = self._choose_placement(eqn, placed)
            if home is not None:
                operands = [self._ensure_on_placement(v, home, eqn) for v in operands]
            level = max([self.depth[v] for v in operands if isinstance(v, Var)], default=0)
            if level < self._floor and self._is_backward(eqn):
                level = self._floor
            behind = any(isinstance(v, Var) and v in self.behind_send for v in operands)
            for v in eqn.outvars:
                self.where[v], self.depth[v] = home, level
                if behind:
                    self.behind_send.add(v)
            self.eqns.append(eqn.replace(invars=operands))
            self.place.append(home)
            self.level.append(level)

    def _choose_placement(self, eqn, placed: list[Var]) -> Placement | None:
        places = list(dict.fromkeys(self.where[v] for v in placed))
        if len(places) < 2:
            return places[0] if places else None
        # Scalars cross by themselves: one norm for all stages, one flag of overflow. A tensor crosses only by the
        # user's own ``to_global``.
        large = list(dict.fromkeys(self.where[v] for v in placed if v.aval.shape))
        if len(large) > 1:
            line = source_line(eqn)
            raise MixedTensorError(
                self.operation,
                f"{eqn.primitive.name} of values on {large[0]!r} and on {large[1]!r}" + f" at {line}" * bool(line),
                "an op runs on one placement; only values without dims go to the others by themselves",
                f"move one of them: x.to_global(placement={large[0]!r}, sbp=...)",
            )
        # Among scalars the deepest: the others are there by then, and nothing waits for a send in the other direction.
        return large[0] if large else self.where[max(placed, key=self.depth.__getitem__)]

    def _ensure_on_placement(self, v, home: Placement, eqn):
        if not isinstance(v, Var) or self.where[v] is None or self.where[v] == home:
            return v
        return self._send_value(v, home, eqn)

    def _send_value(self, v, target: Placement, eqn):
        if isinstance(v, Literal) or self.where[v] is None or self.where[v] == target:
            return v
        # Sent once per target, however many read it there: tied weights go to the head's stage once per step.
        found = self._sent.get((v, target))
        if found is None:
            found = self._sent[v, target] = Var(v.aval)
            self.where[found], self.depth[found] = target, self.depth[v] + 1
            self.behind_send.add(found)
            self.sends.append(Send(v, found, target, source_line(eqn)))
        return found

    def _mark_backward(self) -> None:
        """Mark the equations of the forward and of the backward, and the variables made of gradients."""
        behind: set[Var] = set()
        arrived = {s.value: s.arrived for s in self.sends}
        for eqn in self.eqns:
            backward = self._is_backward(eqn) or any(isinstance(v, Var) and v in behind for v in eqn.invars)
            self.forward.append(not backward)
            if backward:
                behind.update(eqn.outvars)
                behind.update(arrived[v] for v in eqn.outvars if v in arrived)

    def sink(self) -> None:
        """Move equations to where they are read: those of a backward, and those that depend on no send."""
        starts = self._starting_placements()
        wanted: dict[Var, int] = {}

        def require(v, level: int) -> None:
            if isinstance(v, Var):
                wanted[v] = min(wanted.get(v, level), level)

        for send in self.sends:
            require(send.value, self.depth[send.arrived] - 1)
        for i in reversed(range(len(self.eqns))):
            eqn, home = self.eqns[i], self.place[i]
            if home is None:
                continue
            levels = [wanted[v] for v in eqn.outvars if v in wanted]
            late = self._is_backward(eqn) or (not (self.behind_send & set(eqn.outvars)) and home not in starts)
            if levels and late and min(levels) > self.level[i]:
                self.level[i], self.forward[i] = min(levels), None
            for v in eqn.invars:
                require(v, self.level[i])

    def _starting_placements(self) -> set:
        """Return the placements on which a forward makes something that is sent from inputs alone."""
        made = {v for eqn, forward in zip(self.eqns, self.forward, strict=True) if forward for v in eqn.outvars}
        return {self.where[s.value] for s in self.sends if s.value in made and s.value not in self.behind_send}


def _tasks(colours: _Colours, program: Program, home: Placement | None) -> Partition:
    maker = {
        v: eqn for eqn, place in zip(colours.eqns, colours.place, strict=True) if place is None for v in eqn.outvars
    }
    order = list(dict.fromkeys([p for p in colours.where.values() if p is not None]))
    found: dict[tuple, Task] = {}
    for eqn, place, level, forward in zip(colours.eqns, colours.place, colours.level, colours.forward, strict=True):
        if place is not None:
            task = found.setdefault((level, order.index(place)), Task(place, level, []))
            task.eqns.append(eqn)
            task.forward |= forward is True
            task.backward |= forward is False
    tasks = [found[key] for key in sorted(found)]
    outvars = [colours.read(v) for v in program.outvars]
    # An output that depends on no placed value has to be made somewhere, too.
    loose = [v for v in outvars if isinstance(v, Var) and colours.where[v] is None and v in maker]
    if loose:
        place = home if home is not None else order[-1]
        last = next((t for t in reversed(tasks) if t.placement == place), None)
        if last is None:
            tasks.append(last := Task(place, tasks[-1].depth if tasks else 0, []))
        last.eqns += [eqn for eqn in colours.eqns if any(v in loose for v in eqn.outvars)]
    read_outside = {v for v in outvars if isinstance(v, Var)} | {s.value for s in colours.sends}
    made_by: dict[Var, int] = {}
    for number, task in enumerate(tasks):
        _complete_task(task, maker, colours)
        made_by.update(
            {v: number for eqn in task.eqns for v in eqn.outvars if colours.where[v] is not None or v in loose}
        )
    readers: dict[Var, set[int]] = {}
    for number, task in enumerate(tasks):
        for v in task.ins:
            readers.setdefault(v, set()).add(number)
    for number, task in enumerate(tasks):
        for eqn in task.eqns:
            for v in eqn.outvars:
                if made_by.get(v) == number and v not in task.outs and (v in read_outside or readers.get(v)):
                    task.outs.append(v)
    return Partition(tasks, colours.sends, colours.where, outvars)


def _complete_task(task: Task, maker: dict, colours: _Colours) -> None:
    """Put the equations without placement that a task reads before their readers, and list its inputs."""
    task.eqns = with_sources(task.eqns, maker)
    made = {v for eqn in task.eqns for v in eqn.outvars} | set(colours.program.consts)
    reads = dict.fromkeys(v for eqn in task.eqns for v in eqn.invars if isinstance(v, Var))
    task.ins = [v for v in reads if v not in made]


def with_sources(eqns: list, maker: Mapping) -> list:
    """Return equations in an order in which each follows those it reads.

    Args:
        eqns: the equations.
        maker: variable → the equation that makes it, for equations that may be copied.
    """
    have: set[Var] = set()
    found: list = []

    def add(eqn) -> None:
        if eqn.outvars and have.issuperset(eqn.outvars):
            return
        for v in eqn.invars:
            if isinstance(v, Var) and v in maker and v not in have:
                add(maker[v])
        have.update(eqn.outvars)
        found.append(eqn)

    for eqn in eqns:
        add(eqn)
    return found
