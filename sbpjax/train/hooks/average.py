"""`Average`: exponential moving average of the parameters, used in evaluations.

    average = 0.999 average + 0.001 parameters, after each step

The running statistics of batch norms belong to it: they are averaged as the parameters are, and counters are copied. A
program of its own updates it on the devices, and nothing waits for it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import TrainError

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class _Tensors(nn.Module):
    """Parameters and buffers of a model, as buffers by number."""

    def __init__(self, tensors: Iterable[flow.Tensor]):
        super().__init__()
        self.count = 0
        for tensor in tensors:
            self.register_buffer(f"t{self.count}", tensor)
            self.count += 1

    def __iter__(self) -> Iterator[flow.Tensor]:
        return (getattr(self, f"t{i}") for i in range(self.count))


class _Update(nn.Graph):
    """Update of the averages on one placement."""

    def __init__(self, averages: _Tensors, values: _Tensors):
        super().__init__()
        self.averages, self.values = averages, values

    @flow.no_grad()
    def build(self, decay: flow.Tensor) -> None:
        """Move each average towards its value."""
        for average, value in zip(self.averages, self.values, strict=True):
            mean = (decay * average + (1 - decay) * value).to(average.dtype) if average.is_floating_point() else value
            average.copy_(mean)


class Average(Hook):
    """Keep an exponential moving average of the parameters, which evaluations use.

    Args:
        decay: the weight of the average in each step.
        warm_up: keep less in the first steps: `(1 + n) / (10 + n)` in step `n`, as long as that is below `decay`. A
            run whose steps are not many times `1 / (1 - decay)` is otherwise evaluated with its initial weights.

    Attributes:
        model: with the averages as its parameters, once the run has begun.

    Example:
        >>> Average(0.999).decay
        0.999
    """

    name = "average"
    order = -1

    def __init__(self, decay: float = 0.999, *, warm_up: bool = False):
        if not 0 < decay < 1:
            raise TrainError("Average(decay)", f"decay={decay}", "it is between 0 and 1", "decay=0.999")
        self.decay, self.warm_up = decay, warm_up
        self.model: nn.Module | None = None
        self._updates: list[tuple[_Update, flow.Tensor]] = []

    def set_up(self, trainer: Trainer) -> None:
        """Begin with the parameters as they are."""
        self.model = trainer.evaluated_model = copy.deepcopy(trainer.model)
        places: dict[Any, list[tuple[Any, Any]]] = {}
        for average, value in zip(_state(self.model), _state(trainer.model), strict=True):
            places.setdefault(value.placement, []).append((average, value))
        for pairs in places.values():
            averages, values = zip(*pairs, strict=True)
            self._updates.append((_Update(_Tensors(averages), _Tensors(values)), values[0]))

    def after_step(self, trainer: Trainer) -> None:
        """Move the averages."""
        early = (1 + trainer.step) / (10 + trainer.step)
        decay = min(self.decay, early) if self.warm_up else self.decay
        for update, like in self._updates:
            update(_on_placement_of(decay, like))

    def state_dict(self) -> dict[str, Any]:
        """Return the averages."""
        return {} if self.model is None else {"model": self.model.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        if self.model is not None:
            self.model.load_state_dict(state["model"])


def _state(model: nn.Module) -> Iterator[flow.Tensor]:
    yield from model.parameters()
    yield from model.buffers()


def _on_placement_of(value: float, like: flow.Tensor) -> flow.Tensor:
    """Return a number on the placement or device of a tensor."""
    if not like.is_global:
        return flow.tensor(value, device=like.device)
    return flow.tensor(value, placement=like.placement, sbp=[flow.sbp.broadcast] * len(like.sbp))
