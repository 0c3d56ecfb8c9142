"""`oneflow.optim.lr_scheduler`: where OneFlow's defaults are not PyTorch's, which `sbpjax.optim.lr_scheduler` has."""

from __future__ import annotations

from collections.abc import Sequence

from sbpjax.optim import lr_scheduler
from sbpjax.optim.optimizer import Optimizer


class SequentialLR(lr_scheduler.SequentialLR):
    """`sbpjax.optim.lr_scheduler.SequentialLR` whose parts go on counting from the first step unless told otherwise."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[lr_scheduler.LRScheduler],
        milestones: Sequence[int],
        interval_rescaling: bool | Sequence[bool] = False,
        last_step: int = -1,
        verbose: bool = False,
    ):
        super().__init__(optimizer, schedulers, milestones, interval_rescaling, last_step, verbose)


class PolynomialLR(lr_scheduler.PolynomialLR):
    """`sbpjax.optim.lr_scheduler.PolynomialLR` with OneFlow's arguments in OneFlow's order."""

    def __init__(
        self,
        optimizer: Optimizer,
        decay_batch: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_step: int = -1,
        verbose: bool = False,
    ):
        super().__init__(
            optimizer,
            power=power,
            last_step=last_step,
            verbose=verbose,
            decay_batch=decay_batch,
            end_learning_rate=end_learning_rate,
            cycle=cycle,
        )
