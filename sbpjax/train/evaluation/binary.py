"""`F1` and `Matthews` (correlation), from a confusion matrix.

Source: van Rijsbergen, "Information Retrieval", 1979, for F1; Matthews, 1975, and for more classes Gorodkin, "Comparing
two K-category assignments by a K-category correlation coefficient", 2004.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .metric import Metric, Select, host


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
        said, told = host(predictions), host(targets).reshape(-1)
        said = (said.argmax(-1) if said.dtype.kind == "f" else said).reshape(-1)
        counted = told >= 0
        cells = told[counted].astype(np.int64) * self.classes + said[counted]
        state["table"] = state["table"] + np.bincount(cells, minlength=self.classes**2).reshape(self.classes, -1)


class F1(Confusion):
    """The harmonic mean of precision and recall of a class: 2 · right / (answered + there), 0 where both are none.

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
    """Matthews' correlation of answers and targets: from -1 to 1, and 0 where one of them is always the same class.

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
        there, said = (state["table"].sum(axis).tolist() for axis in (1, 0))
        right, count = int(np.trace(state["table"])), sum(there)
        spread = (count**2 - sum(n**2 for n in said)) * (count**2 - sum(n**2 for n in there))  # whole numbers: exact
        together = right * count - sum(a * b for a, b in zip(said, there, strict=True))
        return {"matthews": together / math.sqrt(spread) if spread else 0.0}
