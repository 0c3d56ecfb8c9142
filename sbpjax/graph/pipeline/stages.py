"""`auto_stages`: cut a row of modules into stages of equal cost, and put each stage on its placement.

    model = nn.Sequential(embedding, *blocks, head)
    auto_stages(model, [P0, P1])                    # by numbers of parameters
    auto_stages(model, [P0, P1], example=tokens)    # by measured time
    auto_stages(model, [P0, P1], example=tokens, costs="planned")   # by the planner's prices, layouts chosen too

A step takes the time of its slowest stage, so the cut minimises the largest sum (exactly, by dynamic programming). With
planned costs a stage's sum is that of its modules on its own placement, and of getting its input there.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from typing import Any

from sbpjax._core.runtime.lifecycle import at_stage
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.errors import GraphConfigError, GraphTypeError
from sbpjax.graph.auto import stages
from sbpjax.graph.module_proxy import GraphModule
from sbpjax.nn.containers import ModuleList, Sequential
from sbpjax.sbp.algebra import broadcast
from sbpjax.sbp.placement import placement as Placement


@at_stage("pre-alpha")
def auto_stages(
    model: Any,
    placements: Sequence[Placement],
    *,
    sbp: Any = None,
    example: Any = None,
    costs: Sequence[float] | str | None = None,
    chunks: int = 1,
    cost_model: Any = None,
) -> list[int]:
    """Cut a model into stages.

    Args:
        model: an `nn.Sequential` or `nn.ModuleList` (of modules that are called one after the other).
        placements: the devices of the stages, in order.
        sbp: the layout of parameters on their placement; by default broadcast, with planned costs the planner's choice.
        example: an input of the first module, local: the cost of a module is then the measured time of its forward.
        costs: one number per module, instead; or ``"planned"``: the modelled time of a module's forward, backward and
            update, laid out as auto parallelism would (`sbpjax.graph.auto.stages`). ``example`` is then a micro-batch,
            with or without data, and the model is local.
        chunks: how many stages each placement gets, for ``set_pipeline("interleaved")``.
        cost_model: the prices of planned costs, as for ``set_auto_parallel_cost_model``.

    Returns:
        For every module the number of its stage.

    Raises:
        GraphTypeError: the model is no row of modules.
        GraphConfigError: there are fewer modules than stages, or not one cost per module; or costs are to be planned
            without an example, or for a model that is on a placement.
    """
    operation = "auto_stages(model, placements)"
    if not isinstance(model, (Sequential, ModuleList)):
        raise GraphTypeError(
            operation,
            f"a {type(model).__name__}",
            "stages are cut between the modules of a row",
            "auto_stages(nn.Sequential(...), placements)",
        )
    modules = list(model)
    places = list(placements) * chunks
    if len(modules) < len(places) or not places:
        raise GraphConfigError(
            operation,
            f"{len(modules)} modules for {len(places)} stages",
            "every stage has at least one module",
            f"give at most {len(modules)} placements",
        )
    if isinstance(costs, str):
        return _by_plan(operation, modules, places, sbp, example, costs, cost_model)
    if costs is not None and len(costs) != len(modules):
        raise GraphConfigError(
            operation,
            f"{len(costs)} costs for {len(modules)} modules",
            "there is one cost per module",
            "leave costs out to go by parameters",
        )
    if costs is None:
        costs = _measure_modules(modules, example) if example is not None else [_parameters(m) for m in modules]
    stage_of = balance_stages(costs, len(places))
    _place(modules, places, stage_of, sbp)
    return stage_of


def _place(modules: Sequence, places: Sequence[Placement], stage_of: Sequence[int], sbp: Any) -> None:
    for module, stage in zip(modules, stage_of, strict=True):
        place = places[stage]
        module.to_global(place, sbp if sbp is not None else [broadcast] * len(place.hierarchy))
        GraphModule.of_module(module).set_stage(stage, place)


def _by_plan(
    operation: str, modules: list, places: list[Placement], sbp: Any, example: Any, costs: str, cost_model: Any
) -> list[int]:
    """Cut by the planner's prices, and convert the tensors of every stage to the layouts of its plan."""
    if costs != "planned" or example is None:
        raise GraphConfigError(
            operation,
            f"costs={costs!r}, example={example!r}",
            "costs are planned for an input of the first module",
            'auto_stages(model, placements, example=micro_batch, costs="planned")',
        )
    stage_of = balance_unequal_stages(*stages.row_costs(modules, places, example, cost_model))
    if sbp is not None:
        _place(modules, places, stage_of, sbp)
        return stage_of
    rows = [[m for m, s in zip(modules, stage_of, strict=True) if s == stage] for stage in range(len(places))]
    stages.check_apart(rows)
    for stage, (own, place) in enumerate(zip(rows, places, strict=True)):
        example = stages.lay_out(own, place, example, cost_model)
        for module in own:
            GraphModule.of_module(module).set_stage(stage, place)
    return stage_of


def balance_stages(costs: Sequence[float], stages: int) -> list[int]:
    """Return for every item of a row its stage, such that the largest sum of a stage is as small as it can be."""
    return balance_unequal_stages([costs] * stages, [[0.0] * len(costs)] * stages)


def balance_unequal_stages(costs: Sequence[Sequence[float]], links: Sequence[Sequence[float]]) -> list[int]:
    """Return for every item of a row its stage, such that the largest sum of a stage is as small as it can be.

    Args:
        costs: for every stage the cost of each item there.
        links: for every stage and item the additional cost of a stage that begins with that item.
    """
    stages, count = len(costs), len(costs[0])
    sums = [list(itertools.accumulate(row, initial=0.0)) for row in costs]
    best = [[float("inf")] * (count + 1) for _ in range(stages + 1)]
    begin = [[0] * (count + 1) for _ in range(stages + 1)]
    best[0][0] = 0.0
    for s in range(1, stages + 1):
        for end in range(s, count + 1):
            for start in range(s - 1, end):
                own = sums[s - 1][end] - sums[s - 1][start] + links[s - 1][start]
                # The slowest stage sets the pace of a pipeline; the sum does not matter.
                worst = max(best[s - 1][start], own)
                if worst < best[s][end]:
                    best[s][end], begin[s][end] = worst, start
    result = [0] * count
    end = count
    for s in range(stages, 0, -1):
        start = begin[s][end]
        result[start:end] = [s - 1] * (end - start)
        end = start
    return result


def _parameters(module: Any) -> float:
    return float(sum(p.numel() for p in module.parameters())) or 1.0


def _measure_modules(modules: Sequence, example: Any) -> list[float]:
    found, x = [], example
    with no_grad():
        for module in modules:
            times = []
            for _ in range(4):  # the first run compiles
                start = time.perf_counter()
                out = module(x)
                # Waits: JAX returns before the device is done.
                out.numpy()
                times.append(time.perf_counter() - start)
            found.append(statistics.median(times[1:]))
            x = out
    return found
