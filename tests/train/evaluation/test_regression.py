"""Errors and correlations, against SciPy."""

import math

import numpy as np
import pytest
import scipy.stats

from sbpjax.train.evaluation import Regression


def computed(predicted, actual):
    metric = Regression()
    metric.update(predicted, (None, actual))
    return metric.compute()


@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_as_scipy(shift):
    rng = np.random.default_rng(0)
    predicted = rng.normal(size=200).round(1) + shift  # with equal ones
    actual = (predicted - shift) * 2 + rng.normal(size=200).round(1)
    found = computed(predicted[:, None], actual)
    assert found["mse"] == pytest.approx(np.mean((predicted - actual) ** 2), rel=1e-12)
    assert found["pearson"] == pytest.approx(
        scipy.stats.pearsonr(predicted - shift, actual)[0], rel=1e-7 if shift else 1e-12
    )
    assert found["spearman"] == pytest.approx(scipy.stats.spearmanr(predicted, actual)[0], rel=1e-12)


def test_constants_and_nothing():
    found = computed(np.ones(4), np.arange(4.0))
    assert found["mse"] == 1.5 and math.isnan(found["pearson"]) and math.isnan(found["spearman"])
    assert all(map(math.isnan, Regression().compute().values()))
    assert computed(np.arange(5.0), 3 * np.arange(5.0))["pearson"] == 1.0
