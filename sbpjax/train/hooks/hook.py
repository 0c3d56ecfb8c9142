"""`Hook`: base class of callbacks between the steps of a run.

    class Rate(Hook):
        def after_step(self, trainer):
            trainer.record({"rate": trainer.optimizer.param_groups[0]["lr"]})

The trainer calls hooks in their order, but `Average` before the others, which see its averages, and `Checkpoints` after
them: their state is saved as of the end of the step. A hook that keeps something across a restart has `state_dict` and
`load_state_dict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class Hook:
    """Base of hooks; a subclass overrides the methods that it needs.

    Attributes:
        name: under which its state is in checkpoints.
        order: hooks with a lower one are called first, those with the same one as they are given.
    """

    name: str = ""
    order: int = 0

    def set_up(self, trainer: Trainer) -> None:
        """Prepare the hook when the trainer is built; the state of a resumed run is restored later."""

    def before_run(self, trainer: Trainer) -> None:
        """Run after everything is built, and the state of a resumed run is restored."""

    def before_step(self, trainer: Trainer) -> None:
        """Run before a step; `trainer.batch` is its batch, which may be replaced."""

    def after_step(self, trainer: Trainer) -> None:
        """Run after a step; `trainer.step` counts it already, `trainer.loss` may still be computing."""

    def before_evaluation(self, trainer: Trainer) -> None:
        """Run before an evaluation that is due after a step."""

    def after_evaluation(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        """Run with the metrics of an evaluation."""

    def after_run(self, trainer: Trainer) -> None:
        """Run after the last step, also of a run that an error ended."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a resumed run."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of `state_dict`."""


def is_due(step: int, every: int | None, last: int) -> bool:
    """Return whether a periodic action, also done at the last step, is due."""
    return step == last or (every is not None and step % every == 0)
