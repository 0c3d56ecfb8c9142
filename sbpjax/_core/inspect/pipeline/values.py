"""Names for the values of a pipeline's tasks: the weights, gradients and updates that they convert.

The names of `sbpjax.graph.program.value_names`, task by task. A weight keeps its name in the loop over micro-batches
and on the stages to which it is sent; a sum of gradients has the name of the parameter whose new value it reaches.
"""

from __future__ import annotations

from typing import Any

from sbpjax._core.jax_private import Var
from sbpjax._core.programs.normalise import Program
from sbpjax._core.programs.plan import Plan
from sbpjax._core.tracing.capture import State
from sbpjax.graph.pipeline.plan import Run
from sbpjax.graph.program.value_names import name_values, names_of, pattern_of, reached_parameters


class PipelineValues:
    """The names of a pipelined step's values.

    Args:
        program: the graph's program.
        state: the tensors of its slots.

    Attributes:
        inputs: input, or copy of one → its kind (``""``: the tensor itself) and its name; arguments are
            ``"an argument"``.
        names: value → its name, such as ``gradient of layers.0.weight``.
    """

    def __init__(self, program: Any, state: State) -> None:
        pipeline, flat = program.pipeline, program.pipeline.program
        names = names_of(state)
        called = [pattern_of([names[p] for p in slot.places]) for slot in program.slots]
        self.inputs: dict[Var, tuple[str, str]] = dict(zip(flat.invars[1:], called))
        first = 1 + len(program.slots) + len(program.number_names)
        self.inputs.update((v, ("", "an argument")) for v in flat.invars[first:])
        self.names: dict[Var, str] = {}
        self._made: set[Var] = set()
        parameters = {v: {called[k][1]} for v, k in zip(flat.outvars, program.written) if not called[k][0]}
        reached = _reached(flat, parameters)
        self._name_run(pipeline.pre, reached)
        if (body := pipeline.body) is not None:
            self.inputs.update((own, self.inputs[v]) for own, v in body.outer.items() if v in self.inputs)
            ends = {c.after: reached[c.last] for c in body.carries if isinstance(c.after, Var) and c.last in reached}
            equations = [eqn for task in body.tasks for eqn in task.task.eqns]
            self._name_run(body, _reached(Program([], {}, equations, list(ends)), ends))
        self._name_run(pipeline.post, reached)

    def _name_run(self, run: Run, reached: dict[Var, set[str]]) -> None:
        sends = [*run.first, *(send for sends in run.sends for send in sends)]
        for task in run.tasks:
            arrived = {s.arrived: self.inputs[s.value] for s in sends if s.value in self.inputs}
            self.inputs.update(arrived)
            outs = [v for v in task.task.outs if len(reached.get(v, ())) == 1]
            results = {v: next(iter(reached[v])) for v in outs}
            found: dict[Var, str] = {}
            read = {v: self.inputs[v] for v in task.task.ins if v in self.inputs}
            self._made |= name_values(task.program.plan, read, results, self._made & {*task.task.ins}, found)
            known = {(f"{kind} of {name}" if kind else name): (kind, name) for kind, name in read.values()}
            self.inputs.update((v, known[found[v]]) for v in task.task.outs if found.get(v) in known)
            self.names.update(found)


def _reached(program: Program, results: dict[Var, set[str]]) -> dict[Var, set[str]]:
    variables = {v: names for v, names in results.items() if isinstance(v, Var)}
    return reached_parameters(Plan(program, (), (), [], ()), variables)
