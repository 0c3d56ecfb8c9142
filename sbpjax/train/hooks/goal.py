"""`Goal`: fail a run that does not reach a target metric.

Goal("validation/loss", most=4.2)
Goal("reviews/accuracy", least=0.9)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbpjax.errors import TrainError

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class Goal(Hook):
    """Compare a metric at the end of the run with a bound.

    Args:
        metric: its name.
        most: the upper bound.
        least: the lower bound.

    Raises:
        TrainError: the bound is missed at the end of the run.

    Example:
        >>> Goal("validation/loss", most=4.2).most
        4.2
    """

    def __init__(self, metric: str, *, most: float = float("inf"), least: float = float("-inf")):
        self.metric, self.most, self.least = metric, most, least

    def after_step(self, trainer: Trainer) -> None:
        """Compare after the last step."""
        if trainer.step < trainer.max_steps:
            return
        found = trainer.metrics.get(self.metric)
        bound = f"at least {self.least:g}" if self.least > float("-inf") else f"at most {self.most:g}"
        if found is None or not self.least <= found <= self.most:
            seen = f"{self.metric} is {found}" if found is None else f"{self.metric} is {found:.4g}"
            rule = f"the run is to end with {self.metric} of {bound}"
            raise TrainError(f"training of {trainer.max_steps:,} steps", seen, rule, "look at the curve: metrics.jsonl")
        trainer.say(f"reached: {self.metric} is {found:.4g}, {bound} was to be reached")
