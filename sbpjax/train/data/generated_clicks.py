"""Synthetic click data like Criteo's, with a known best AUC.

Each feature's keys follow Zipf's law. The probability of a click depends on an effect of each key, on products of short
vectors of two features' keys, and on the counts; the label is drawn with it. No model can order samples better than
these probabilities do, so their own AUC on the same labels is the best there is:

    train, test = generated_clicks(200_000, seed=1), generated_clicks(50_000, seed=2)
    test.best_auc                                          # 0.81; a model that reaches 0.995 of it has learned it all
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sbpjax.errors import DataError

SIZES = (1000, 500, 200, 100, 100, 50, 50, 20, 20, 10, 10, 5, 4)
_VECTOR = 2


class GeneratedClicks(NamedTuple):
    """Generated samples with their true logits.

    Attributes:
        labels: `(S,)` int64, 0 or 1.
        dense: `(S, N)` float32, logarithms of counts.
        ids: `(S, F)` int64, of feature f below its size.
        scores: `(S,)` logits of the probabilities that the labels were drawn with.
    """

    labels: np.ndarray
    dense: np.ndarray
    ids: np.ndarray
    scores: np.ndarray

    @property
    def best_auc(self) -> float:
        """The AUC of the true probabilities on these labels."""
        order = np.argsort(self.scores, kind="stable")
        ranks = np.empty(len(order))
        ranks[order] = np.arange(1, len(order) + 1)
        positives = int(self.labels.sum())
        negatives = len(self.labels) - positives
        return float((ranks[self.labels == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def generated_clicks(
    samples: int,
    sizes: Sequence[int] = SIZES,
    dense: int = 13,
    pairs: int = 4,
    strength: float = 0.45,
    world: int = 0,
    seed: int = 0,
) -> GeneratedClicks:
    """Return samples.

    Args:
        samples: the number of samples.
        sizes: the number of keys of each feature.
        dense: the number of counts.
        pairs: the number of pairs of features, from the last two on, with a joint effect.
        strength: of all effects; a larger one makes clicks easier to predict.
        world: the seed of the effects: samples of one world have the same best model.
        seed: of the samples.

    Raises:
        DataError: there are no samples, or more pairs than features allow.

    Example:
        >>> found = generated_clicks(1000)
        >>> found.ids.shape, found.dense.shape, 0.7 < found.best_auc < 0.95
        ((1000, 13), (1000, 13), True)
    """
    if samples < 2 or 2 * pairs > len(sizes):
        rule = f"there are two samples at least, and two features for each of {pairs} pairs"
        raise DataError("generated_clicks(...)", f"samples={samples}, {len(sizes)} features", rule, "pairs=0")
    effects, chance = np.random.default_rng((world, 0)), np.random.default_rng((seed, 1))
    single = [effects.standard_normal(n) * strength for n in sizes]
    vectors = [effects.standard_normal((n, _VECTOR)) for n in sizes]
    slopes = effects.standard_normal(dense) * strength / 2
    ids = np.stack([_zipf(chance, n, samples) for n in sizes], 1)
    counts = np.floor(chance.exponential(3.0, (samples, dense)))
    numbers = np.log1p(counts).astype(np.float32)
    scores = (numbers - np.log1p(2.0)) @ slopes - 1.0
    for f, effect in enumerate(single):
        scores = scores + effect[ids[:, f]]
    for a, b in ((-2 * k - 1, -2 * k - 2) for k in range(pairs)):
        scores = scores + strength * (vectors[a][ids[:, a]] * vectors[b][ids[:, b]]).sum(1)
    labels = (chance.random(samples) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    return GeneratedClicks(labels, numbers, ids, scores)


def _zipf(chance: np.random.Generator, size: int, samples: int) -> np.ndarray:
    """Return numbers below a size, the n-th as often as 1 / (n + 1)."""
    weights = 1 / np.arange(1, size + 1)
    return chance.choice(size, samples, p=weights / weights.sum())
