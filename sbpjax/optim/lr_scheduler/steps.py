"""Step decay schedules: multiply the rate by ``gamma`` every step, every n steps, or at milestones."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from sbpjax.optim.optimizer import Optimizer

from .base import LRScheduler, require


class StepLR(LRScheduler):
    """The base rate times ``gamma ** (step // step_size)``.

    Args:
        step_size: the number of steps with one rate.
        gamma: the factor after each such period.

    Example:
        >>> scheduler = StepLR(optimizer, step_size=30, gamma=0.1)
    """

    _by_factors = True

    def __init__(
        self,
        optimizer: Optimizer,
        step_size: int,
        gamma: float = 0.1,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        seen = f"step_size={step_size!r}"
        require(step_size > 0, "StepLR", seen, f"step_size must be positive, but got {step_size}", "step_size=30")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return base_lr * self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """The base rate times ``gamma`` for every milestone reached.

    Args:
        milestones: steps, in rising order; one that comes twice counts twice.
        gamma: the factor at each.
    """

    _by_factors = True

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        seen = f"milestones={milestones!r}"
        require(bool(milestones), "MultiStepLR", seen, "milestones must not be empty", "milestones=[30, 80]")
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return base_lr * self.gamma ** bisect.bisect_right(self.milestones, step)


class ExponentialLR(LRScheduler):
    """The base rate times ``gamma ** step``.

    Args:
        gamma: the factor of one step.
    """

    _by_factors = True

    def __init__(
        self,
        optimizer: Optimizer,
        gamma: float,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        self.gamma = gamma
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return base_lr * self.gamma**step
