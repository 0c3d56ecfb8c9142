"""`WandB`: writer to an offline run of Weights & Biases; ``wandb sync`` uploads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sbpjax.errors import TrainError

from .writer import Writer


class WandB(Writer):
    """Write an offline run into ``OUT/wandb``.

    Args:
        project: its project.
        name: its name; by default that of the run's directory.

    Raises:
        TrainError: wandb is not installed, or the run has no directory.
    """

    def __init__(self, project: str = "sbpjax", name: str | None = None) -> None:
        try:
            import wandb
        except ModuleNotFoundError:
            raise TrainError("WandB()", "no module wandb", "it writes the run", "pip install wandb") from None
        self._wandb: Any = wandb
        self.project, self.name = project, name
        self._run: Any = None

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Begin a run."""
        if out is None:
            raise TrainError("WandB()", "out=None", "its files are in the run's directory", 'out="run7"')
        name = self.name or out.name
        self._run = self._wandb.init(project=self.project, name=name, dir=str(out), mode="offline")

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write the metrics of a step."""
        self._run.log(metrics, step=step)

    def close(self) -> None:
        """End the run."""
        if self._run is not None:
            self._run.finish()
            self._run = None
