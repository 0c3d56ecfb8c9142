"""`Metrics` (several metrics as one), and `glue_metrics`, the metrics of GLUE's tasks.

Source: Wang et al., "GLUE", 2018, table 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sbpjax.errors import TrainError, nearest

from .metric import Metric
from .scores import F1, Accuracy, Matthews, Regression

_TASKS: dict[str, Callable[[], list[Metric]]] = {
    "cola": lambda: [Matthews()],
    "mrpc": lambda: [Accuracy(), F1()],
    "qqp": lambda: [Accuracy(), F1()],
    "stsb": lambda: [Regression()],
    **dict.fromkeys(("sst2", "mnli", "qnli", "rte", "wnli"), lambda: [Accuracy()]),
}


class Metrics:
    """Several metrics of the same batches.

    Args:
        *metrics: each with `reset`, `update` and `compute`.

    Example:
        >>> both = Metrics(Accuracy(), Perplexity())
        >>> both.update(flow.zeros(1, 2, 4), (None, flow.tensor([[0, 1]])))
        >>> list(both.compute())
        ['accuracy', 'loss', 'perplexity']
    """

    def __init__(self, *metrics: Any) -> None:
        self.metrics = metrics

    def reset(self) -> None:
        """Reset all metrics."""
        for metric in self.metrics:
            metric.reset()

    def update(self, outputs: Any, batch: Any) -> None:
        """Update each metric with a batch."""
        for metric in self.metrics:
            metric.update(outputs, batch)

    def compute(self) -> dict[str, float]:
        """Return the numbers of all.

        Raises:
            TrainError: two metrics have a result of the same name.
        """
        found: dict[str, float] = {}
        for metric in self.metrics:
            numbers = metric.compute()
            twice = sorted(set(found) & set(numbers))
            if twice:
                rule = "every number has a name of its own"
                raise TrainError("Metrics(...)", f"{twice[0]} twice", rule, "an Evaluation for each, with name=")
            found |= numbers
        return found


def glue_metrics(task: str) -> Metrics:
    """Return the metrics of a task of GLUE, by its name in `sbpjax.train.data.GLUE`.

    Raises:
        TrainError: there is no such task.

    Example:
        >>> [type(metric).__name__ for metric in glue_metrics("mrpc").metrics]
        ['Accuracy', 'F1']
    """
    if task not in _TASKS:
        fix = repr(nearest(task, _TASKS) or "sst2")
        raise TrainError(f"glue_metrics({task!r})", f"task {task!r}", f"tasks are {', '.join(_TASKS)}", fix)
    return Metrics(*_TASKS[task]())
