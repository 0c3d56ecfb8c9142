"""`CyclicLR` schedule: the rate cycles between two bounds, momentum inversely."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sbpjax.optim.optimizer import Optimizer

from .base import LRScheduler, checked_optimizer, per_group, require


class CyclicLR(LRScheduler):
    """From `base_lr` up to `max_lr` in `step_size_up` steps, down again, and so on.

    Args:
        base_lr: the lower bound, or one per group.
        max_lr: the upper bound, or one per group.
        step_size_up: steps on the way up.
        step_size_down: steps on the way down; as many as up if not given.
        mode: ``"triangular"``; ``"triangular2"`` halves the height every cycle; ``"exp_range"`` multiplies it by
            ``gamma ** step``.
        gamma: of ``"exp_range"``.
        scale_fn: a function of its own for the height, instead of a mode.
        scale_mode: whether `scale_fn` takes the number of the ``"cycle"`` (from 1) or of the ``"iterations"``.
        cycle_momentum: move ``momentum`` (or ``betas[0]``) too, against the rate.
        base_momentum: its lower bound, or one per group.
        max_momentum: its upper bound, or one per group.

    Source: Smith, Cyclical Learning Rates for Training Neural Networks (2017).
    """

    _of_groups = "bounds"
    _unsaved = ("_scale_fn",)

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        checked_optimizer("CyclicLR", optimizer)
        modes = ("triangular", "triangular2", "exp_range")
        rule = "mode is invalid and scale_fn is None"
        require(mode in modes or scale_fn is not None, "CyclicLR", f"mode={mode!r}", rule, f"one of {modes}")
        down = step_size_up if step_size_down is None else step_size_down
        seen = f"step_size_up={step_size_up!r}, step_size_down={step_size_down!r}"
        require(step_size_up > 0 and down > 0, "CyclicLR", seen, "both must be positive", "step_size_up=2000")
        lows = per_group("CyclicLR", "base_lr", base_lr, optimizer)
        self.max_lrs = per_group("CyclicLR", "max_lr", max_lr, optimizer)
        self.step_size_up, self.step_size_down = step_size_up, down
        self.mode, self.gamma, self.scale_mode = mode, gamma, scale_mode
        self._scale_fn = scale_fn
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            momentum_name("CyclicLR", optimizer)
            self.base_momentums = per_group("CyclicLR", "base_momentum", base_momentum, optimizer)
            self.max_momentums = per_group("CyclicLR", "max_momentum", max_momentum, optimizer)
        start = last_step if last_epoch is None else last_epoch
        if start == -1:
            for group, low in zip(optimizer.param_groups, lows):
                group["lr"] = group["initial_lr"] = low
        super().__init__(optimizer, start, verbose)

    def height_at(self, step: float, low: float, high: float) -> float:
        """Return how far above the lower bound the rate is at a step."""
        total = self.step_size_up + self.step_size_down
        cycle = math.floor(1 + step / total)
        done = 1 + step / total - cycle
        ratio = self.step_size_up / total
        height = (high - low) * (done / ratio if done <= ratio else (done - 1) / (ratio - 1))
        if self._scale_fn is not None:
            return height * self._scale_fn(cycle if self.scale_mode == "cycle" else step)
        if self.mode == "triangular2":
            return height / 2 ** (cycle - 1)
        return height * self.gamma**step if self.mode == "exp_range" else height

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return base_lr + self.height_at(step, base_lr, self.max_lrs[group])

    def options_at(self, step: int, group: int = 0) -> dict[str, Any]:
        if not self.cycle_momentum:
            return {}
        low, high = self.base_momentums[group], self.max_momentums[group]
        return with_momentum(self.optimizer.param_groups[group], high - self.height_at(step, low, high))


def momentum_name(scheduler: str, optimizer: Optimizer) -> str:
    """Return the name of the cycled option: ``"momentum"``, or ``"betas"`` for its first entry."""
    for name in ("momentum", "betas"):
        if name in optimizer.defaults:
            return name
    rule = "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
    require(False, scheduler, type(optimizer).__name__, rule, f"{scheduler}(..., cycle_momentum=False)")
    return ""


def with_momentum(group: dict[str, Any], value: float) -> dict[str, Any]:
    """Return the option of a group that makes `value` its momentum, or its first beta."""
    return {"betas": (value, *group["betas"][1:])} if "betas" in group else {"momentum": value}
