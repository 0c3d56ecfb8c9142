"""`Accuracy`: top-1 and top-k accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import sbpjax as flow

from .metric import Metric, Select, beside, host, tensor


def places_of_targets(logits: Any, targets: Any) -> np.ndarray:
    """Return how many classes are likelier than the target, of equal ones those with a lower number.

    Args:
        logits: `(..., C)`, a tensor of any sbp, or an array.
        targets: `(...)` whole numbers; negative ones do not count.

    Returns:
        ``(n,)``, of the targets that count.

    Example:
        >>> places_of_targets(np.array([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0]]), np.array([2, 1])).tolist()
        [1, 1]
    """
    scores = tensor(logits)
    told = beside(targets, scores)
    chosen = told.clamp(min=0)[..., None].to(flow.int64)
    own = scores.gather(-1, chosen)  # (..., 1)
    classes = beside(np.arange(scores.shape[-1]), scores)
    ahead = (scores > own) | ((scores == own) & (classes < chosen))
    counts = host(told).reshape(-1) >= 0
    return host(ahead.to(flow.int64).sum(-1)).reshape(-1)[counts]


class Accuracy(Metric):
    """The share of targets that are among the k likeliest classes.

    Args:
        k: the k of top-k; several numbers give several metrics.
        select: see `Metric`. Predictions are logits `(..., C)`, targets `(...)`; negative targets do not count.

    Example:
        >>> metric = Accuracy(k=(1, 2))
        >>> metric.update(flow.tensor([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1]]), (None, flow.tensor([2, 0])))
        >>> metric.compute()
        {'accuracy': 0.5, 'accuracy@2': 1.0}
    """

    def __init__(self, k: int | Sequence[int] = 1, select: Select | None = None) -> None:
        self.k = (k,) if isinstance(k, int) else tuple(k)
        super().__init__(select)

    def zero(self) -> dict[str, Any]:
        """Return the state of no predictions."""
        return {"right": np.zeros(len(self.k), np.int64), "all": 0}

    def count(self, state: dict[str, Any], predictions: Any, targets: Any) -> None:
        """Count the predictions of a batch."""
        places = places_of_targets(predictions, targets)
        state["right"] = state["right"] + [int((places < k).sum()) for k in self.k]
        state["all"] += len(places)

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return ``accuracy`` for k = 1, ``accuracy@k`` for others."""
        shares = [right / state["all"] if state["all"] else np.nan for right in state["right"].tolist()]
        return {"accuracy" if k == 1 else f"accuracy@{k}": share for k, share in zip(self.k, shares, strict=True)}
