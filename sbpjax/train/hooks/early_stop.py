"""Hooks that compare a metric: `EarlyStop` ends a run that stops improving, `TargetMetric` raises after the last step.

EarlyStop("validation/loss", patience=3)
TargetMetric("validation/loss", at_most=4.2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sbpjax.errors import TrainError

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class EarlyStop(Hook):
    """End the run when a metric stops improving; list it before `Checkpoints`, which then saves the last step.

    Args:
        metric: its name in an evaluation.
        patience: the number of evaluations in a row without a better value.
        better: ``"min"`` or ``"max"``.
        least: the minimum improvement.

    Example:
        >>> EarlyStop("validation/loss", patience=3).best is None
        True
    """

    name = "early stop"

    def __init__(self, metric: str, *, patience: int = 5, better: str = "min", least: float = 0.0):
        if better not in ("min", "max") or patience < 1:
            rule = 'better is "min" or "max", patience a number of evaluations, 1 at least'
            raise TrainError("EarlyStop(...)", f"better={better!r}, patience={patience}", rule, "patience=5")
        self.metric, self.patience, self.least = metric, patience, least
        self.sign = 1 if better == "min" else -1
        self.best: float | None = None
        self.waited = 0

    def after_evaluation(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        """Compare with the best so far."""
        value = metrics.get(self.metric)
        if value is None:
            return
        if self.best is None or self.sign * value < self.sign * self.best - self.least:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop(f"{self.metric} was {self.best:.4g} {self.waited} evaluations ago, and none was better since")

    def state_dict(self) -> dict[str, Any]:
        """Return the best value, and how long ago it was."""
        return {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        self.best, self.waited = state["best"], state["waited"]


class TargetMetric(Hook):
    """Compare a metric with a bound after the last of `max_steps` steps, unless the run was stopped earlier.

    Args:
        metric: its name.
        at_most: the upper bound.
        at_least: the lower bound.

    Raises:
        TrainError: the bound is missed.

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
        trainer.write_text(f"reached: {self.metric} is {found:.4g}, {bound} was to be reached")
