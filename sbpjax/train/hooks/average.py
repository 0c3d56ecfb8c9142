"""`Average`: evaluate a moving average of the parameters instead of the parameters.

    average = 0.999 average + 0.001 parameters, behind each step

A program of its own updates it on the devices, and nothing waits for it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import TrainError

from .hook import Hook

if TYPE_CHECKING:
    from sbpjax.train.trainer import Trainer


class _Update(nn.Graph):
    """The update of those parameters that lie on one placement."""

    def __init__(self, decay: float, averages: nn.ParameterList, parameters: nn.ParameterList):
        super().__init__()
        self.decay, self.averages, self.parameters = decay, averages, parameters

    @flow.no_grad()
    def build(self) -> None:
        """Move each average towards its parameter."""
        for average, parameter in zip(self.averages, self.parameters, strict=True):
            average.copy_(self.decay * average + (1 - self.decay) * parameter)


class Average(Hook):
    """Keep an exponential moving average of the parameters, which evaluations use.

    Args:
        decay: what is kept of the average in each step.

    Attributes:
        model: with the averages as its parameters, once the run has begun.

    Example:
        >>> Average(0.999).decay
        0.999
    """

    name = "average"

    def __init__(self, decay: float = 0.999):
        if not 0 < decay < 1:
            raise TrainError("Average(decay)", f"decay={decay}", "it is between 0 and 1", "decay=0.999")
        self.decay = decay
        self.model: nn.Module | None = None
        self._updates: list[_Update] = []

    def set_up(self, trainer: Trainer) -> None:
        """Begin with the parameters as they are."""
        self.model = trainer.evaluated_model = copy.deepcopy(trainer.model)
        places: dict[Any, list[tuple[Any, Any]]] = {}
        for average, parameter in zip(self.model.parameters(), trainer.model.parameters(), strict=True):
            places.setdefault(parameter.placement, []).append((average, parameter))
        for pairs in places.values():
            averages, parameters = zip(*pairs, strict=True)
            self._updates.append(_Update(self.decay, nn.ParameterList(averages), nn.ParameterList(parameters)))

    def after_step(self, trainer: Trainer) -> None:
        """Move the averages."""
        for update in self._updates:
            update()

    def state_dict(self) -> dict[str, Any]:
        """Return the averages."""
        return {} if self.model is None else {"model": self.model.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take what `state_dict` returned."""
        if self.model is not None:
            self.model.load_state_dict(state["model"])
