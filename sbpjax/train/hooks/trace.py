"""`Trace`: profiler trace of some steps, for TensorBoard and Perfetto."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax

from sbpjax import env
from sbpjax.errors import TrainError

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class Trace(Hook):
    """Trace some steps of the run into ``OUT/trace``, with a separate folder for each process.

    Args:
        first: the first step that is traced; the one before it is complete by then.
        steps: the number of traced steps.

    Example:
        >>> Trace(first=10, steps=3).last
        12
    """

    def __init__(self, first: int = 10, steps: int = 3):
        if first < 1 or steps < 1:
            raise TrainError("Trace(...)", f"first={first}, steps={steps}", "steps count from 1", "first=10, steps=3")
        self.first, self.last = first, first + steps - 1
        self._on = False

    def before_step(self, trainer: Trainer) -> None:
        """Start the trace, if the next step is the first one."""
        if trainer.step + 1 != self.first:
            return
        if trainer.out is None:
            raise TrainError("Trace(...)", "out=None", "traces are in the run's directory", 'out="run7"')
        if trainer.loss is not None:
            trainer.loss.numpy()
        rank = f"rank{env.get_rank()}" if env.get_world_size() > 1 else ""
        jax.profiler.start_trace(str(trainer.out / "trace" / rank))
        self._on = True

    def after_step(self, trainer: Trainer) -> None:
        """Stop the trace after the last step."""
        if self._on and trainer.step >= self.last:
            trainer.loss.numpy()  # its devices are done
            self._end()
            trainer.write_text(f"traced steps {self.first:,} to {trainer.step:,}: {trainer.out}/trace")

    def after_run(self, trainer: Trainer) -> None:
        """Stop the trace, if the run ended before."""
        if self._on:
            self._end()

    def _end(self) -> None:
        self._on = False
        jax.profiler.stop_trace()
