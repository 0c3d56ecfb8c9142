"""Auto parallelism of a graph, seen: its step as a `sbpjax.auto` subject, whose tensors have the names of the user's.

model.blocks.0.up.weight               a parameter
model.blocks.0.up.weight:exp_avg       a state of it
model.blocks.*.up.weight               a stack of equal layers' parameters, in a program that runs them as a loop
x                                      an argument of ``build``
"""

from __future__ import annotations

from typing import Any

from sbpjax.auto.report import Report, report
from sbpjax.auto.subject import BATCH, BUFFER, NUMBER, PARAMETER, STATE, Input, Subject
from sbpjax.auto.why import Why, why
from sbpjax.errors import MixedTensorError, message

from . import tree
from .capture import State
from .owners import _names, _pattern
from .signature import TensorSpec, argument_paths


def subject_of_program(graph: Any, state: State, program: Any) -> Subject:
    """Return the step of a planned program.

    Args:
        graph: the graph.
        state: the state that the program was traced with.
        program: a planned `sbpjax.graph.program.Program`.

    Raises:
        MixedTensorError: it runs on one device, or on several placements.
    """
    if program.plan is None or program.placement is None or program.asked_codes is None:
        raise MixedTensorError(
            message(
                f"{graph.name}.auto_parallel_report(...)",
                "a program on one device" if program.pipeline is None else "a pipeline over several placements",
                "layouts are chosen on the devices of one placement",
                "config.enable_auto_parallel(True, placement=sbpjax.placement.all(...))",
            )
        )
    free = {*(1 + number for number in program.released), *program._arguments}
    facts = zip(_inputs(graph, state, program), program.jaxpr.in_avals, program.asked_codes, strict=True)
    inputs = tuple(
        Input(name, kind, tuple(aval.shape), aval.dtype, codes, parent, i in free, members)
        for i, ((name, kind, parent, members), aval, codes) in enumerate(facts)
    )
    rest = len(program.jaxpr.out_avals) - len(program.written)
    back = (*(1 + i for i in program.written), *(None,) * rest)
    options = program.options
    flat = program.plan.program
    return Subject(flat, program.placement, inputs, back, options.cost, options.memory_bytes, graph.name)


def _inputs(graph: Any, state: State, program: Any) -> list[tuple]:
    """Return ``(name, kind, parent, members)`` of every input of a program: seed, slots, numbers, arguments."""
    found: list[tuple] = [("seed", NUMBER, None, ())]
    names = _names(state)
    trained = {id(p) for o in state.optimizers for g in o.param_groups for p in g["params"]}
    trained |= {id(p) for m in state.modules for p in m._parameters.values() if p is not None}
    place_of: dict[str, int] = {}
    for i, slot in enumerate(program.slots):
        members = [f"{n}:{kind}" if kind else n for kind, n in (names[p] for p in slot.places)]
        kind, name = _pattern([names[p] for p in slot.places])
        what = STATE if kind else PARAMETER if id(state.tensors[slot.places[0]]) in trained else BUFFER
        if not program.jaxpr.in_avals[1 + i].shape:
            what = NUMBER
        if what == PARAMETER:
            place_of[name] = 1 + i
        found.append((f"{name}:{kind}" if kind else name, what, name, tuple(members) if len(members) > 1 else ()))
    found = [(n, k, place_of.get(owner) if k == STATE else None, m) for n, k, owner, m in found]
    found += [(f"number[{i}]", NUMBER, None, ()) for i in range(program._numbers)]
    leaves, structure = tree.flatten(program.arguments)
    paths = argument_paths(structure, graph.build)
    given = [path for path, leaf in zip(paths, leaves, strict=True) if isinstance(leaf, TensorSpec)]
    rest = len(program.jaxpr.in_avals) - len(found) - len(given)
    given += [f"outside[{i}]" for i in range(rest)]
    for name, aval in zip(given, program.jaxpr.in_avals[len(found) :], strict=True):
        found.append((name, BATCH if aval.shape else NUMBER, None, ()))
    return found


def report_of(graph: Any, state: State, program: Any, against: Any) -> Report:
    """Return the report of a graph's program; see `Views.auto_parallel_report`."""
    return report(subject_of_program(graph, state, program), program.plan, against=against)


def why_of(graph: Any, state: State, program: Any, name: str, sbp: Any) -> Why:
    """Return the price of a layout in a graph's program; see `Views.why`."""
    return why(subject_of_program(graph, state, program), program.plan, name, sbp)
