"""Planning problem of a graph's step: its inputs named after the user's tensors, for reports.

model.blocks.0.up.weight               a parameter
model.blocks.0.up.weight:exp_avg       a state of it
model.blocks.*.up.weight               a stack of equal layers' parameters, in a program that runs them as a loop
x                                      an argument of ``build``
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.runtime.progress import show_phase
from sbpjax._core.tracing import tree
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import TensorSpec, argument_paths
from sbpjax.errors import MixedTensorError
from sbpjax.graph.auto.planning_problem import Input, PlanningProblem
from sbpjax.graph.program.user_plan import named_inputs

from .report import Report, report
from .sensitivity import LayoutSensitivity, sensitivity


def problem_of_program(graph: Any, state: State, program: Any) -> PlanningProblem:
    """Return the step of a planned program."""
    if program.plan is None or program.placement is None or program.requested_codes is None:
        raise MixedTensorError(
            f"{graph.name}.auto_parallel_report(...)",
            "a program on one device" if program.pipeline is None else "a pipeline over several placements",
            "layouts are chosen on the devices of one placement",
            "config.enable_auto_parallel(True, placement=sbpjax.placement.all(...))",
        )
    leaves, structure = tree.flatten(program.arguments)
    paths = argument_paths(structure, graph.build)
    named = [path for path, leaf in zip(paths, leaves, strict=True) if isinstance(leaf, TensorSpec)]
    user_plan = program.user_plan
    laid = user_plan.codes if user_plan else {}
    free = {*(1 + number for number in program.free_slots), *program.local_arguments} - set(laid)
    avals = program.jaxpr.in_avals
    found = named_inputs(state, program.slots, avals, len(program.number_names), named)
    facts = zip(found, avals, program.requested_codes, strict=True)
    inputs = tuple(
        Input(name, kind, tuple(aval.shape), aval.dtype, laid.get(i, codes), parent, i in free, members)
        for i, ((name, kind, parent, members), aval, codes) in enumerate(facts)
    )
    rest = len(program.jaxpr.out_avals) - len(program.written)
    back = (*(1 + i for i in program.written), *(None,) * rest)
    options = program.options
    flat = program.flat if user_plan else program.plan.program
    limit, marks = options.memory_bytes, user_plan.marks if user_plan else {}
    updates = frozenset({type(entry.optimizer).__name__ for entry in graph._g.optimizers} | {"clip_grad_norm"})
    return PlanningProblem(
        flat, program.placement, inputs, back, options.cost, limit, graph.name, marks, updates=updates
    )


def report_of(graph: Any, state: State, program: Any, against: Any) -> Report:
    """Return the report of a graph's program; see `Graph.auto_parallel_report`."""
    with show_phase(f"{graph.name}.auto_parallel_report", "planning every strategy"):
        return report(problem_of_program(graph, state, program), program.plan, against=against)


def sensitivity_of(graph: Any, state: State, program: Any, name: str, sbp: Any) -> LayoutSensitivity:
    """Return the price of a layout in a graph's program; see `Graph.sensitivity`."""
    with show_phase(f"{graph.name}.sensitivity", "planning"):
        return sensitivity(problem_of_program(graph, state, program), program.plan, name, sbp)
