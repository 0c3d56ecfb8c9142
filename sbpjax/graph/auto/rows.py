"""The rows of a report on auto parallelism: one per parameter, state, argument or boundary activation."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sbpjax._core.jax_private import Var
from sbpjax._core.planner.boundaries import Activation, activations, codes_of
from sbpjax._core.programs.plan import Codes, Plan
from sbpjax.errors import SbpError, nearest
from sbpjax.sbp.layout import local_shape

from .planning_problem import BATCH, BUFFER, PARAMETER, STATE, PlanningProblem


@dataclass(frozen=True)
class TensorRow:
    """One line of the tables: an input or an activation, or several of equal layers.

    Attributes:
        kind: ``activation``, or a kind of `sbpjax.graph.auto.planning_problem.Input`.
        name: its name, with ``*`` where equal layers differ.
        names: the names of all of them.
        shape: the logical shape.
        dtype: the dtype.
        codes: the nd-sbp in the plan.
        others: of a parameter, the nd-sbps of its states that differ from its own; of an activation, those in which it
            is read that differ.
        own: of an input, the user's layout.
        per_device: bytes on one device, of one of them.
        line: of an activation, the user's ``file:line``.
    """

    kind: str
    name: str
    names: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: Any
    codes: Codes
    others: tuple[Codes, ...] = ()
    own: Codes | None = None
    per_device: int = 0
    line: str = ""


def unknown_name_error(name: str, known: Sequence[str], operation: str) -> SbpError:
    """Return the error for a name that no input and no activation has."""
    patterns = [re.sub(r"\.\d+(?=\.|$)", ".*", k) for k in known]
    near = next((k for k in known if name.lower() in k.lower()), None) or nearest(name, [*known, *patterns])
    return SbpError(
        f"{operation}({name!r})",
        f"no tensor of the step is called {name!r}",
        "a name is that of an input or of a boundary activation, as the report lists them",
        f"{near!r}" if near else "print(report) lists the names",
    )


def input_rows(problem: PlanningProblem, plan: Plan) -> list[TensorRow]:
    """Return a row for every parameter, buffer and batch of a step, with the layouts of its state."""
    states: dict[int, set[Codes]] = {}
    for i, x in enumerate(problem.inputs):
        if x.kind == STATE and x.parent is not None and x.shape == problem.inputs[x.parent].shape:
            states.setdefault(x.parent, set()).add(plan.in_codes[i])
    rows = []
    for i, x in enumerate(problem.inputs):
        codes = plan.in_codes[i]
        if not x.shape or x.kind not in (PARAMETER, BUFFER, BATCH):
            continue
        others = tuple(sorted(x.user_codes(c) for c in states.get(i, set()) - {codes}))
        held = math.prod(local_shape(x.tensor_shape, x.user_codes(codes), problem.sizes)) * x.dtype.itemsize
        rows.append(
            TensorRow(
                x.kind, x.name, x.names, x.tensor_shape, x.dtype, x.user_codes(codes), others, x.user_codes(x.own), held
            )
        )
    return group_rows(rows)


def activation_rows(problem: PlanningProblem, plan: Plan) -> list[TensorRow]:
    """Return a row for every boundary activation of a step, with the layouts that it is read in besides its own."""
    rows = []
    for a in activations(plan.program):
        codes = codes_of(plan, a)
        if codes is not None:
            others = tuple(sorted(_consumer_layouts(plan, a) - {codes}))
            held = math.prod(local_shape(a.shape, codes, problem.sizes)) * a.dtype.itemsize
            rows.append(
                TensorRow(
                    "activation", a.name, (a.name,), a.shape, a.dtype, codes, others, None, held, a.line.split("/")[-1]
                )
            )
    return group_rows(rows)


def _consumer_layouts(plan: Plan, a: Activation) -> set[Codes]:
    for i in a.loops:
        plan = plan.bodies[i]
    made = plan.program.eqns[a.eqn].outvars[a.position]
    variables = {
        made,
        *(e.outvars[0] for e in plan.program.eqns if e.primitive.name == "to_sbp" and e.invars[0] is made),
    }
    return {
        codes
        for i, eqn in enumerate(plan.program.eqns)
        if eqn.invars and eqn.primitive.name != "to_sbp"
        for v, codes in zip(eqn.invars, plan.ins(i), strict=True)
        if isinstance(v, Var) and v in variables
    }


# A part of a name that is a number: that of a layer.
NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


def group_rows(rows: list[TensorRow]) -> list[TensorRow]:
    """Return the rows with those of equal layers as one, where all of a pattern have equal layouts."""
    patterns: dict[str, list[TensorRow]] = {}
    for row in rows:
        patterns.setdefault(NUMBER.sub("*", row.name), []).append(row)
    found = []
    for pattern, members in patterns.items():
        first = members[0]
        alike = {(r.kind, r.shape, str(r.dtype), r.codes, r.others, r.own, r.per_device) for r in members}
        if len(members) == 1 or len(alike) > 1:
            found += members
        else:
            names = tuple(n for r in members for n in r.names)
            found.append(
                TensorRow(first.kind, pattern, names, first.shape, first.dtype, first.codes, first.others, first.own,
                    first.per_device, first.line)
            )  # fmt: skip
    return found
