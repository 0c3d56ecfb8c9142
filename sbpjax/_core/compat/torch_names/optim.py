"""`torch.optim`: optimizers and schedules with PyTorch's rules; `sbpjax.optim` has OneFlow's."""

from __future__ import annotations

from typing import Any, TypeAlias

from sbpjax.optim import lr_scheduler
from sbpjax.optim.algorithms import rmsprop, sgd
from sbpjax.optim.check import is_on, params_value

ParamsT: TypeAlias = Any


class SGD(sgd.SGD):
    """`sbpjax.optim.SGD` whose first gradient enters the moving sum undampened; see there for the options.

    Raises:
        ValueError: `nesterov` without momentum, or with dampening.
    """

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        if group["nesterov"] and (not is_on(group["momentum"]) or is_on(group["dampening"])):
            seen = f"nesterov=True, momentum={group['momentum']}, dampening={group['dampening']}"
            rule = "Nesterov momentum requires a momentum and zero dampening"
            raise params_value(seen, rule, "torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True)")

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        return (*super()._flags(group), ("whole_first", True))


class RMSprop(rmsprop.RMSprop):
    """`sbpjax.optim.RMSprop` that adds `eps` to the root, ``g / (sqrt(v) + eps)``; see there for the options."""

    def _flags(self, group: dict[str, Any]) -> tuple[tuple[str, bool], ...]:
        return (*super()._flags(group), ("eps_outside", True))


class ChainedScheduler(lr_scheduler.ChainedScheduler):
    """`sbpjax.optim.lr_scheduler.ChainedScheduler` that steps its schedules one after the other.

    Each goes on from the rate that it finds as it does alone: one that computes the rate itself (a lambda) sets it
    anew.
    """

    step = lr_scheduler.LRScheduler.step

    def _next(self, before: int, absolute: bool) -> list[float]:
        if before == self.schedulers[0].last_step:  # not so at the start, when each has done its first step
            for scheduler in self.schedulers:
                scheduler.step()
        return [group["lr"] for group in self.optimizer.param_groups]


class _RequiredParameter:
    """Placeholder for an option that a group of parameters must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()
