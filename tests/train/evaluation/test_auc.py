"""AUC against scikit-learn's, ties and order, bins, states of several ranks, and misuse."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import sbpjax as flow
from sbpjax.errors import TrainError
from sbpjax.train.evaluation import AUC, HistogramAUC
from sbpjax.train.evaluation.metric import _decode_state, _encode_state, _merge

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 5000)
SCORES = (RNG.standard_normal(5000) + 0.7 * LABELS).round(2)  # with ties


def of(metric, parts):
    for scores, labels in parts:
        metric.update(scores, (None, labels))
    return metric.compute()["auc"]


@pytest.mark.parametrize("make", [AUC, HistogramAUC])
def test_values_are_scikit_learns(make):
    expected = roc_auc_score(LABELS, SCORES)
    found = of(make(), [(SCORES, LABELS)])
    assert abs(found - expected) < (1e-14 if make is AUC else 2e-5)
    probabilities = 1 / (1 + np.exp(-SCORES))
    assert abs(of(HistogramAUC(logits=False), [(probabilities, LABELS)]) - expected) < 2e-5


@pytest.mark.parametrize("make", [AUC, HistogramAUC])
def test_the_same_bits_for_any_order_and_any_dealing(make):
    whole = of(make(), [(SCORES, LABELS)])
    order = RNG.permutation(5000)
    assert of(make(), [(SCORES[i], LABELS[i]) for i in np.array_split(order, 7)]) == whole
    state, metric = make().zero(), make()
    for i in np.array_split(order, 4):  # as `compute` puts ranks together
        part = make()
        part.update(SCORES[i], (None, LABELS[i]))
        _merge(state, _decode_state(_encode_state(part._state), metric.zero()))
    assert metric.result(state)["auc"] == whole


def test_global_tensors_count_once():
    line = flow.placement("cpu", [0, 1, 2, 3])
    scores, labels = (
        flow.tensor(x[:400]).to_global(line, flow.sbp.split(0)) for x in (SCORES.astype(np.float32), LABELS)
    )
    metric = AUC()
    metric.update(scores, {"labels": labels})
    assert metric.compute()["auc"] == pytest.approx(roc_auc_score(LABELS[:400], SCORES[:400].astype(np.float32)))


def test_one_class_alone_has_no_area_and_extremes_have_bins():
    assert np.isnan(of(AUC(), [(SCORES[:3], np.ones(3))])) and np.isnan(of(HistogramAUC(), [(SCORES[:3], np.zeros(3))]))
    assert of(HistogramAUC(), [(np.array([1e9, -1e9, np.inf]), np.array([1, 0, 1]))]) == 1.0


@pytest.mark.parametrize(
    ("metric", "scores", "labels", "predicted"),
    [
        (AUC, [0.1, 0.2], [1, 0, 1], "one score for each sample"),
        (AUC, [np.nan, 0.2], [1, 0], "1 of 2 scores are NaN"),
        (HistogramAUC, [0.1, 0.2], [1, 2], "targets are 0 or 1"),
        (lambda: HistogramAUC(logits=False), [1.5, 0.2], [1, 0], "between 0 and 1"),
        (lambda: HistogramAUC(bins=1), [], [], "an order needs two bins"),
    ],
)
def test_misuse(metric, scores, labels, predicted):
    with pytest.raises(TrainError, match=predicted):
        metric().update(np.array(scores), (None, np.array(labels)))
