"""`Regression` metrics: mean squared error, Pearson's and Spearman's correlation.

A rank among all samples is no sum over samples, so the state is all predictions and targets. They are sorted before
anything is summed: so the result does not depend on their order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import rankdata

from .metric import Metric, host


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    """Return the correlation of two arrays; NaN where one is constant."""
    x, y = x - math.fsum(x) / len(x), y - math.fsum(y) / len(y)
    spread = math.sqrt(math.fsum(x * x) * math.fsum(y * y))
    return max(-1.0, min(1.0, math.fsum(x * y) / spread)) if spread else math.nan


class Regression(Metric):
    """Regression metrics.

    Args:
        select: see `Metric`. Predictions are `(B,)` or `(B, 1)`, targets `(B,)`.

    Example:
        >>> metric = Regression()
        >>> metric.update(np.array([[1.0], [2.0], [4.0]]), (None, np.array([1.0, 3.0, 4.0])))
        >>> {name: round(value, 4) for name, value in metric.compute().items()}
        {'mse': 0.3333, 'pearson': 0.9286, 'spearman': 1.0}
    """

    def zero(self) -> dict[str, Any]:
        """Return no samples."""
        return {"said": [], "told": []}

    def count(self, state: dict[str, Any], predictions: Any, targets: Any) -> None:
        """Count the numbers of a batch."""
        state["said"] += host(predictions).reshape(-1).astype(np.float64).tolist()
        state["told"] += host(targets).reshape(-1).astype(np.float64).tolist()

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return ``mse``, ``pearson`` and ``spearman``; NaN for fewer than one, two and two samples."""
        said, told = np.array(state["said"]), np.array(state["told"])
        if not len(said):
            return dict.fromkeys(("mse", "pearson", "spearman"), math.nan)
        order = np.lexsort((told, said))
        said, told = said[order], told[order]
        return {
            "mse": math.fsum((said - told) ** 2) / len(said),
            "pearson": _pearson(said, told),
            "spearman": _pearson(rankdata(said), rankdata(told)),
        }
