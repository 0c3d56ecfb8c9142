"""Generated clicks: the best AUC is that of the true scores, one world for all seeds, Zipf's law; and misuse."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from sbpjax.errors import DataError
from sbpjax.train.data import generated_clicks
from sbpjax.train.data.generated_clicks import SIZES


def test_the_best_auc_is_that_of_the_true_scores():
    found = generated_clicks(20_000, seed=1)
    assert found.best_auc == pytest.approx(roc_auc_score(found.labels, found.scores), abs=1e-12)
    assert 0.75 < found.best_auc < 0.9 and 0.1 < found.labels.mean() < 0.5
    # Labels are drawn with the probabilities: in every tenth of the samples there are as many clicks as they say.
    probabilities = 1 / (1 + np.exp(-found.scores))
    for part in np.array_split(np.argsort(found.scores), 10):
        assert abs(found.labels[part].mean() - probabilities[part].mean()) < 5 * 0.5 / np.sqrt(len(part))


def test_samples_are_a_function_of_the_seed_and_effects_of_the_world():
    one, same, other = (generated_clicks(500, seed=s) for s in (1, 1, 2))
    assert (one.ids == same.ids).all() and (one.labels == same.labels).all() and (one.ids != other.ids).any()
    elsewhere = generated_clicks(500, seed=1, world=7)
    assert (one.ids == elsewhere.ids).all() and (one.scores != elsewhere.scores).all()


def test_keys_are_below_their_sizes_and_come_up_as_in_zipfs_law():
    found = generated_clicks(50_000)
    assert found.ids.shape[1] == len(SIZES) and (found.ids.max(0) < SIZES).all()
    counts = np.bincount(found.ids[:, 0])
    assert counts[0] / counts[9] == pytest.approx(10, rel=0.2)


def test_misuse():
    with pytest.raises(DataError, match="two features for each of 4 pairs"):
        generated_clicks(100, sizes=(10, 10))
    with pytest.raises(DataError, match="samples=1"):
        generated_clicks(1)
