"""The total cost of a plan: modelled time, bytes on the interconnect, bytes in memory.

For a plan of Adam on 8 ranks:

    time    812.3 µs    minimised by the planner: computing and moving, all of it one after the other
    moving  301.0 µs    of it in collectives
    bytes   142.0 MB    received by one device in one step
    number        12    of collectives, those counted once that the compiler combines
    memory    2.1 GB    of one device at the fullest moment: inputs, and values that live during the step

Time and bytes are the planner's own figures, and memory is the figure compared with a limit
(`_core.planner.memory.limit`): the inputs as the plan lays them out, results that are not written in their place, and
the values that live at the fullest moment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sbpjax._core.inspect.traffic import planned_launches
from sbpjax._core.planner.memory.limit import peak_bytes
from sbpjax._core.planner.prices.launches import launches
from sbpjax._core.planner.prices.step_time import equations_us
from sbpjax._core.programs.plan import Plan
from sbpjax.graph.auto.planning_problem import PlanningProblem
from sbpjax.sbp.layout import local_shape


@dataclass(frozen=True)
class Totals:
    """The figures of one plan, per device and step.

    Attributes:
        name: of the plan.
        time_us: modelled time.
        interconnect_us: of it in collectives.
        equations_us: the time of its equations on one device. With `interconnect_us` it may exceed `time_us`, in which
            latency that other work hides counts less.
        update_us: of that, in the update of parameters and optimizer state; 0 if unknown.
        bytes: received over the interconnect.
        collectives: how many are launched, those counted once that the compiler of the devices combines.
        memory_bytes: live bytes at their peak.
        standing_bytes: of it stored between two steps.
        gap: how far the plan may be from the planner's lower bound, as a share.
    """

    name: str
    time_us: float
    interconnect_us: float
    bytes: int
    collectives: int
    memory_bytes: int
    standing_bytes: int
    gap: float
    equations_us: float = 0.0
    update_us: float = 0.0

    @property
    def compute_us(self) -> float:
        """The modelled time apart from collectives."""
        return max(self.time_us - self.interconnect_us, 0.0)

    def as_dict(self) -> dict:
        """Return the figures by name, for JSON."""
        return {
            "time_us": self.time_us, "interconnect_us": self.interconnect_us,
            "equations_us": self.equations_us, "update_us": self.update_us, "bytes": int(self.bytes),
            "collectives": self.collectives, "memory_bytes": int(self.memory_bytes),
            "standing_bytes": int(self.standing_bytes), "gap": self.gap,
        }  # fmt: skip


def totals(problem: PlanningProblem, plan: Plan, name: str) -> Totals:
    """Return the figures of a plan of a subject."""
    standing = sum(
        math.prod(local_shape(x.shape, codes, problem.sizes)) * x.dtype.itemsize
        for x, codes in zip(problem.inputs, plan.in_codes, strict=True)
        if x.shape and len(codes) == len(problem.sizes)
    )
    live = peak_bytes(plan, problem.out_pins, problem.placement.type)
    cost, number = problem.cost, sum(launches(plan, problem.cost).values())
    sent = cost.with_latency(0.0)
    collectives_us = sum(sent.collectives_us(b.steps) * b.times for b in plan.boxings)
    collectives_us += sent.interconnect_us(plan.inner_bytes) + number * cost.alpha_us
    moving_us = min(collectives_us, plan.modelled_us)
    work = [(scope.partition("/")[0] in problem.updates, us) for _, scope, us in equations_us(plan, cost)]
    computing_us, update_us = sum(us for _, us in work), sum(us for is_update, us in work if is_update)
    launched = sum(planned_launches(plan, problem.placement).values())
    sums = launched, live, standing, plan.gap, computing_us, update_us
    return Totals(name, plan.modelled_us, moving_us, plan.bytes, *sums)
