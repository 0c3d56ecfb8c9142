"""`TargetMetric`: fail a run that does not reach a target metric.

TargetMetric("validation/loss", at_most=4.2)
TargetMetric("reviews/accuracy", at_least=0.9)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbpjax.errors import TrainError

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class TargetMetric(Hook):
    """Compare a metric at the end of the run with a bound.

    Args:
        metric: its name.
        at_most: the upper bound.
        at_least: the lower bound.

    Raises:
        TrainError: the bound is missed at the end of the run.

    Example:
        >>> TargetMetric("validation/loss", at_most=4.2).at_most
        4.2
    """

    def __init__(self, metric: str, *, at_most: float = float("inf"), at_least: float = float("-inf")):
        self.metric, self.at_most, self.at_least = metric, at_most, at_least

    def after_step(self, trainer: Trainer) -> None:
        """Compare after the last step."""
        if trainer.step < trainer.max_steps:
            return
        found = trainer.metrics.get(self.metric)
        bound = f"at least {self.at_least:g}" if self.at_least > float("-inf") else f"at most {self.at_most:g}"
        if found is None or not self.at_least <= found <= self.at_most:
            seen = f"{self.metric} is {found}" if found is None else f"{self.metric} is {found:.4g}"
            rule = f"the run is to end with {self.metric} of {bound}"
            raise TrainError(f"training of {trainer.max_steps:,} steps", seen, rule, "look at the curve: metrics.jsonl")
        trainer.say(f"reached: {self.metric} is {found:.4g}, {bound} was to be reached")
