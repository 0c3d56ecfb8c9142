"""Ramp schedules over a fixed number of steps: constant, linear, polynomial."""

from __future__ import annotations

import math

from sbpjax.optim.optimizer import Optimizer

from .base import LRScheduler, require


class ConstantLR(LRScheduler):
    """The base rate times `factor` for `total_iters` steps, then the base rate.

    Args:
        factor: in [0, 1].
        total_iters: the number of steps with the factor.
    """

    _by_factors = True

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        rule = "Constant multiplicative factor expected to be between 0 and 1."
        require(0 <= factor <= 1, "ConstantLR", f"factor={factor!r}", rule, "factor=0.5")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return base_lr * (self.factor if step < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """The base rate times a factor that goes linearly from `start_factor` to `end_factor`, and stays there.

    Args:
        start_factor: the factor of step 0, in [0, 1].
        end_factor: the factor from step `total_iters` on, in [0, 1].
        total_iters: the number of steps between them.
    """

    _by_factors = True

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        rule = "Starting multiplicative factor expected to be between 0 and 1."
        require(0 <= start_factor <= 1, "LinearLR", f"start_factor={start_factor!r}", rule, "start_factor=0.1")
        rule = "Ending multiplicative factor expected to be between 0 and 1."
        require(0 <= end_factor <= 1, "LinearLR", f"end_factor={end_factor!r}", rule, "end_factor=1.0")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return base_lr * linear(self.start_factor, self.end_factor, step, self.total_iters)


def linear(start: float, end: float, step: int, total: int) -> float:
    """Return the value at `step` on the line from `start` at 0 to `end` at `total`, constant after it."""
    return start + (end - start) * step / total if step < total else end


class PolynomialLR(LRScheduler):
    """From the base rate down to an end along ``(1 - step / total_iters) ** power``.

    PyTorch's arguments, and OneFlow's by name.

    Args:
        total_iters: after how many steps the end is reached.
        power: 1 is a straight line.
        decay_batch: OneFlow's name of `total_iters`; the end is 0.0001 then unless given.
        end_learning_rate: the end; 0 unless given.
        cycle: stretch the polynomial over the next multiple of `total_iters` whenever it ends, rather than stay.
    """

    _by_factors = True

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_step: int = -1,
        verbose: bool = False,
        *,
        decay_batch: int | None = None,
        end_learning_rate: float | None = None,
        cycle: bool = False,
        last_epoch: int | None = None,
    ):
        self.end_learning_rate = 0.0 if decay_batch is None else 0.0001
        if end_learning_rate is not None:
            self.end_learning_rate = end_learning_rate
        self.total_iters = total_iters if decay_batch is None else decay_batch
        rule = f"total_iters must be positive, but got {self.total_iters}"
        seen = f"total_iters={self.total_iters!r}"
        require(self.total_iters > 0, "PolynomialLR", seen, rule, "total_iters=100")
        self.power, self.cycle = power, cycle
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def _from(self, present: float, before: float, after: float) -> float:
        end = self.end_learning_rate
        return end + (present - end) * (after - end) / (before - end) if before != end else present

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        total = self.total_iters
        if self.cycle:
            total *= max(1, math.ceil(step / total))
        left = 1 - min(step, total) / total
        return (base_lr - self.end_learning_rate) * left**self.power + self.end_learning_rate
