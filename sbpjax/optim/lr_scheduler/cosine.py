"""Cosine schedules: annealing, decay, and annealing with warm restarts."""

from __future__ import annotations

import math

from sbpjax.optim.optimizer import Optimizer

from .base import LRScheduler, require


def half_cosine(progress: float) -> float:
    """Return the cosine that falls from 1 at progress 0 to 0 at progress 1."""
    return 0.5 * (1 + math.cos(math.pi * progress))


class CosineAnnealingLR(LRScheduler):
    """A cosine from the base rate down to `eta_min` at step `T_max`, and up again after it.

    Args:
        T_max: half a period, in steps.
        eta_min: the lowest rate.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts (2017), without restarts.
    """

    _by_factors = True

    def __init__(
        self,
        optimizer: Optimizer,
        T_max: int,
        eta_min: float = 0.0,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        rule = f"T_max must be positive, but got {T_max}"
        require(T_max > 0, "CosineAnnealingLR", f"T_max={T_max!r}", rule, "T_max=100")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def _from(self, present: float, before: float, after: float) -> float:
        if before == self.eta_min:
            return present + after - before
        return self.eta_min + (present - self.eta_min) * (after - self.eta_min) / (before - self.eta_min)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return self.eta_min + (base_lr - self.eta_min) * half_cosine(step / self.T_max)


class CosineDecayLR(LRScheduler):
    """A cosine from the base rate down to `alpha` times the base rate at step `decay_steps`, then constant.

    Args:
        decay_steps: after how many steps the end is reached.
        alpha: the end, as a part of the base rate.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        decay_steps: int,
        alpha: float = 0.0,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        rule = f"decay_steps must be positive, but got {decay_steps}"
        require(decay_steps > 0, "CosineDecayLR", f"decay_steps={decay_steps!r}", rule, "decay_steps=100")
        self.decay_steps, self.alpha = decay_steps, alpha
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        if step >= self.decay_steps:
            return base_lr * self.alpha
        return base_lr * ((1 - self.alpha) * half_cosine(step / self.decay_steps) + self.alpha)


class CosineAnnealingWarmRestarts(LRScheduler):
    """A cosine from the base rate down to `eta_min`, over and over, each time `T_mult` as long as before.

    Args:
        T_0: the length of the first run, in steps.
        T_mult: how much longer each run is than the one before; an integer.
        eta_min: the lowest rate.
        decay_rate: the factor of the highest rate after each restart.
        restart_limit: after so many runs the rate stays `eta_min`; 0 for no limit.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts (2017).
    """

    _of_groups = "a base rate"

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        decay_rate: float = 1.0,
        restart_limit: int = 0,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        name = type(self).__name__
        rule = f"Expected positive integer T_0, but got {T_0}"
        require(isinstance(T_0, int) and T_0 > 0, name, f"T_0={T_0!r}", rule, "T_0=10")
        rule = f"Expected integer T_mult >= 1, but got {T_mult}"
        require(isinstance(T_mult, int) and T_mult >= 1, name, f"T_mult={T_mult!r}", rule, "T_mult=2")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.decay_rate, self.restart_limit = decay_rate, restart_limit
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def run_of(self, step: float) -> tuple[int, float, int]:
        """Return the number of the run that a step is in, the steps done in it, and its length."""
        rule = f"Expected non-negative epoch, but got {step}"
        require(step >= 0, f"{type(self).__name__}.step", f"epoch={step!r}", rule, "step()")
        if self.T_mult == 1:
            run = int(step // self.T_0)
            return run, step - run * self.T_0, self.T_0
        run, length = 0, self.T_0
        while step >= length:  # a logarithm would be wrong by one where rounding meets a restart
            step, length, run = step - length, length * self.T_mult, run + 1
        return run, step, length

    def lr_at(self, base_lr: float, step: float, group: int = 0) -> float:
        run, done, length = self.run_of(step)
        if 0 < self.restart_limit <= run:
            return self.eta_min
        return self.eta_min + (base_lr * self.decay_rate**run - self.eta_min) * half_cosine(done / length)
