"""`UserPlan`: layouts from a file, pinned in a graph's program.

The file (`sbpjax.graph.auto.plan_file`) names parameters, state, arguments and boundary activations. These are pinned:
state goes into the layout, an activation gets a pin after the equation that makes it. The rest is planned as ever. An
argument that comes as a global tensor keeps its layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sbpjax._core.jax_private import ClosedJaxpr
from sbpjax._core.planner.pins import pin_values
from sbpjax._core.programs.normalise import Program as Flat
from sbpjax._core.programs.plan import Codes
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import Call
from sbpjax.graph.auto.planning_problem import BATCH, BUFFER, NUMBER, PARAMETER, STATE, Input, PlanningProblem
from sbpjax.sbp.placement import placement as Placement

from .slots import StateSlot
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


def user_plan_of(
    sharding: Any,
    jaxpr: ClosedJaxpr,
    flat: Flat,
    slots: Sequence[StateSlot],
    placement: Placement,
    state: State,
    call: Call,
    graph: Any,
) -> UserPlan:
    """Return the layouts of a file for a traced program.

    Args:
        sharding: a `sbpjax.graph.auto.plan_file.Sharding`.
        jaxpr: the program.
        flat: the same, flat.
        slots: how it takes its state.
        placement: where it runs.
        state: the state that it was traced with.
        call: its arguments.
        graph: whose program it is.

    Raises:
        SbpError: the file is of another hierarchy, or does not fit the graph.
    """
    paths = call.paths(graph.build)
    named = named_inputs(state, slots, jaxpr.in_avals, len(state.options), [paths[i] for i in call.places])
    everywhere = (-1,) * len(placement.hierarchy)
    inputs = tuple(
        Input(name, kind, tuple(aval.shape), aval.dtype, everywhere, parent, True, members)
        for (name, kind, parent, members), aval in zip(named, jaxpr.in_avals, strict=True)
    )
    pins, marks = sharding.pins(PlanningProblem(flat, placement, inputs, (), title=graph.name))
    return UserPlan(pin_values(flat, marks, placement), pins, marks)


def named_inputs(
    state: State, slots: Sequence[StateSlot], avals: Sequence, numbers: int, arguments: Sequence[str]
) -> list[tuple]:
    """Return ``(name, kind, parent, members)`` of every input of a program: seed, slots, numbers, arguments.

    Args:
        state: the state that the program was traced with.
        slots: how the program takes it.
        avals: shapes and dtypes of all inputs.
        numbers: how many of them are numbers, such as learning rates.
        arguments: the names of its tensor arguments.
    """
    found: list[tuple] = [("seed", NUMBER, None, ())]
    names = names_of(state)
    kinds = state.kinds()
    place_of: dict[str, int] = {}
    for i, slot in enumerate(slots):
        members = [f"{n}:{kind}" if kind else n for kind, n in (names[p] for p in slot.places)]
        kind, name = pattern_of([names[p] for p in slot.places])
        role = STATE if kind else PARAMETER if kinds[slot.places[0]] == "parameters" else BUFFER
        if not avals[1 + i].shape:
            role = NUMBER
        if role == PARAMETER:
            place_of[name] = 1 + i
        found.append((f"{name}:{kind}" if kind else name, role, name, tuple(members) if len(members) > 1 else ()))
    found = [(n, k, place_of.get(owner) if k == STATE else None, m) for n, k, owner, m in found]
    found += [(f"number[{i}]", NUMBER, None, ()) for i in range(numbers)]
    rest = len(avals) - len(found) - len(arguments)
    outside = [f"outside[{i}]" for i in range(rest)]
    for name, aval in zip([*arguments, *outside], avals[len(found) :], strict=True):
        found.append((name, BATCH if aval.shape else NUMBER, None, ()))
    return found
