"""F1 and Matthews' correlation, by other formulas and by scikit-learn."""

import numpy as np
import pytest

from sbpjax.train.evaluation import F1, Matthews

sklearn = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")


def computed(metric, predicted, actual):
    metric.update(predicted, (None, actual))
    return next(iter(metric.compute().values()))


@pytest.mark.parametrize("seed", range(5))
def test_as_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    predicted, actual = rng.integers(0, 2, 50), rng.integers(0, 2, 50)
    assert computed(F1(), predicted, actual) == pytest.approx(sklearn.f1_score(actual, predicted), rel=1e-12)
    assert computed(F1(positive=0), predicted, actual) == pytest.approx(
        sklearn.f1_score(actual, predicted, pos_label=0), rel=1e-12
    )
    for classes in (2, 5):
        logits, actual = rng.normal(size=(60, classes)), rng.integers(0, classes, 60)
        wanted = sklearn.matthews_corrcoef(actual, logits.argmax(-1))
        assert computed(Matthews(classes), logits, actual) == pytest.approx(wanted, rel=1e-12)


def test_by_definition():
    predicted, actual = np.array([1, 1, 1, 0, 0, 0, 0, 1]), np.array([1, 1, 0, 0, 0, 1, 1, 1])
    precision, recall = 3 / 4, 3 / 5
    assert computed(F1(), predicted, actual) == pytest.approx(2 * precision * recall / (precision + recall))
    assert computed(Matthews(), predicted, actual) == pytest.approx(np.corrcoef(predicted, actual)[0, 1])


def test_classes_that_never_come():
    zeros, ones = np.zeros(4, int), np.ones(4, int)
    assert computed(F1(), zeros, zeros) == 0.0 and computed(F1(), ones, ones) == 1.0
    assert computed(Matthews(), zeros, ones) == 0.0 and computed(Matthews(), ones, np.array([0, 1, 0, 1])) == 0.0


def test_negative_targets_do_not_count():
    assert computed(F1(), np.array([1, 1, 0]), np.array([1, -100, -100])) == 1.0
    assert computed(Matthews(), np.array([1, 0, 1]), np.array([1, 0, -100])) == 1.0
