"""`OneCycleLR` schedule: one rise to the highest rate and one fall, momentum inversely."""

from __future__ import annotations

from typing import Any

from sbpjax.optim.optimizer import Optimizer

from .base import LRScheduler, checked_optimizer, per_group, require
from .cosine import half_cosine
from .cyclic import momentum_name, with_momentum


class OneCycleLR(LRScheduler):
    """From ``max_lr / div_factor`` up to `max_lr`, then down to ``max_lr / div_factor / final_div_factor``.

    Args:
        max_lr: the highest rate, or one per group.
        total_steps: the length of the cycle.
        epochs: the length, if given in epochs.
        steps_per_epoch: steps of one epoch.
        pct_start: the part of the cycle that rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: move ``momentum`` (or ``betas[0]``) too, against the rate.
        base_momentum: its lower bound, or one per group.
        max_momentum: its upper bound, or one per group.
        div_factor: the highest over the first rate.
        final_div_factor: the first over the last rate.
        three_phase: fall back to the first rate in a phase as long as the rise, and to the last in a third.

    Raises:
        ValueError: a step after the end of the cycle.

    Source: Smith and Topin, Super-Convergence (2018).
    """

    _of_groups = "bounds"

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        name = "OneCycleLR"
        checked_optimizer(name, optimizer)
        if total_steps is None and epochs is not None and steps_per_epoch is not None:
            total_steps = epochs * steps_per_epoch
        seen = f"total_steps={total_steps!r}, epochs={epochs!r}, steps_per_epoch={steps_per_epoch!r}"
        rule = "You must define either total_steps OR both epochs and steps_per_epoch, as positive integers"
        require(isinstance(total_steps, int) and total_steps > 0, name, seen, rule, "total_steps=1000")
        rule = f"Expected float between 0 and 1 pct_start, but got {pct_start}"
        require(0 <= pct_start <= 1, name, f"pct_start={pct_start!r}", rule, "pct_start=0.3")
        rule = f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
        require(anneal_strategy in ("cos", "linear"), name, f"{anneal_strategy!r}", rule, "anneal_strategy='cos'")
        assert total_steps is not None
        self.total_steps, self.anneal_strategy, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        rise = pct_start * total_steps - 1
        self.ends = [rise, 2 * rise, total_steps - 1] if three_phase else [rise, total_steps - 1]
        self.lr_bounds: list[list[float]] = []
        for high in per_group(name, "max_lr", max_lr, optimizer):
            first = high / div_factor
            middle = [first] if three_phase else []
            self.lr_bounds.append([first, high, *middle, first / final_div_factor])
        self.momentum_bounds: list[list[float]] = []
        if cycle_momentum:
            momentum_name(name, optimizer)
            lows = per_group(name, "base_momentum", base_momentum, optimizer)
            highs = per_group(name, "max_momentum", max_momentum, optimizer)
            end = [1, 1] if three_phase else [1]
            self.momentum_bounds = [[hi, lo, *[hi for _ in end]] for lo, hi in zip(lows, highs)]
        start = last_step if last_epoch is None else last_epoch
        if start == -1:
            for group, bounds in zip(optimizer.param_groups, self.lr_bounds):
                group["initial_lr"] = bounds[0]
        super().__init__(optimizer, start, verbose)

    def _value(self, bounds: list[float], step: int) -> float:
        rule = f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
        require(step <= self.total_steps, "OneCycleLR", f"step {step}", rule, f"total_steps={step + 1}")
        begin = 0.0
        for phase, end in enumerate(self.ends):
            if step <= end or phase == len(self.ends) - 1:
                break
            begin = end
        left, right = bounds[phase], bounds[phase + 1]
        done = (step - begin) / (end - begin)
        if self.anneal_strategy == "cos":
            return right + (left - right) * half_cosine(done)
        return left + (right - left) * done

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return self._value(self.lr_bounds[group], step)

    def options_at(self, step: int, group: int = 0) -> dict[str, Any]:
        if not self.cycle_momentum:
            return {}
        return with_momentum(self.optimizer.param_groups[group], self._value(self.momentum_bounds[group], step))
