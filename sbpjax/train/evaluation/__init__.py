"""Evaluation metrics, exact for any number of ranks: each sample counts once.

    evaluation = Evaluation(reviews, Accuracy(k=(1, 5)), every=500)           # as a part of a run
    metric = glue_metrics("mrpc")                                             # or by itself: accuracy and F1
    for batch in loader:
        metric.update(model(batch["input_ids"]), batch)
    metric.compute()                                                          # {"accuracy": 0.84, "f1": 0.89}

* `metric.py`: the base: selection of predictions and targets, merging of ranks, and sums without rounding.
* `scores.py`, `auc.py`, `bleu.py`: the metrics.
* `glue.py`: several as one, and those of GLUE's tasks.
"""

from .auc import AUC as AUC
from .auc import HistogramAUC as HistogramAUC
from .bleu import Bleu as Bleu
from .glue import Metrics as Metrics
from .glue import glue_metrics as glue_metrics
from .metric import ExactSum as ExactSum
from .metric import Metric as Metric
from .scores import F1 as F1
from .scores import Accuracy as Accuracy
from .scores import Matthews as Matthews
from .scores import Perplexity as Perplexity
from .scores import Regression as Regression
