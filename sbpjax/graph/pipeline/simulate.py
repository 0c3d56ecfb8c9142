"""Pipeline simulation: bubble, activations and link use of a schedule, without a device.

>>> simulate("1f1b", stages=4, micro_batches=8).bubble
0.2727...
>>> simulate("interleaved", stages=64, micro_batches=512, chunks=4).peak_activations
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .schedule import Schedule, linear, schedule


@dataclass(frozen=True)
class Simulation:
    """The cost of a schedule.

    Attributes:
        schedule: the order and its times.
        bubble: the idle share of all stages' time.
        ideal: the bubble of 1F1B with equal stages.
        peak_activations: per stage, in how many units of `activation` it holds at most.
        link_use: per pair of neighbouring stages, the share of the time in which something is on its way.
    """

    schedule: Schedule
    bubble: float
    ideal: float
    peak_activations: list[float]
    link_use: list[float]

    @property
    def makespan(self) -> float:
        """How long a step takes."""
        return self.schedule.makespan


def simulate(
    rule: str,
    stages: int,
    micro_batches: int,
    *,
    chunks: int = 1,
    forward: float | Sequence[float] = 1.0,
    backward: float | Sequence[float] = 2.0,
    link: float = 0.0,
    activation: float = 1.0,
) -> Simulation:
    """Return the schedule of a model that is a row of parts, with its costs.

    Args:
        rule: ``"1f1b"``, ``"gpipe"``, ``"interleaved"`` or ``"zero_bubble"``.
        stages: how many placements.
        micro_batches: how many per step.
        chunks: parts of the model per placement; part ``c`` is on placement ``c mod stages``.
        forward: seconds (or any unit) of a part's forward, one for all or one each.
        backward: the same of its backward.
        link: how long a value takes from one stage to the next.
        activation: the memory of one micro-batch that a part holds between forward and backward.

    Raises:
        GraphConfigError: an unknown rule.
    """
    works = linear(stages, chunks, forward=forward, backward=backward, link=link, split_weights=rule == "zero_bubble")
    found = schedule(rule, works, micro_batches)
    crossings = [0] * max(0, stages - 1)
    for work in works:
        for other in work.after:
            a, b = sorted((works[other].stage, work.stage))
            if b - a == 1:
                crossings[a] += 1
    return Simulation(
        found,
        found.bubble,
        (stages - 1) / (micro_batches + stages - 1),
        [held * activation for held in found.in_flight],
        [count * micro_batches * link / found.makespan for count in crossings],
    )
