"""`WarmUpLR` schedule: a warm-up before another schedule or before a constant rate.

    scheduler = WarmUpLR(CosineDecayLR(optimizer, 1000), warmup_factor=0.1, warmup_iters=100)

rises from a tenth of the base rate to the value of the cosine at step 100, and follows the cosine from there. With
``warmup_prefix=True`` it rises to the base rate, and the cosine begins at its step 0 after the warm-up.
"""

from __future__ import annotations

from typing import Any

from sbpjax.errors import OpTypeError
from sbpjax.optim.optimizer import Optimizer

from .base import LRScheduler, require
from .ramp import linear
from .sequence import _Composed


class WarmUpLR(_Composed):
    """A warm-up, rising or constant, before a schedule or before the base rate.

    Args:
        scheduler_or_optimizer: the schedule after it, or the optimizer, whose base rate follows then.
        warmup_factor: the factor of step 0.
        warmup_iters: the number of warm-up steps.
        warmup_method: ``"linear"`` rises steadily, ``"constant"`` keeps the factor until the end.
        warmup_prefix: the schedule begins after the warm-up; otherwise both count the same steps.
    """

    def __init__(
        self,
        scheduler_or_optimizer: LRScheduler | Optimizer,
        warmup_factor: float = 1.0 / 3,
        warmup_iters: int = 5,
        warmup_method: str = "linear",
        warmup_prefix: bool = False,
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        name = "WarmUpLR"
        if isinstance(scheduler_or_optimizer, LRScheduler):
            optimizer = scheduler_or_optimizer.optimizer
            self._take_schedulers([scheduler_or_optimizer], optimizer)
        elif isinstance(scheduler_or_optimizer, Optimizer):
            optimizer = scheduler_or_optimizer
            self.schedulers = []
        else:
            seen = type(scheduler_or_optimizer).__name__
            rule = f"'scheduler_or_optimizer' must be a LRScheduler or an Optimizer, but got {seen}"
            raise OpTypeError(f"{name}(...)", seen, rule, "WarmUpLR(optimizer, warmup_iters=5)")
        rule = f"'warmup_method' must be 'linear' or 'constant', but got {warmup_method}"
        require(warmup_method in ("linear", "constant"), name, f"{warmup_method!r}", rule, "warmup_method='linear'")
        rule = "Warm-up factor expected to be between 0 and 1"
        require(0 <= warmup_factor <= 1, name, f"warmup_factor={warmup_factor!r}", rule, "warmup_factor=0.1")
        rule = "When 'scheduler_or_optimizer' is an optimizer warmup_iters can't be equal to 0"
        ok = warmup_iters > 0 or (warmup_iters == 0 and bool(self.schedulers))
        require(ok, name, f"warmup_iters={warmup_iters!r}", rule, "warmup_iters=5")
        self.warmup_factor, self.warmup_iters = warmup_factor, warmup_iters
        self.warmup_method, self.warmup_prefix = warmup_method, warmup_prefix
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    @property
    def _begin(self) -> int:
        """The step at which the schedule after the warm-up counts 0."""
        return self.warmup_iters if self.warmup_prefix else 0

    def _rate_after_warmup(self, base_lr: float, step: int, group: int) -> float:
        if not self.schedulers:
            return base_lr
        return self.schedulers[0].lr_at(base_lr, step - self._begin, group)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        if step >= self.warmup_iters:
            return self._rate_after_warmup(base_lr, step, group)
        if self.warmup_method == "constant":
            return base_lr * self.warmup_factor
        end = base_lr if self.warmup_prefix else self._rate_after_warmup(base_lr, self.warmup_iters, group)
        return linear(base_lr * self.warmup_factor, end, step, self.warmup_iters)

    def options_at(self, step: int, group: int = 0) -> dict[str, Any]:
        if not self.schedulers:
            return {}
        return self.schedulers[0].options_at(max(0, step - self._begin), group)

    def step(self, epoch: int | None = None) -> None:
        super().step(epoch)
        for scheduler in self.schedulers:
            scheduler.last_step = max(0, self.last_step - self._begin)


WarmupLR = WarmUpLR
