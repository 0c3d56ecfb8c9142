"""The plot of a run's losses, drawn at its end."""

from __future__ import annotations

from examples import recipe
from sbpjax import env
from sbpjax.train import Hook, Trainer


class LossPlot(Hook):
    """Draw ``OUT/loss.png`` of ``OUT/metrics.jsonl``."""

    def after_run(self, trainer: Trainer) -> None:
        """Draw."""
        if trainer.out is not None and env.get_rank() == 0:
            lines = {"training": (trainer.out, "loss"), "validation": (trainer.out, "validation/loss")}
            recipe.plot(trainer.out / "loss.png", {"nats per token": lines})
