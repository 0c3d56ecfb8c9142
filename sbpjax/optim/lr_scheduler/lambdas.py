"""Schedules by a user's function of the step: `LambdaLR`, `MultiplicativeLR`; factors with a warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sbpjax.optim.optimizer import Optimizer

from .base import Factor, LRScheduler, checked_optimizer, per_group


class LambdaLR(LRScheduler):
    """The base rate times a function of the step.

    Args:
        lr_lambda: the function, or one per group.

    Example:
        >>> scheduler = LambdaLR(optimizer, lambda step: 0.95**step)
    """

    _of_groups = "a function"
    _unsaved = ("lr_lambdas",)

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Factor | list[Factor],
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        self.lr_lambdas = _functions(type(self).__name__, lr_lambda, optimizer)
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        return base_lr * self.lr_lambdas[group](step)


class MultiplicativeLR(LRScheduler):
    """The base rate times the product of a function's values from step 1 to the current step.

    Args:
        lr_lambda: the factor from the step before to a step, or one per group.
    """

    _by_factors = True
    _of_groups = "a function"
    _unsaved = ("lr_lambdas", "_products")

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Factor | list[Factor],
        last_step: int = -1,
        verbose: bool = False,
        *,
        last_epoch: int | None = None,
    ):
        self.lr_lambdas = _functions(type(self).__name__, lr_lambda, optimizer)
        self._products = [(0, 1.0)] * len(self.lr_lambdas)  # per group a step and the product up to it
        super().__init__(optimizer, last_step, verbose, last_epoch=last_epoch)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        known, product = self._products[group]
        if step < known:
            known, product = 0, 1.0
        for i in range(known + 1, step + 1):
            product *= self.lr_lambdas[group](i)
        self._products[group] = (step, product)
        return base_lr * product


def _functions(scheduler: str, lr_lambda: Any, optimizer: Optimizer) -> list[Factor]:
    return per_group(scheduler, "lr_lambda", lr_lambda, checked_optimizer(scheduler, optimizer))


def warmup_cosine(warmup: int, total: int, final: float = 0.0) -> Callable[[int], float]:
    """Return the factor that rises linearly over `warmup` steps, then falls along a cosine to `final`."""

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        progress = min(1.0, (step - warmup) / max(1, total - warmup))
        return final + (1 - final) * 0.5 * (1 + math.cos(math.pi * progress))

    return factor


def warmup_constant(warmup: int) -> Callable[[int], float]:
    """Return the factor that rises linearly over `warmup` steps, then stays 1."""
    return lambda step: min(1.0, (step + 1) / max(1, warmup))
