"""`ReduceLROnPlateau`: lower the rate when a metric stops improving."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from sbpjax.optim.optimizer import Optimizer

from .base import LRScheduler, per_group, require


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rate by `factor` when a metric has not improved for `patience` steps.

    The one schedule that is no function of the step: call `step` with the metric where it is measured.

    Args:
        mode: whether ``"min"`` or ``"max"`` of the metric is sought.
        factor: in (0, 1).
        patience: the number of steps without a better value before a reduction.
        threshold: by how much a value has to be better to count.
        threshold_mode: whether `threshold` is ``"rel"`` to the best value or ``"abs"``.
        cooldown: the number of steps after a reduction that are not counted.
        min_lr: the lowest rate, or one per group.
        eps: a smaller change of the rate is not made.

    Example:
        >>> scheduler = ReduceLROnPlateau(optimizer, patience=3)
        >>> scheduler.step(validation_loss)
    """

    is_pure: ClassVar[bool] = False
    _unsaved = ("_lowest",)

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
        verbose: bool = False,
    ):
        name = "ReduceLROnPlateau"
        require(factor < 1.0, name, f"factor={factor!r}", "Factor should be < 1.0.", "factor=0.1")
        require(mode in ("min", "max"), name, f"mode={mode!r}", f"mode {mode} is unknown!", "mode='min'")
        rule = f"threshold mode {threshold_mode} is unknown!"
        require(threshold_mode in ("rel", "abs"), name, f"{threshold_mode!r}", rule, "threshold_mode='rel'")
        self.mode, self.factor, self.patience, self.cooldown = mode, factor, patience, cooldown
        self.threshold, self.threshold_mode, self.eps = threshold, threshold_mode, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        super().__init__(optimizer, -1, verbose)
        self.min_lrs = per_group(name, "min_lr", min_lr, optimizer)
        self._lowest = None if isinstance(min_lr, (list, tuple)) else min_lr

    def step(self, metrics: Any = None, epoch: int | None = None) -> None:
        """Take a new value of the metric, a number or a 0-d tensor, and lower the rate if it is time."""
        step = self.last_step + 1 if epoch is None else epoch
        rule = "this schedule needs the value that it watches"
        known = metrics is not None or step == 0  # step 0 is the constructor's
        require(known, type(self).__name__, "step()", rule, "scheduler.step(validation_loss)")
        if metrics is None:
            self.last_step = step
            return
        value = float(metrics)
        self._take_new_groups()
        self.last_step = step
        if self.is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.update_lrs(self._reduce_rates())
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        else:
            self.last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _given_by_group(self) -> str:
        return "a min_lr" if self._lowest is None else ""

    def _extend(self, bases: list[float]) -> None:
        super()._extend(bases)
        self.min_lrs = [*self.min_lrs, *[self._lowest] * len(bases)]

    def _reduce_rates(self) -> list[float]:
        rates = []
        for group, low in zip(self.optimizer.param_groups, self.min_lrs):
            new = max(group["lr"] * self.factor, low)
            rates.append(new if group["lr"] - new > self.eps else group["lr"])
        return rates

    @property
    def in_cooldown(self) -> bool:
        """Whether values are not counted because the rate was just lowered."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Return whether `a` is better than `best` by the threshold."""
        if self.mode == "min":
            return a < (best * (1 - self.threshold) if self.threshold_mode == "rel" else best - self.threshold)
        return a > (best * (1 + self.threshold) if self.threshold_mode == "rel" else best + self.threshold)
