"""`Log`: write losses, rates and speed one step late, so that no step waits for the host.

    step 20 runs on the devices     the host reads the losses of steps 11 to 20 when it has dispatched step 21

The host reads a loss only when the next step is already queued: the devices never idle for it. The clock is read when
the losses are available: the time of dispatch does not measure the time of a step.
"""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from sbpjax import cuda
from sbpjax.train.memory_estimate import flops_per_step, peak_flops

from .hook import Hook, is_due

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer

_LONG_S = 5.0  # a first step that took longer is worth a word


class Log(Hook):
    """Write the mean loss since the last record, the learning rate, and the speed of the run.

    Args:
        every: steps between two records.
    """

    def __init__(self, every: int = 10):
        self.every = every
        self._losses: list[Any] = []
        self._waiting: tuple[int, float, list[Any]] | None = None  # of a record: its step, rate and losses
        self._select_first_function: Any = None  # the loss of the first step, until that is done
        self._clock_s = self._data_s = 0.0
        self._peak: float | None = None
        self._flops = 0.0
        self._step: int | None = None  # the clock starts after it; the first step compiles, and does not count

    def before_run(self, trainer: Trainer) -> None:
        """Begin to count."""
        self._peak = peak_flops(trainer)
        self._flops = flops_per_step(trainer) if self._peak else 0.0
        self._losses, self._waiting, self._select_first_function, self._step = [], None, None, None
        self._clock_s = time.perf_counter()

    def _begin(self, trainer: Trainer, step: int) -> None:
        self._clock_s, self._data_s = time.perf_counter(), trainer.data_s
        self._select_first_function, self._step = None, step

    def after_step(self, trainer: Trainer) -> None:
        """Read the values that were ready at the step before, and queue those of this step."""
        if self._select_first_function is not None:
            self._wait_first_step(trainer)
        elif self._step is None:
            self._select_first_function = trainer.loss
        self.read(trainer)
        self._losses.append(trainer.loss)
        if is_due(trainer.step, self.every, trainer.max_steps):
            self._waiting = trainer.step, float(trainer.optimizer.param_groups[0]["lr"]), self._losses
            self._losses = []

    def _wait_first_step(self, trainer: Trainer) -> None:
        """Wait for the first step, since the second is queued by now; the clock starts after it."""
        self._select_first_function.numpy()
        seconds = time.perf_counter() - self._clock_s
        if seconds > _LONG_S:
            trainer.write_text(f"the first step took {seconds:.0f} s, with compilation; later steps use its program")
        self._begin(trainer, trainer.step - 1)

    def _speed(self, trainer: Trainer, step: int) -> dict[str, float]:
        """Return the speed of the steps that the devices have finished since the last record."""
        steps = 0 if self._step is None else step - self._step
        if not steps:
            return {}
        step_s = (time.perf_counter() - self._clock_s) / steps
        found = {
            "step_ms": step_s * 1e3,
            "data_ms": (trainer.data_s - self._data_s) / steps * 1e3,
            "samples_per_s": trainer.batch_size / step_s,
            "eta_s": (trainer.max_steps - step) * step_s,
            "host_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        if self._peak:
            found["mfu"] = self._flops / (self._peak * step_s)
            found["device_memory_mb"] = cuda.max_memory_allocated() / 2**20
        if trainer.tokens_per_step:
            found["tokens_per_s"] = trainer.tokens_per_step / step_s
        return found

    def read(self, trainer: Trainer) -> None:
        """Read the waiting losses, and pass them to the writers; all processes call it."""
        if self._waiting is None:
            return
        (step, rate, losses), self._waiting = self._waiting, None
        mean = float(np.mean([np.mean(loss.numpy()) for loss in losses]))  # the devices have done the step now
        trainer.record({"loss": mean, "lr": rate, **self._speed(trainer, step)}, step)
        self._begin(trainer, step)

    def before_evaluation(self, trainer: Trainer) -> None:
        """Write the records of steps before the evaluation."""
        self.read(trainer)

    def after_evaluation(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        """Exclude its time from the speed."""
        self._begin(trainer, trainer.step)

    def after_run(self, trainer: Trainer) -> None:
        """Read the remaining losses."""
        self.read(trainer)
