"""Accuracy among the k likeliest, against a sort of the classes."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.train.evaluation import Accuracy
from sbpjax.train.evaluation.scores import places_of_targets


@pytest.mark.parametrize("shape", [(40, 6), (8, 5, 6)])
def test_against_a_sort(shape):
    rng = np.random.default_rng(0)
    logits = rng.integers(0, 4, shape).astype(np.float32)  # with equal ones
    targets = rng.integers(-1, 6, shape[:-1])
    order = np.argsort(-logits, axis=-1, kind="stable")
    counted = targets >= 0
    for k in (1, 2, 5, 6):
        right = (order[..., :k] == targets[..., None]).any(-1)[counted]
        metric = Accuracy(k)
        metric.update(logits, (None, targets))
        name = "accuracy" if k == 1 else f"accuracy@{k}"
        assert metric.compute() == {name: right.sum() / counted.sum()}


@pytest.mark.parametrize("sbp", ["split0", "split1", "broadcast"])
def test_any_layout(sbp):
    rng = np.random.default_rng(1)
    logits, targets = rng.normal(size=(8, 6)).astype(np.float32), rng.integers(-1, 6, 8)
    place = flow.placement("cpu", [0, 1])
    layout = {"split0": flow.sbp.split(0), "split1": flow.sbp.split(1), "broadcast": flow.sbp.broadcast}[sbp]
    spread = flow.tensor(logits, placement=place, sbp=layout)
    actual = flow.tensor(targets, placement=place, sbp=flow.sbp.broadcast)
    assert places_of_targets(spread, actual).tolist() == places_of_targets(logits, targets).tolist()
    elsewhere = flow.tensor(targets, placement=flow.placement("cpu", [2, 3]), sbp=flow.sbp.split(0))
    assert places_of_targets(spread, elsewhere).tolist() == places_of_targets(logits, targets).tolist()  # a pipeline's
    assert places_of_targets(spread, targets).tolist() == places_of_targets(logits, targets).tolist()


def test_nothing_is_no_number():
    assert np.isnan(Accuracy().compute()["accuracy"])
