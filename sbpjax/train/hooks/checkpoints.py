"""`Checkpoints`: save the whole state of a run periodically, in the background.

    Checkpoints(every=500, keep_last=3, keep_best=1, metric="validation/loss")

SIGTERM, by which clusters announce a preemption, saves one more after the current step, and ends the program with the
exit code on which the launcher restarts it.

In ``OUT/checkpoints``, in the format of `sbpjax.checkpoint`: a kill at any moment leaves the checkpoints that were
complete. A resumed run continues bit by bit: with the next batch, random number and rate; on another mesh up to
rounding.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

from sbpjax import checkpoint, env
from sbpjax.errors import TrainError, nearest

from .evaluation import Evaluation
from .hook import Hook, is_due

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class Checkpoints(Hook):
    """Save the state of the run at regular intervals, and at its end.

    Args:
        every: steps between two checkpoints; None for the end of the run alone.
        keep_last: the number of latest checkpoints to keep; None for all.
        keep_best: the number of checkpoints with the best metric to keep in addition.
        metric: its name in an evaluation; the latest evaluation counts. Checkpoints before the first one have no score.
        better: ``"min"`` or ``"max"``.
        asynchronous: write in the background.

    Example:
        >>> Checkpoints(every=100, keep_best=1, metric="validation/loss").every
        100
    """

    order = 1

    def __init__(
        self,
        *,
        every: int | None = None,
        keep_last: int | None = 3,
        keep_best: int = 0,
        metric: str | None = None,
        better: str = "min",
        asynchronous: bool = True,
    ):
        if keep_best and metric is None:
            rule = "the best checkpoint is that of the best metric"
            raise TrainError("Checkpoints(...)", f"keep_best={keep_best}", rule, 'metric="validation/loss"')
        self.every, self.metric = every, metric
        self.options = {"keep_last": keep_last, "keep_best": keep_best, "better": better, "asynchronous": asynchronous}
        self._manager: checkpoint.Manager | None = None
        self._saved: int | None = None
        self._handler: Any = None

    def manager(self, trainer: Trainer) -> checkpoint.Manager:
        """Return the manager of the run's directory of checkpoints.

        Raises:
            TrainError: the trainer has no directory.
        """
        if self._manager is None:
            if trainer.out is None:
                raise TrainError("Checkpoints(...)", "out=None", "checkpoints are in the run's directory", 'out="run7"')
            self._manager = checkpoint.Manager(trainer.out / "checkpoints", **self.options)
        return self._manager

    def set_up(self, trainer: Trainer) -> None:
        """Raise for a metric name that is similar to that of an evaluation."""
        names = [hook.name for hook in trainer.hooks if isinstance(hook, Evaluation)]
        of, _, metric = (self.metric or "").rpartition("/")
        if of not in names and (near := nearest(of, names)):
            self._raise_unknown_metric(f"evaluations {', '.join(names)}", f"metric='{near}/{metric}'")

    def after_evaluation(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        """Raise for a metric that its evaluation does not return."""
        of = (self.metric or "").rpartition("/")[0]
        if of and self.metric not in metrics and any(name.rpartition("/")[0] == of for name in metrics):
            self.save(trainer)  # an error at this point costs nothing of the run
            self.manager(trainer).wait()
            self._raise_unknown_metric(", ".join(sorted(metrics)), f"metric={nearest(str(self.metric), metrics)!r}")

    def _raise_unknown_metric(self, known: str, fix: str) -> None:
        rule = "the metric of a checkpoint is one of an evaluation"
        there = f"there are {known}" if known else "there is no Evaluation, and so no metric"
        raise TrainError("Checkpoints(...)", f"metric={self.metric!r}; {there}", rule, fix)

    def before_run(self, trainer: Trainer) -> None:
        """Install the SIGTERM handler, which only the main thread of a program can."""
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.getsignal(signal.SIGTERM)
            self.manager(trainer).watch_preemption()

    def after_step(self, trainer: Trainer) -> None:
        """Save if it is due, if the run was stopped, or if a process received SIGTERM."""
        manager = self.manager(trainer)
        is_preempted = manager.should_stop() if env.get_world_size() > 1 else manager.preempted
        if is_preempted or trainer.is_stopped or is_due(trainer.step, self.every, trainer.max_steps):
            self.save(trainer)
        if trainer.step == trainer.max_steps and self.metric is not None and self.metric not in trainer.metrics:
            self.manager(trainer).wait()  # an error at the end costs nothing of the run
            self._raise_unknown_metric(
                ", ".join(sorted(trainer.metrics)), f"metric={next(iter(trainer.metrics), None)!r}"
            )
        if is_preempted:
            trainer.write_text(f"stopping by request: saved at step {trainer.step:,}")
            manager.exit_for_restart()

    def save(self, trainer: Trainer) -> None:
        """Start writing a checkpoint of the run in its present state; all processes call it."""
        metric = None if self.metric is None else trainer.metrics.get(self.metric)
        self.manager(trainer).save(trainer.step, trainer.state(), metric=metric)
        self._saved = trainer.step

    def after_run(self, trainer: Trainer) -> None:
        """Wait until the last checkpoint is complete."""
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)
            self._handler = None
        if self._manager is not None:
            self._manager.wait()
