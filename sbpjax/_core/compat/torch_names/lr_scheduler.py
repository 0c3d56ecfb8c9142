"""`torch.optim.lr_scheduler`: schedules with PyTorch's rules; `sbpjax.optim.lr_scheduler` has OneFlow's."""

from __future__ import annotations

from sbpjax.optim import lr_scheduler


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
