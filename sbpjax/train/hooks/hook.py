"""`Hook`: something that is done between the steps of a run.

    class Rate(Hook):
        def after_step(self, trainer):
            trainer.record({"rate": trainer.optimizer.param_groups[0]["lr"]})

The trainer calls hooks in their order, but `Average` before the others, which see its averages, and `Checkpoints`
behind them: their state is saved as it is at the end of the step. A hook that keeps something across a restart has
`state_dict` and `load_state_dict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class Hook:
    """Base of hooks; a subclass overrides what it needs.

    Attributes:
        name: under which its state is in checkpoints.
        order: hooks with a lower one are called first, those with the same one as they are given.
    """

    name: str = ""
    order: int = 0

    def set_up(self, trainer: Trainer) -> None:
        """Make what the hook needs, when the trainer is built; the state of a resumed run comes later."""

    def before_run(self, trainer: Trainer) -> None:
        """Do something when everything is built, and the state of a resumed run is there."""

    def before_step(self, trainer: Trainer) -> None:
        """Do something before a step; `trainer.batch` is its batch, and another one may be put in its place."""

    def after_step(self, trainer: Trainer) -> None:
        """Do something behind a step; `trainer.step` counts it already, `trainer.loss` may still be computing."""

    def before_evaluation(self, trainer: Trainer) -> None:
        """Do something before an evaluation that is due behind a step."""

    def after_evaluation(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        """Do something with the metrics of an evaluation."""

    def after_run(self, trainer: Trainer) -> None:
        """Do something behind the last step, also of a run that an error ended."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take what `state_dict` returned."""


def due(step: int, every: int | None, last: int) -> bool:
    """Return whether something that is done every so many steps, and at the last one, is to be done."""
    return step == last or (every is not None and step % every == 0)
