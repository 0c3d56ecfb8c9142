"""Scores of predictions: `Accuracy`, `F1`, `Matthews`, `Perplexity`, `Regression`.

A rank among all samples is no sum over samples, so the state of `Regression` is all predictions and targets. They are
sorted before anything is summed: so the result does not depend on their order.

Sources: van Rijsbergen, "Information Retrieval", 1979, for F1; Matthews, 1975, and for more classes Gorodkin,
"Comparing two K-category assignments by a K-category correlation coefficient", 2004.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

import sbpjax as flow
from sbpjax.nn import functional as F

from .metric import ExactSum, Metric, Select, host, tensor, to_placement_of


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
    actual = to_placement_of(targets, scores)
    chosen = actual.clamp(min=0)[..., None].to(flow.int64)
    own = scores.gather(-1, chosen)  # (..., 1)
    classes = to_placement_of(np.arange(scores.shape[-1]), scores)
    ahead = (scores > own) | ((scores == own) & (classes < chosen))
    counts = host(actual).reshape(-1) >= 0
    return host(ahead.to(flow.int64).sum(-1)).reshape(-1)[counts]


class Accuracy(Metric):
    """The share of targets among the k most probable classes.

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


class Confusion(Metric):
    """Base of metrics of a confusion matrix.

    Args:
        classes: the number of classes.
        select: see `Metric`. Predictions are logits `(..., C)`, or classes in whole numbers `(...)`; negative targets
            do not count.
    """

    def __init__(self, classes: int = 2, select: Select | None = None) -> None:
        self.classes = classes
        super().__init__(select)

    def zero(self) -> dict[str, Any]:
        """Return an empty table: targets in rows, predictions in columns."""
        return {"table": np.zeros((self.classes, self.classes), np.int64)}

    def count(self, state: dict[str, Any], predictions: Any, targets: Any) -> None:
        """Count the predictions of a batch."""
        predicted, actual = host(predictions), host(targets).reshape(-1)
        predicted = (predicted.argmax(-1) if predicted.dtype.kind == "f" else predicted).reshape(-1)
        counted = actual >= 0
        cells = actual[counted].astype(np.int64) * self.classes + predicted[counted]
        state["table"] = state["table"] + np.bincount(cells, minlength=self.classes**2).reshape(self.classes, -1)


class F1(Confusion):
    """The harmonic mean of precision and recall of a class: 2 · correct / (predicted + actual), or 0 if both are 0.

    Args:
        positive: the positive class; 1 in GLUE.
        classes: the number of classes.
        select: see `Confusion`.

    Example:
        >>> metric = F1()
        >>> metric.update(np.array([1, 1, 0, 0]), (None, np.array([1, 0, 1, 0])))
        >>> metric.compute()
        {'f1': 0.5}
    """

    def __init__(self, positive: int = 1, classes: int = 2, select: Select | None = None) -> None:
        self.positive = positive
        super().__init__(classes, select)

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return ``f1``."""
        table, own = state["table"], self.positive
        both = int(table[own].sum() + table[:, own].sum())
        return {"f1": 2 * int(table[own, own]) / both if both else 0.0}


class Matthews(Confusion):
    """Matthews' correlation of predictions and targets: from -1 to 1, and 0 if either is constant.

    Args:
        classes: the number of classes.
        select: see `Confusion`.

    Example:
        >>> metric = Matthews()
        >>> metric.update(np.array([1, 1, 0, 0]), (None, np.array([1, 1, 0, 1])))
        >>> round(metric.compute()["matthews"], 4)
        0.5774
    """

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return ``matthews``."""
        there, predicted = (state["table"].sum(axis).tolist() for axis in (1, 0))
        right, count = int(np.trace(state["table"])), sum(there)
        spread = (count**2 - sum(n**2 for n in predicted)) * (
            count**2 - sum(n**2 for n in there)
        )  # whole numbers: exact
        together = right * count - sum(a * b for a, b in zip(predicted, there, strict=True))
        return {"matthews": together / math.sqrt(spread) if spread else 0.0}


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
                to_placement_of(targets, predictions).reshape(-1).clamp(min=-1),
                ignore_index=-1,
                reduction="none",
            )
        actual = host(targets).reshape(-1) >= 0
        state["nats"].add(host(losses).reshape(-1)[actual])
        state["tokens"] += int(actual.sum())

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return ``loss``, in nats per token, and ``perplexity``."""
        loss = state["nats"].mean(state["tokens"])
        return {"loss": loss, "perplexity": math.exp(loss) if loss < 700 else math.inf if loss > 0 else np.nan}


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
        predicted, actual = np.array(state["said"]), np.array(state["told"])
        if not len(predicted):
            return dict.fromkeys(("mse", "pearson", "spearman"), math.nan)
        order = np.lexsort((actual, predicted))
        predicted, actual = predicted[order], actual[order]
        return {
            "mse": math.fsum((predicted - actual) ** 2) / len(predicted),
            "pearson": _pearson(predicted, actual),
            "spearman": _pearson(rankdata(predicted), rankdata(actual)),
        }
