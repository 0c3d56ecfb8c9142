"""Learning-rate schedules: pure functions of the step, and the objects that write them into an optimizer.

    schedule = warmup_cosine(warmup=100, total=1000)           # step -> factor
    scheduler = LambdaLR(optimizer, schedule)
    for batch in data:
        ...
        optimizer.step()
        scheduler.step()

The learning rate is an input of the compiled update, so a schedule never compiles anew, and it depends on the step
number alone, so a resumed run continues it exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sbpjax.optim.optimizer import Optimizer


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


class LRScheduler:
    """Base of the schedules; a subclass gives `rate`.

    Args:
        optimizer: whose groups get their ``"lr"`` from here.
        last_epoch: the last step already done; -1 starts at the beginning.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group["initial_lr"] = group["lr"]
            elif "initial_lr" not in group:
                raise KeyError("param 'initial_lr' is not specified in a group when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def rate(self, step: int, base_lr: float, group: int) -> float:
        """Return the learning rate of a group at a step."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step, or to step `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for index, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs)):
            group["lr"] = self.rate(self.last_epoch, base, index)

    def get_last_lr(self) -> list[float]:
        """Return the learning rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return where the schedule is."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go to where `state_dict` was taken, and set the learning rates of that step."""
        self.base_lrs = list(state_dict["base_lrs"])
        self.step(state_dict["last_epoch"])


class LambdaLR(LRScheduler):
    """The base rate times a function of the step.

    Args:
        optimizer: the optimizer.
        lr_lambda: the function, or one per group.
        last_epoch: the last step already done.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ):
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base_lr: float, group: int) -> float:
        return base_lr * self.lr_lambdas[group](step)


class CosineAnnealingLR(LRScheduler):
    """A cosine from the base rate down to `eta_min` at step `T_max`, and up again behind it.

    Args:
        optimizer: the optimizer.
        T_max: half a period, in steps.
        eta_min: the lowest rate.
        last_epoch: the last step already done.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, step: int, base_lr: float, group: int) -> float:
        return self.eta_min + (base_lr - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2
