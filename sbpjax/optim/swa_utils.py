"""Weight averaging: `AveragedModel` (SWA, EMA), the `SWALR` schedule, and `update_bn`.

Averages of the weights over training have less noise than the last weights; they are kept beside the trained model:

    averaged = AveragedModel(model)                       # or multi_avg_fn=get_ema_multi_avg_fn(0.999)
    for batch in data:
        ...
        averaged.update_parameters(model)
    update_bn(data, averaged)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from sbpjax._core.tensor import Tensor
from sbpjax._core.tensor.creation import from_data
from sbpjax._core.tensor.handle import dtype as dtypes
from sbpjax._core.tensor.storage.payload import make_unshared_leaf, put_all_from
from sbpjax._core.tensor.tape.grad_mode import no_grad
from sbpjax.nn.layers.batchnorm import _BatchNorm
from sbpjax.nn.module import Module
from sbpjax.optim.lr_scheduler.base import LRScheduler, per_group, require
from sbpjax.optim.lr_scheduler.cosine import half_cosine
from sbpjax.optim.optimizer import Optimizer

Average = Callable[[Tensor, Tensor, Tensor], Tensor]
ListAverage = Callable[[list[Tensor], list[Tensor], Tensor], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the average that keeps `decay` of itself, and takes the rest from the model."""
    rule = f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
    require(0 <= decay <= 1, "get_ema_avg_fn", f"decay={decay!r}", rule, "get_ema_avg_fn(0.999)")
    return lambda averaged, current, count: averaged * decay + current * (1 - decay)


def get_swa_avg_fn() -> Average:
    """Return the plain mean of all models so far."""
    return lambda averaged, current, count: averaged + (current - averaged) / (count + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> ListAverage:
    """Return `get_ema_avg_fn` for lists of tensors, which it writes in place."""
    return _list_average(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> ListAverage:
    """Return `get_swa_avg_fn` for lists of tensors, which it writes in place."""
    return _list_average(get_swa_avg_fn())


def _list_average(average: Average) -> ListAverage:
    def update(averaged: list[Tensor], current: list[Tensor], count: Tensor) -> None:
        for mine, new in zip(averaged, current):
            mine.copy_(average(mine, new, count))

    return update


class AveragedModel(Module):
    """A model whose weights are the average of another model's weights over its training.

    Args:
        model: the model that is trained; a copy of it is kept as ``module``.
        device: the device of the copy; that of the model by default.
        avg_fn: ``avg_fn(averaged, current, n_averaged)`` returns the new average; the plain mean if not given.
        multi_avg_fn: the same for lists of tensors, in place.
        use_buffers: average buffers too; otherwise they are copied.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: ListAverage | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        rule = "Only one of avg_fn and multi_avg_fn should be provided"
        require(avg_fn is None or multi_avg_fn is None, "AveragedModel", "both", rule, "avg_fn=...")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", from_data.tensor(0, dtype=dtypes.long))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the averaged model."""
        return self.module(*args, **kwargs)

    def _averaged_tensors(self, model: Module) -> list[Tensor]:
        return [*model.parameters(), *(model.buffers() if self.use_buffers else ())]

    def update_parameters(self, model: Module) -> None:
        """Add the model's present weights to the average; the first ones are copied."""
        averaged, new = self._averaged_tensors(self.module), self._averaged_tensors(model)
        copied = [] if self.use_buffers else list(zip(self.module.buffers(), model.buffers()))
        targets = [*averaged, *(mine for mine, _ in copied), self.n_averaged]
        with no_grad():
            # An interrupt finds all of it new, or nothing.
            found = [make_unshared_leaf(t) for t in targets]
            mine, count = found[: len(averaged)], found[-1]
            if count.item() == 0:
                for a, b in zip(mine, new):
                    a.copy_(b)
            elif self.avg_fn is not None:
                _list_average(self.avg_fn)(mine, new, count)
            else:
                (self.multi_avg_fn or get_swa_multi_avg_fn())(mine, new, count)
            for a, (_, b) in zip(found[len(averaged) :], copied):
                a.copy_(b)
            count += 1
            put_all_from(targets, found)


def update_bn(loader: Iterable, model: Module, device: Any = None) -> None:
    """Compute the running statistics of every batch norm of a model anew, over all batches of a loader.

    Args:
        loader: gives batches, or tuples and lists whose first entry is one.
        model: the model; its mode is the same after as before.
        device: the device to which batches are moved first.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    training = model.training
    model.train()
    try:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the plain mean over all batches
        with no_grad():
            for batch in loader:
                batch = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(batch if device is None else batch.to(device))
    finally:
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """From the current rate to `swa_lr` over `anneal_epochs` steps, then constant.

    Args:
        swa_lr: the rate at the end, or one per group.
        anneal_epochs: the number of steps to it.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: the last step already done.

    Source: Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization (2018).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        self.swa_lrs = per_group("SWALR", "swa_lr", swa_lr, optimizer)
        rule = f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}"
        require(anneal_strategy in ("cos", "linear"), "SWALR", f"{anneal_strategy!r}", rule, "anneal_strategy='cos'")
        rule = f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
        ok = isinstance(anneal_epochs, int) and anneal_epochs >= 0
        require(ok, "SWALR", f"{anneal_epochs!r}", rule, "anneal_epochs=10")
        self.anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: int | None = None) -> None:
        """Advance by one step, from the rate that another schedule has set meanwhile, if one has."""
        if self.last_step < 0 or not hasattr(self, "last_lr"):
            self.base_lrs = [group["lr"] for group in self.optimizer.param_groups]
        else:
            done = self._annealed_part(self.last_step)
            for index, (group, last) in enumerate(zip(self.optimizer.param_groups, self.last_lr)):
                if group["lr"] != last and done < 1:
                    self.base_lrs[index] = (group["lr"] - done * self.swa_lrs[index]) / (1 - done)
        super().step(epoch)

    def _annealed_part(self, step: int) -> float:
        """Return the part of the way to `swa_lrs` that is done after a step."""
        part = min(1.0, step / self.anneal_epochs) if self.anneal_epochs else 1.0
        return 1 - half_cosine(part) if self.anneal_strategy == "cos" else part

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        done = self._annealed_part(step)
        return self.swa_lrs[group] * done + base_lr * (1 - done)
