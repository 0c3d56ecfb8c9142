"""`AUC` (exact) and `HistogramAUC` (binned): area under the ROC curve.

The AUC is the share of (positive, negative) pairs in which the positive sample has the higher score. Of scores 0.9 and
0.4 for clicks and 0.4 and 0.1 for others three of four pairs are in order and one is a tie: (3 + 1/2) / 4 = 0.875. It
does not depend on the scale of the scores.

`AUC` keeps all scores and counts pairs in whole numbers, so that it is exact in any order, on any number of ranks.
`HistogramAUC` keeps two counts for each of its bins, however many samples there are; samples of one bin count as ties.

Source: Hanley and McNeil, "The meaning and use of the area under a receiver operating
characteristic (ROC) curve", 1982.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sbpjax.errors import TrainError

from .metric import Metric, Select, host


def _scores_and_labels(name: str, predictions: Any, targets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return scores of positives and of negatives."""
    scores, actual = host(predictions).reshape(-1), host(targets).reshape(-1)
    seen = f"{scores.size} scores, {actual.size} targets"
    if scores.size != actual.size:
        rule = "a binary classifier gives one score for each sample"
        raise TrainError(f"{name}.update(outputs, batch)", seen, rule, "logits of shape (B,)")
    if np.isnan(scores).any():
        rule = "scores are ordered, and NaN has no place in an order"
        seen = f"{int(np.isnan(scores).sum())} of {scores.size} scores are NaN"
        raise TrainError(f"{name}.update(outputs, batch)", seen, rule, "look for the step in which the loss became NaN")
    if not np.isin(actual, (0, 1)).all():
        wrong = actual[~np.isin(actual, (0, 1))][0]
        fix = "select=lambda outputs, batch: (outputs, batch['labels'] > 0)"
        raise TrainError(f"{name}.update(outputs, batch)", f"a target {wrong}", "targets are 0 or 1", fix)
    return scores[actual == 1], scores[actual == 0]


class AUC(Metric):
    """The share of pairs of a positive and a negative sample that are in order; ties count half. All scores are kept.

    Args:
        select: see `Metric`. Predictions are scores of any scale `(B,)`, targets 0 or 1.

    Example:
        >>> metric = AUC()
        >>> metric.update(np.array([0.9, 0.4, 0.4, 0.1]), (None, np.array([1, 1, 0, 0])))
        >>> metric.compute()
        {'auc': 0.875}
    """

    def zero(self) -> dict[str, Any]:
        """Return the state of no samples."""
        return {"positive": [], "negative": []}

    def count(self, state: dict[str, Any], predictions: Any, targets: Any) -> None:
        """Count the samples of a batch."""
        positive, negative = _scores_and_labels("AUC", predictions, targets)
        state["positive"] += positive.tolist()
        state["negative"] += negative.tolist()

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return ``auc``; NaN where one class is missing."""
        return {"auc": area(np.array(state["positive"]), np.array(state["negative"]))}


class HistogramAUC(Metric):
    """AUC from counts of scores in bins, for more samples than a process can hold.

    Args:
        bins: the number of bins; with 100,000 the error is about 1e-5 for spread scores.
        logits: scores are logits, and binned by their probabilities; False for scores between 0 and 1.
        select: see `AUC`.

    Example:
        >>> metric = HistogramAUC(bins=1000, logits=False)
        >>> metric.update(np.array([0.9, 0.4, 0.4, 0.1]), (None, np.array([1, 1, 0, 0])))
        >>> metric.compute()
        {'auc': 0.875}
    """

    def __init__(self, bins: int = 100_000, logits: bool = True, select: Select | None = None) -> None:
        if bins < 2:
            raise TrainError(f"HistogramAUC(bins={bins})", f"{bins} bins", "an order needs two bins", "bins=100_000")
        self.bins, self.logits = bins, logits
        super().__init__(select)

    def zero(self) -> dict[str, Any]:
        """Return empty bins."""
        return {"positive": np.zeros(self.bins, np.int64), "negative": np.zeros(self.bins, np.int64)}

    def count(self, state: dict[str, Any], predictions: Any, targets: Any) -> None:
        """Count the samples of a batch."""
        both = _scores_and_labels("HistogramAUC", predictions, targets)
        for name, scores in zip(("positive", "negative"), both, strict=True):
            wide = scores.astype(np.float64)
            if self.logits:
                wide = np.exp(-np.logaddexp(0, -wide))
            elif wide.size and (wide.min() < 0 or wide.max() > 1):
                seen, rule = f"scores from {wide.min()} to {wide.max()}", "logits=False takes scores between 0 and 1"
                raise TrainError("HistogramAUC.update(outputs, batch)", seen, rule, "logits=True")
            places = np.minimum((wide * self.bins).astype(np.int64), self.bins - 1)
            state[name] = state[name] + np.bincount(places, minlength=self.bins)

    def result(self, state: dict[str, Any]) -> dict[str, float]:
        """Return ``auc``; NaN where one class is missing."""
        positive, negative = state["positive"], state["negative"]
        below = np.cumsum(negative) - negative
        twice = int((positive.astype(object) * (2 * below + negative)).sum()) if positive.any() else 0
        return {"auc": _share(twice, int(positive.sum()), int(negative.sum()))}


def area(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return the share of pairs in order, of the scores of positives and of negatives."""
    ordered = np.sort(negative)
    below, upto = (np.searchsorted(ordered, positive, side) for side in ("left", "right"))
    return _share(int(below.sum()) + int(upto.sum()), positive.size, negative.size)


def _share(twice: int, positives: int, negatives: int) -> float:
    pairs = positives * negatives
    return twice / (2 * pairs) if pairs else float("nan")
