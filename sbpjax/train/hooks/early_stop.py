"""`EarlyStop`: end a run whose metric stops improving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sbpjax.errors import TrainError

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class EarlyStop(Hook):
    """End the run when evaluations bring nothing new; list it before `Checkpoints`, which then saves the last step.

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
