"""Metrics with random batches, dealt to ranks in any way; and what every rank of `test_metric.py` does."""

from __future__ import annotations

import json
import sys

import numpy as np

from sbpjax.train.evaluation import F1, Accuracy, Bleu, Matthews, Perplexity, Regression

METRICS = {
    "accuracy": lambda: Accuracy(k=(1, 3)),
    "f1": F1,
    "matthews": lambda: Matthews(4),
    "perplexity": Perplexity,
    "regression": Regression,
    "bleu": Bleu,
}
SAMPLES = 37


def samples(kind: str) -> tuple:
    """Return predictions and targets of `SAMPLES` samples."""
    rng = np.random.default_rng(5)
    if kind == "bleu":
        texts = [" ".join(rng.choice(list("abcd"), rng.integers(4, 9))) for _ in range(2 * SAMPLES)]
        return texts[:SAMPLES], texts[SAMPLES:]
    if kind == "regression":
        predicted = rng.normal(size=SAMPLES).round(1) * 1e3
        return predicted, predicted + rng.normal(size=SAMPLES) * 300
    if kind == "perplexity":
        targets = rng.integers(0, 7, (SAMPLES, 5))
        return rng.normal(size=(SAMPLES, 5)) ** 2, np.where(rng.random((SAMPLES, 5)) < 0.2, -100, targets)
    classes = 2 if kind == "f1" else 4
    return rng.normal(size=(SAMPLES, classes)), rng.integers(0, classes, SAMPLES)


def taken(kind: str, order, batch: int):
    """Return a metric that saw the samples of an order, in batches."""
    metric, (predicted, actual) = METRICS[kind](), samples(kind)
    for begin in range(0, len(order), batch):
        rows = order[begin : begin + batch]
        metric.update(
            [predicted[i] for i in rows] if kind == "bleu" else predicted[rows],
            (None, [actual[i] for i in rows] if kind == "bleu" else actual[rows]),
        )
    return metric


def main(file: str) -> None:
    """Compute each metric of this rank's samples and the other's; every rank writes what it found."""
    import sbpjax as flow

    rank, size = flow.env.get_rank(), flow.env.get_world_size()
    found = {}
    for kind in METRICS:
        metric = taken(kind, np.arange(SAMPLES)[rank::size], 5)
        found[kind] = metric.compute()
        assert metric.compute() == found[kind]
    with open(f"{file}.{rank}", "w") as out:
        json.dump(found, out)
    # Global tensors are all samples on every process.
    predicted, actual = samples("accuracy")
    place, layout = flow.placement("cpu", list(range(2 * size))), flow.sbp.split(0)
    whole = METRICS["accuracy"]()
    for begin in range(0, SAMPLES - 1, 4):
        parts = [flow.tensor(x[begin : begin + 4], placement=place, sbp=layout) for x in (predicted, actual)]
        whole.update(parts[0], parts)
    whole_alone = taken("accuracy", np.arange(SAMPLES - 1), 4)
    assert whole.compute() == whole_alone.result(whole_alone._state)
    print("rank passed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
