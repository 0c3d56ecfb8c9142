"""Perplexity is of all tokens: of logits in any layout, of losses, and exact."""

import math

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.train.evaluation import Perplexity


def test_of_logits_and_of_losses():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(4, 6, 9)).astype(np.float32)
    targets = np.where(rng.random((4, 6)) < 0.3, -100, rng.integers(0, 9, (4, 6)))
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    nats = np.log(np.exp(shifted).sum(-1)) - np.take_along_axis(shifted, targets.clip(0)[..., None], -1)[..., 0]
    wanted = nats[targets >= 0].mean()
    place = flow.placement("cpu", [0, 1])
    for sbp in (None, flow.sbp.split(0), flow.sbp.split(2)):
        options = {} if sbp is None else {"placement": place, "sbp": sbp}
        others = {} if sbp is None else {"placement": place, "sbp": flow.sbp.broadcast}
        metric = Perplexity()
        metric.update(flow.tensor(logits, **options), (None, flow.tensor(targets, **others)))
        found = metric.compute()
        assert found["loss"] == pytest.approx(wanted, rel=1e-6)
        assert found["perplexity"] == pytest.approx(math.exp(wanted), rel=1e-6)
    metric = Perplexity()
    metric.update(nats, (None, targets))
    assert metric.compute()["loss"] == pytest.approx(wanted, rel=1e-15)


def test_it_is_no_mean_of_batches():
    metric = Perplexity()
    metric.update(np.array([[1.0, 1.0, 1.0]]), (None, np.array([[0, 0, 0]])))
    metric.update(np.array([[9.0, 5.0, 9.0]]), (None, np.array([[-100, 0, -100]])))
    assert metric.compute() == {"loss": 2.0, "perplexity": math.exp(2)}


def test_far_and_nothing():
    metric = Perplexity()
    assert all(map(math.isnan, metric.compute().values()))
    metric.update(np.array([[1e4]]), (None, np.array([[0]])))
    assert metric.compute() == {"loss": 1e4, "perplexity": math.inf}
    metric.update(np.array([[math.nan]]), (None, np.array([[0]])))
    assert all(map(math.isnan, metric.compute().values()))
