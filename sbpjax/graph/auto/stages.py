"""Planned cost of each module in a row, for cutting the row into pipeline stages.

    embedding 32768 × 1024 · 12 equal blocks · head 1024 × 32768, cut for two placements of four devices

Numbers of parameters would put the embedding on a par with three blocks, though its rows are only looked up; measuring
takes the machine. Here every module is a program of its own, forward, backward and the update of its parameters, and is
planned on a stage's placement with all layouts free, as auto parallelism plans a whole model. Equal modules, which the
twelve blocks are, are planned once for equal placements. `sbpjax.pipeline.auto_stages` cuts by these times and by the
traffic across each cut; then `lay_out` plans the modules of a stage together and converts their parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sbpjax import optim
from sbpjax._core.planner.prices.cost import CostModel
from sbpjax._core.planner.prices.links import link_between
from sbpjax._core.tracing.capture import State
from sbpjax._core.tracing.signature import Call, TensorSpec, as_tensor
from sbpjax.errors import GraphConfigError
from sbpjax.graph.fitting import options_of, owners_of, plan_with_layouts
from sbpjax.graph.graph import Graph
from sbpjax.graph.repeated_layers import form_of
from sbpjax.graph.step import GraphStep
from sbpjax.nn.containers import Sequential
from sbpjax.sbp.placement import placement as Placement


class _Row(Graph):
    """Forward, backward and update of modules that are called one after the other."""

    def __init__(self, modules: Sequence, place: Placement, cost: str | CostModel | None) -> None:
        super().__init__()
        self.row = Sequential(*modules)
        parameters = [p for p in self.row.parameters() if p.requires_grad]
        if parameters:
            # SGD: the update shows the planner how parameters are used, and its own cost is the same wherever the cut
            # is.
            self.add_optimizer(optim.SGD(parameters, lr=0.1))
        self.config.enable_auto_parallel(True, placement=place)
        self.config.set_auto_parallel_cost_model(cost)

    def build(self, x: Any) -> Any:
        """Return the result and the gradient of the input, the result standing in for its own gradient."""
        start = x.detach().requires_grad_() if x.is_floating_point() else x
        out = self.row(start)
        if out.requires_grad:
            out.backward(out.detach())
        return out if start.grad is None else (out, start.grad)

    def plan_program(self, x: Any) -> tuple[Any, Any, State]:
        """Return the planned program for an argument, a function that applies its layouts, and the state."""
        state, call = State(owners_of(self)), Call((as_tensor(x),), {})
        options = options_of(self, state)
        return *plan_with_layouts(f"{self.name}.build", GraphStep(self, state, {}), state, call, options, None), state


def row_costs(
    modules: Sequence, places: Sequence[Placement], example: Any, cost: str | CostModel | None = None
) -> tuple[list[list[float]], list[list[float]]]:
    """Return the modelled times of a row of modules on every stage's placement, and of the transfers between them.

    Args:
        modules: the modules, in order; their tensors are local.
        places: the placements of the stages.
        example: an input of the first module, with or without data: a micro-batch.
        cost: the prices, see `GraphConfig.set_auto_parallel_cost_model`.

    Returns:
        For every stage the time of each module in µs; and for every stage and module how long it takes to get the
        module's input from the stage before and to send its gradient back, if the stage begins with that module.

    Raises:
        GraphConfigError: a tensor of the modules is on a placement.
    """
    check_local(modules)
    known: dict = {}
    times: list[list[float]] = [[] for _ in places]
    links: list[list[float]] = [[] for _ in places]
    for s, place in enumerate(places):
        spec = TensorSpec(tuple(example.shape), np.dtype(getattr(example.dtype, "np", example.dtype)))
        for module in modules:
            # Equal layers on equal devices cost the same, and planning takes seconds.
            key = form_of(module) or id(module), spec.shape, str(spec.dtype), place.hierarchy, _kind(place)
            if key not in known:
                known[key] = _planned_us(_Row([module], place, cost), spec)
            us, after, prices = known[key]
            crossing = math.prod(spec.shape) * spec.dtype.itemsize / math.prod(place.hierarchy)
            way = link_between(prices, places[max(s - 1, 0)], place)
            # Twice: the activation forth, its gradient back.
            links[s].append(2 * (way.alpha_us + crossing / way.bytes_per_s * 1e6) if s else 0.0)
            times[s].append(us)
            spec = after
    return times, links


def lay_out(modules: Sequence, place: Placement, example: Any, cost: str | CostModel | None = None) -> Any:
    """Convert the tensors of a stage's modules to the layouts of a plan of them together, and mark them so.

    Args:
        modules: the modules of the stage.
        place: its placement.
        example: an input of the first of them, with or without data.
        cost: the prices.

    Returns:
        A tensor without data like the result of the last module: the next stage's example.
    """
    row = _Row(modules, place, cost)
    program, stand_ins, state = row.plan_program(example)
    if program.plan is not None:
        program.lay_out(stand_ins, state)
    return _result(program)


def check_local(modules: Sequence) -> None:
    """Refuse modules whose tensors are on a placement already.

    Raises:
        GraphConfigError: one does.
    """
    for module in modules:
        for name, t in (*module.named_parameters(), *module.named_buffers()):
            if t.layout is not None:
                raise GraphConfigError(
                    'auto_stages(model, placements, costs="planned")',
                    f"{name} of {type(module).__name__} on {t.layout.placement!r}",
                    "the planner chooses the layouts of a local model",
                    "give the model before any to_global, or costs=[...]",
                )


def check_apart(rows: Sequence[Sequence]) -> None:
    """Refuse a tensor that modules of several stages own: it can be on one placement only.

    Raises:
        GraphConfigError: there is one.
    """
    stage_of: dict[int, int] = {}
    for stage, modules in enumerate(rows):
        for module in modules:
            for name, t in (*module.named_parameters(), *module.named_buffers()):
                first = stage_of.setdefault(id(t), stage)
                if first != stage:
                    raise GraphConfigError(
                        'auto_stages(model, placements, costs="planned")',
                        f"{name} of {type(module).__name__} belongs to stages {first} and {stage}",
                        "a tensor is laid out by the plan of one stage",
                        "give costs=[...] and lay the model out by to_global, or do not share the tensor",
                    )


def _kind(place: Placement) -> str:
    return place.topology_name or str(getattr(place.devices.flat[0], "device_kind", place.type))


def _planned_us(row: _Row, spec: TensorSpec) -> tuple[float, TensorSpec, CostModel]:
    """Return the modelled time of a row, its result, and the prices."""
    program, _, _ = row.plan_program(spec)
    cost = program.options.cost
    if program.plan is not None:
        return program.plan.modelled_us, _result(program), cost
    ranks = math.prod(row.config.auto_placement.hierarchy)  # no layouts to choose: pointwise work, divided
    us = sum(cost.equation_us(eqn) for eqn in program.flat.eqns) / ranks
    return us, _result(program), cost


def _result(program: Any) -> TensorSpec:
    aval = program.jaxpr.out_avals[len(program.written)]
    return TensorSpec(tuple(aval.shape), aval.dtype)
