"""`Perplexity`: exponential of the mean cross entropy per token, over all tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sbpjax.nn import functional as F

from .exact_sum import ExactSum
from .metric import Metric, beside, host, tensor


class Perplexity(Metric):
    """Perplexity of tokens, and their mean cross entropy.

    Args:
        select: see `Metric`. Predictions are logits `(..., V)`, or cross entropies `(...)` in nats; targets `(...)`,
            negative where nothing is to be predicted.

    Example:
        >>> metric = Perplexity()
        >>> metric.update(flow.zeros(1, 3, 4), (None, flow.tensor([[0, 3, -100]])))
        >>> {name: round(value, 4) for name, value in metric.compute().items()}
        {'loss': 1.3863, 'perplexity': 4.0}
    """

    def zero(self) -> dict[str, Any]:
        """Return no tokens."""
        return {"nats": ExactSum(), "tokens": 0}

    def count(self, state: dict[str, Any], predictions: Any, targets: Any) -> None:
        """Count the tokens of a batch."""
        losses = predictions
        if len(predictions.shape) > len(targets.shape):
            predictions = tensor(predictions)
            losses = F.cross_entropy(
                predictions.reshape(-1, predictions.shape[-1]).float(),
                beside(targets, predictions).reshape(-1).clamp(min=-1),
                ignore_index=-1,
                reduction="none",
            )
        told = host(targets).reshape(-1) >= 0
        state["nats"].add(host(losses).reshape(-1)[told])
        state["tokens"] += int(told.sum())

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return ``loss``, in nats per token, and ``perplexity``."""
        loss = state["nats"].mean(state["tokens"])
        return {"loss": loss, "perplexity": math.exp(loss) if loss < 700 else math.inf if loss > 0 else np.nan}
