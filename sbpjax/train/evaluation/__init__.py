"""Evaluation metrics, exact for any number of ranks: each sample counts once.

    evaluation = Evaluation(reviews, Accuracy(k=(1, 5)), every=500)           # as a part of a run
    metric = glue_metrics("mrpc")                                             # or by itself: accuracy and F1
    for batch in loader:
        metric.update(model(batch["input_ids"]), batch)
    metric.compute()                                                          # {"accuracy": 0.84, "f1": 0.89}

* `metric.py`: the base: selection of predictions and targets, and merging of ranks.
* `exact_sum.py`: sums without rounding, so that they do not depend on an order.
* `accuracy.py`, `auc.py`, `binary.py` (F1, Matthews), `perplexity.py`, `regression.py`, `bleu.py`: the metrics.
* `glue.py`: several as one, and those of GLUE's tasks.
"""

from .accuracy import Accuracy as Accuracy
from .auc import AUC as AUC
from .auc import HistogramAUC as HistogramAUC
from .binary import F1 as F1
from .binary import Matthews as Matthews
from .bleu import Bleu as Bleu
from .exact_sum import ExactSum as ExactSum
from .glue import Metrics as Metrics
from .glue import glue_metrics as glue_metrics
from .metric import Metric as Metric
from .perplexity import Perplexity as Perplexity
from .regression import Regression as Regression
