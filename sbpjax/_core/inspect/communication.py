"""`Graph.explain`: the traffic of a step, boxing by boxing, compared with the compiled program.

    module            boxing              collective           bytes   times  for          line
    model.3           f32[64,256] S0 → B  all_gather(a0)      49,152       1  dot_general  train.py:31
    model.0 backward  f32[256,64] P → B   all_reduce(a0)      98,304       1  mul          train.py:33
    Adam              f32[64] P → S0      reduce_scatter(a0)     224       1  square       gradient of model.1.bias

A boxing is a conversion in the plan, with the bytes that one device receives over the interconnect; in a loop it
happens once per iteration. Some equations move bytes inside themselves (a maximum over a split dim): they are listed
too, so that the sum of the table is the plan's. The last part is the same sum per kind, beside the compiled program's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from sbpjax._core.planner.exact import hidden_bytes
from sbpjax._core.programs.normalise import source_line
from sbpjax._core.programs.primitives import CONTROL
from sbpjax._core.programs.rules import moved_inside
from sbpjax._core.tracing.capture import State
from sbpjax.errors import MixedTensorError
from sbpjax.graph.fitting import owners_of
from sbpjax.graph.program.module_names import Names
from sbpjax.graph.program.value_names import value_names
from sbpjax.sbp import algebra

from .display import Table
from .equal_layers import fold_layers
from .plan_table import COLLECTIVES, Explanation, short_dtype
from .traffic import Traffic, planned_launches, traffic_of

_HEAD = ("module", "boxing", "collective", "bytes", "times", "for", "line")


@dataclass(frozen=True)
class Move:
    """One conversion of a step.

    Attributes:
        module: the module whose op reads the converted value; an optimizer's name, or ``""``.
        backward: whether that op is part of the backward.
        boxing: the tensor and its nd-sbps before and after.
        collective: the collectives.
        bytes: the bytes that one device receives in one step.
        times: how often it happens in one step.
        reader: the op that wants it.
        line: the user's ``file:line``; without such a line, the owner of the value.
    """

    module: str
    backward: bool
    boxing: str
    collective: str
    bytes: int
    times: int
    reader: str
    line: str

    def cells(self) -> tuple[str, ...]:
        """Return it as a row of text."""
        where = f"{self.module or '(none)'}{' backward' * self.backward}"
        return where, self.boxing, self.collective, f"{self.bytes:,}", str(self.times), self.reader, self.line


class Communication(Explanation):
    """The traffic of a step of a graph.

    Attributes:
        moves: every conversion, in program order; those without a byte on the interconnect too.
        traffic: the sums per kind, planned and compiled; None if the program was not compiled.
        platform: the kind of devices.
        launches: how many collectives a step launches by kind, those counted once that the compiler combines.
    """

    def __init__(self, graph: Any, program: Any, check: bool) -> None:
        if program.plan is None:
            raise MixedTensorError(
                f"{graph.name}.explain(...)",
                "no global tensor among the arguments and the state",
                "a program on one device moves nothing between devices",
                "x.to_global(placement, sbp)",
            )
        super().__init__(program.plan, graph.name)
        names = Names(graph)
        whose = value_names(program.plan, program, State(owners_of(graph)))
        self.moves = [*_boxings(program.plan, names, whose), *_inside(program.plan, names, 1, "")]
        self.traffic: Traffic | None = traffic_of(program) if check else None
        self.platform = program.placement.type
        self.launches = planned_launches(program.plan, program.placement)

    def by_module(self) -> dict[str, int]:
        """Return bytes per step by module, the largest first; ``""`` is for values of no module."""
        found: dict[str, int] = {}
        for move in self.moves:
            found[move.module] = found.get(move.module, 0) + move.bytes
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _blocks(self) -> Iterable[Any]:
        moving = [move for move in self.moves if move.bytes]
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.launches.items()))
        yield f"{self._summary()}; collectives: {kinds or 'none'}"
        yield from self.losses()
        yield from self.kernels(self.platform)
        if moving:
            yield Table([move.cells() for move in _of_layers(moving)], _HEAD, right=(3, 4))
        free = len(self.moves) - len(moving)
        if free:
            yield f"{free} more conversion{'s' * (free != 1)} without a byte on the interconnect"
        if self.traffic is not None:
            yield str(self.traffic)


def _of_layers(moves: Sequence[Move]) -> Iterable[Move]:
    """Yield one row for equal layers, by the module's name, or by that of the value in the column of lines."""
    rows = fold_layers([(move.module, replace(move, module="")) for move in moves])
    rows = fold_layers([(move.line, (module, replace(move, line=""), layers)) for module, move, layers in rows])
    for line, (module, move, layers), values in rows:
        count = layers * values
        yield replace(move, module=module, line=line, bytes=move.bytes * count, times=move.times * count)


def _boxings(plan: Any, names: Names, whose: Mapping[Any, str] = MappingProxyType({})):
    for b in plan.boxings:
        place = names.place(b.scope, with_op=False)
        text = f"{short_dtype(b.dtype)}{list(b.shape)} {algebra.nd_name(b.source)} → {algebra.nd_name(b.target)}"
        steps = " + ".join(f"{COLLECTIVES.get(s.kind, s.kind)}(a{s.axis})" for s in b.steps)
        yield Move(
            place.module, place.backward, text, steps, b.bytes, b.times, b.reader, b.line or whose.get(b.value, "")
        )


def _inside(plan: Any, names: Names, times: int, around: str):
    """Yield the traffic inside equations."""
    for i, eqn in enumerate(plan.program.eqns):
        scope = f"{around}/{eqn.source_info.name_stack}".strip("/")
        if i in plan.bodies:
            yield from _inside(plan.bodies[i], names, times * eqn.params["length"], scope)
            continue
        count = hidden_bytes(eqn, plan.strategies[i], plan.sizes)
        if count:
            place = names.place(scope, with_op=False)
            aval = eqn.outvars[0].aval
            text = f"{short_dtype(str(aval.dtype))}{list(aval.shape)} inside the op"
            name = eqn.primitive.name
            kinds = {COLLECTIVES.get(m.kind, m.kind) for m in moved_inside(eqn, plan.strategies[i], plan.sizes)}
            kind = "of its body" if name in CONTROL else " + ".join(sorted(kinds))
            yield Move(place.module, place.backward, text, kind, count * times, times, name, source_line(eqn))
