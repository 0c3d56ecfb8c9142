"""Composed schedules: `SequentialLR` (one after the other) and `ChainedScheduler` (product).

Because a schedule is a function of the step, both are functions of functions: `SequentialLR` picks the schedule of the
step, `ChainedScheduler` passes the rate of one to the next as its base rate.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

from sbpjax.errors import OpValueError
from sbpjax.optim.optimizer import Optimizer

from .base import LRScheduler, checked_optimizer, require


class _Composed(LRScheduler):
    """Base of schedules made of others; its state holds theirs."""

    schedulers: list[LRScheduler]
    _unsaved = ("schedulers",)

    def _take_schedulers(self, schedulers: Any, optimizer: Optimizer) -> None:
        name = type(self).__name__
        require(
            isinstance(schedulers, (list, tuple)) and len(schedulers) > 0,
            name,
            f"schedulers={schedulers!r}",
            f"{name} expects at least one scheduler to be chained, in a list",
            f"{name}([first, second])",
        )
        for index, scheduler in enumerate(schedulers):
            seen = f"schedulers[{index}] is a {type(scheduler).__name__}"
            ok = isinstance(scheduler, LRScheduler) and scheduler.is_pure
            require(ok, name, seen, "every part must be a schedule of the step alone", "step that one by itself")
            rule = f"all schedulers must belong to the same optimizer; schedulers[{index}] has another"
            require(scheduler.optimizer is optimizer, name, seen, rule, "make all with one optimizer")
        self.schedulers = list(schedulers)

    def _given_by_group(self) -> str:
        return next((own for part in self.schedulers if (own := part._given_by_group())), "")

    def _extend(self, bases: list[float]) -> None:
        super()._extend(bases)
        for part in self.schedulers:
            part._extend(bases)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"schedulers": [s.state_dict() for s in self.schedulers]}

    def check_state_dict(self, state_dict: dict[str, Any]) -> None:
        parts = state_dict.get("schedulers")
        if not isinstance(parts, list) or len(parts) != len(self.schedulers):
            operation = f"{type(self).__name__}.load_state_dict"
            seen = "no list of schedulers" if not isinstance(parts, list) else f"{len(parts)} schedulers"
            rule = f"it is made of {len(self.schedulers)} schedulers"
            raise OpValueError(operation, seen, rule, "make it of the schedulers it was saved with")
        super().check_state_dict({k: v for k, v in state_dict.items() if k != "schedulers"})
        for scheduler, part in zip(self.schedulers, parts):
            scheduler.check_state_dict(part)

    def _take_state(self, state_dict: dict[str, Any]) -> None:
        super()._take_state(state_dict)
        for scheduler, part in zip(self.schedulers, state_dict["schedulers"]):
            scheduler._take_state(part)


class SequentialLR(_Composed):
    """Consecutive schedules, switched at milestones.

    Args:
        schedulers: the schedules, in order.
        milestones: the steps at which the second and each further one begin.
        interval_rescaling: whether a schedule counts steps from its milestone, for all or for each but the first.
            True is PyTorch's behaviour. False is OneFlow's default: all share one count.

    Example:
        >>> warm = LinearLR(optimizer, 0.1, total_iters=100)
        >>> scheduler = SequentialLR(optimizer, [warm, CosineDecayLR(optimizer, 1000)], [100])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        interval_rescaling: bool | Sequence[bool] = True,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        name = type(self).__name__
        self._take_schedulers(schedulers, checked_optimizer(name, optimizer))
        self.milestones = list(milestones)
        require(
            len(self.milestones) == len(self.schedulers) - 1 and self.milestones == sorted(self.milestones),
            name,
            f"{len(self.schedulers)} schedulers, milestones={self.milestones}",
            "expects number of schedulers provided to be one more than the number of milestones, which rise",
            f"milestones={[100 * (i + 1) for i in range(len(self.schedulers) - 1)]}",
        )
        listed = isinstance(interval_rescaling, (list, tuple))
        rescaling = list(interval_rescaling) if listed else [interval_rescaling] * len(self.milestones)
        require(
            len(rescaling) == len(self.milestones) and all(isinstance(r, bool) for r in rescaling),
            name,
            f"interval_rescaling={interval_rescaling!r}",
            f"expects a bool or {len(self.milestones)} of them",
            "interval_rescaling=True",
        )
        self.interval_rescaling = rescaling
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def _current_scheduler(self, step: int) -> tuple[LRScheduler, int]:
        """Return the schedule that is active at a step, and the step in its own count."""
        index = bisect.bisect_right(self.milestones, step)
        begin = self.milestones[index - 1] if index and self.interval_rescaling[index - 1] else 0
        return self.schedulers[index], step - begin

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        scheduler, own = self._current_scheduler(step)
        return scheduler.lr_at(base_lr, own, group)

    def options_at(self, step: int, group: int = 0) -> dict[str, Any]:
        scheduler, own = self._current_scheduler(step)
        return scheduler.options_at(own, group)

    def step(self, epoch: int | None = None) -> None:
        super().step(epoch)
        scheduler, own = self._current_scheduler(self.last_step)
        scheduler.last_step, scheduler.last_lr = own, list(self.last_lr)


class ChainedScheduler(_Composed):
    """All schedules at once: each uses the previous one's rate as its base rate.

    For schedules that multiply, this is the product of their factors, as in PyTorch. A schedule with a fixed end (a
    cosine with ``eta_min``) reaches that end regardless of the schedules before it.

    Args:
        schedulers: the schedules, in order, of one optimizer.
        optimizer: that optimizer, taken from the first schedule if not given.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if optimizer is None:
            optimizer = getattr(schedulers[0], "optimizer", None) if schedulers else None
        if optimizer is None:
            self._take_schedulers(schedulers, optimizer)  # type: ignore[arg-type]  # raises
        assert optimizer is not None
        self._take_schedulers(schedulers, optimizer)
        super().__init__(optimizer, self.schedulers[0].last_step - 1)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        for scheduler in self.schedulers:
            base_lr = scheduler.lr_at(base_lr, step, group)
        return base_lr

    def options_at(self, step: int, group: int = 0) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for scheduler in self.schedulers:
            merged |= scheduler.options_at(step, group)
        return merged

    def step(self, epoch: int | None = None) -> None:
        super().step(epoch)
        for scheduler in self.schedulers:
            scheduler.last_step = self.last_step
