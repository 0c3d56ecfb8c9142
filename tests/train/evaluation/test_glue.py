"""Several metrics as one, and those of GLUE's tasks."""

import numpy as np
import pytest

from sbpjax.errors import TrainError
from sbpjax.train.data import GLUE
from sbpjax.train.evaluation import Accuracy, Metrics, glue_metrics

NAMES = {
    "cola": ["matthews"],
    "mrpc": ["accuracy", "f1"],
    "qqp": ["accuracy", "f1"],
    "stsb": ["mse", "pearson", "spearman"],
}


@pytest.mark.parametrize("task", GLUE)
def test_every_task(task):
    metrics = glue_metrics(task)
    classes = len(GLUE[task].classes or [0])
    labels = np.arange(6) % classes if classes > 1 else np.arange(6.0)
    logits = np.eye(classes)[labels] if classes > 1 else labels[:, None]
    metrics.update(logits, {"labels": labels})
    found = metrics.compute()
    assert list(found) == NAMES.get(task, ["accuracy"])
    assert all(value == (0 if name == "mse" else pytest.approx(1)) for name, value in found.items())
    metrics.reset()
    metrics.update(logits, {"labels": labels})
    assert metrics.compute() == found


def test_refused():
    with pytest.raises(TrainError, match="task 'mrcp'\n.*\n  fix:  'mrpc'"):
        glue_metrics("mrcp")
    twice = Metrics(Accuracy(), Accuracy())
    twice.update(np.eye(2), (None, np.arange(2)))
    with pytest.raises(TrainError, match="accuracy twice"):
        twice.compute()
