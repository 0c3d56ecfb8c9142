"""`UserPlan`: layouts from a file, pinned in a graph's program.

The file (`sbpjax.graph.auto.plan_file`) names parameters, state, arguments and boundary activations. What it names is
pinned: state goes into the layout, an activation gets a pin behind the equation that makes it. The rest is planned as
ever. An argument that comes as a global tensor lies as it comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sbpjax.graph.auto.subject import BATCH, BUFFER, NUMBER, PARAMETER, STATE, Input, Subject
from sbpjax.planner.pins import pinned
from sbpjax.programs.normalise import Program as Flat
from sbpjax.programs.plan import Codes
from sbpjax.tracing.capture import State
from sbpjax.tracing.signature import Call

from .value_names import names_of, pattern_of


@dataclass(frozen=True)
class UserPlan:
    """The layouts of a file for one program.

    Attributes:
        flat: the program with the pins of activations in it.
        codes: position of an input → its nd-sbp.
        marks: boundary activation → its nd-sbp.
    """

    flat: Flat
    codes: dict[int, Codes]
    marks: dict


def user_plan_of(sharding: Any, program: Any, state: State, call: Call, graph: Any) -> UserPlan:
    """Return the layouts of a file for a traced program.

    Args:
        sharding: a `sbpjax.graph.auto.plan_file.Sharding`.
        program: a traced `sbpjax.graph.program.Program`.
        state: the state that it was traced with.
        call: its arguments.
        graph: whose program it is.

    Raises:
        SbpError: the file is of another hierarchy, or does not fit the graph.
    """
    paths = call.paths(graph.build)
    named = named_inputs(state, program, [paths[i] for i in call.places])
    everywhere = (-1,) * len(program.placement.hierarchy)
    inputs = tuple(
        Input(name, kind, tuple(aval.shape), aval.dtype, everywhere, parent, True, members)
        for (name, kind, parent, members), aval in zip(named, program.jaxpr.in_avals, strict=True)
    )
    flat = program.flat
    pins, marks = sharding.pins(Subject(flat, program.placement, inputs, (), title=graph.name))
    return UserPlan(pinned(flat, marks, program.placement), pins, marks)


def named_inputs(state: State, program: Any, arguments: Sequence[str]) -> list[tuple]:
    """Return ``(name, kind, parent, members)`` of every input of a program: seed, slots, numbers, arguments.

    Args:
        state: the state that the program was traced with.
        program: a traced `sbpjax.graph.program.Program`.
        arguments: the names of its tensor arguments.
    """
    found: list[tuple] = [("seed", NUMBER, None, ())]
    names = names_of(state)
    kinds = state.kinds()
    place_of: dict[str, int] = {}
    for i, slot in enumerate(program.slots):
        members = [f"{n}:{kind}" if kind else n for kind, n in (names[p] for p in slot.places)]
        kind, name = pattern_of([names[p] for p in slot.places])
        what = STATE if kind else PARAMETER if kinds[slot.places[0]] == "parameters" else BUFFER
        if not program.jaxpr.in_avals[1 + i].shape:
            what = NUMBER
        if what == PARAMETER:
            place_of[name] = 1 + i
        found.append((f"{name}:{kind}" if kind else name, what, name, tuple(members) if len(members) > 1 else ()))
    found = [(n, k, place_of.get(owner) if k == STATE else None, m) for n, k, owner, m in found]
    found += [(f"number[{i}]", NUMBER, None, ()) for i in range(program._numbers)]
    rest = len(program.jaxpr.in_avals) - len(found) - len(arguments)
    outside = [f"outside[{i}]" for i in range(rest)]
    for name, aval in zip([*arguments, *outside], program.jaxpr.in_avals[len(found) :], strict=True):
        found.append((name, BATCH if aval.shape else NUMBER, None, ()))
    return found
