"""`TensorBoard`: writer of scalars to ``OUT/tensorboard``, by tensorboardX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sbpjax.errors import TrainError
from sbpjax.utils.host import pip_install

from .writer import Writer


class TensorBoard(Writer):
    """Write scalars; a resumed run hides the records of an earlier one after its step.

    Raises:
        TrainError: tensorboardX is not installed, or the run has no directory.
    """

    def __init__(self) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ModuleNotFoundError:
            told = "no module tensorboardX", "it writes TensorBoard's files", pip_install("train")
            raise TrainError("TensorBoard()", *told) from None
        self._make: Any = SummaryWriter
        self._writer: Any = None

    def open(self, out: Path | None, step: int, max_steps: int) -> None:
        """Begin a file."""
        if out is None:
            raise TrainError("TensorBoard()", "out=None", "its files are in the run's directory", 'out="run7"')
        purge = {"purge_step": step + 1} if step else {}
        self._writer = self._make(logdir=str(out / "tensorboard"), **purge)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write a scalar for each metric."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
