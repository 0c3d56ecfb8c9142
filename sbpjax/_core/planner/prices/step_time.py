"""Modelled step time of a plan on a given machine, independent of the prices it was chosen by.

A planner without a machine's prices uses machine-independent ones (`cost.DEFAULT`). The time of its plan on one machine
is computed here: every equation by its roofline there, divided among the ranks that share it, and every conversion by
the links that it uses. Nothing overlaps.

    a product of 8,192³ in bfloat16 over 4 chips of a v5p    2 · 8192³ / 4 / 4.59e14 flop/s = 599 µs
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .cost import CostModel


def plan_us(plan: Any, model: CostModel) -> float:
    """Return the modelled time of one run of a plan.

    Args:
        plan: a `_core.programs.plan.Plan`.
        model: the prices, with the links of the plan's mesh axes (`links.of_placement`).
    """
    return computing_us(plan, model) + moving_us(plan, model)


def computing_us(plan: Any, model: CostModel) -> float:
    """Return the time of a plan's equations on one device, bodies of loops as often as they run."""
    return sum(us for _, _, us in equations_us(plan, model))


def equations_us(plan: Any, model: CostModel, around: str = "", times: int = 1) -> Iterator[tuple[Any, str, float]]:
    """Yield every equation with the scope of its names, and its time on one device in one run of the plan."""
    for i, (eqn, strategy) in enumerate(zip(plan.program.eqns, plan.strategies, strict=True)):
        scope = f"{around}/{eqn.source_info.name_stack}".strip("/")
        if i in plan.bodies:
            yield from equations_us(plan.bodies[i], model, scope, times * eqn.params["length"])
            continue
        split = [any(c >= 0 for c in (*one.ins, *one.outs)) for one in strategy]
        ranks = math.prod(size for size, is_split in zip(plan.sizes, split) if is_split)
        yield eqn, scope, times * model.equation_us(eqn) / ranks


def moving_us(plan: Any, model: CostModel) -> float:
    """Return the time of a plan's conversions and of the communication inside its equations."""
    boxings = sum(model.collectives_us(boxing.steps) * boxing.times for boxing in plan.boxings)
    return boxings + model.interconnect_us(plan.inner_bytes)
