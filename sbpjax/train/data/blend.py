"""`Blend`: several datasets mixed by weights, evenly over a run, with random access.

Of `samples` in all, dataset d gives ``counts[d]``: its share rounded down; the rest goes to the largest remainders. Its
k-th sample belongs at the time ``(k + 1/2) / counts[d]`` of a run that lasts from 0 to 1, and all samples come in the
order of their times; of equal times, the first dataset's comes first. Of 8 samples with weights 5 : 3

    dataset 0, 5 samples     .1      .3      .5      .7      .9
    dataset 1, 3 samples        .167         .5        .833
    order                     0  1   0   0   1   0   1   0

The i-th sample is found without the others: up to a time t, a dataset has given ``counts[d] * t`` samples, wrong by at
most one half. So the i-th is among few candidates of each dataset, and those are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sbpjax.errors import DataError

from .numbered import Numbered


def apportion_samples(weights: Sequence[float], samples: int) -> list[int]:
    """Return how many samples each weight gets: whole numbers of sum `samples`, by largest remainder.

    Example:
        >>> apportion_samples([0.5, 0.3, 0.2], 7)
        [4, 2, 1]
    """
    whole = sum(map(Fraction, weights))
    shares = [Fraction(weight) * samples / whole for weight in weights]
    counts = [math.floor(share) for share in shares]
    by_remainder = sorted(range(len(counts)), key=lambda d: (counts[d] - shares[d], d))
    for d in by_remainder[: samples - sum(counts)]:
        counts[d] += 1
    return counts


class Blend(Numbered):
    """Samples of several datasets, mixed by weights.

    Args:
        datasets: `Numbered` datasets; one that is used up begins its next epoch.
        weights: one per dataset, more than 0; only their proportions count.
        samples: the number of samples of a run; the proportions are exact for that number.

    Attributes:
        counts: how many of the samples each dataset gives.

    Raises:
        DataError: weights and datasets do not fit each other.

    Example:
        >>> with TokenFileWriter("some", token_dtype(256)) as writer:
        ...     writer.add(list(b"abcdefghij"))
        >>> some = PackedTokens("some", length=3, shuffle=False)
        >>> both = Blend([some, some], weights=[5, 3], samples=8)
        >>> [both.source(i) for i in range(8)]
        [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (0, 3), (1, 2), (0, 4)]
    """

    def __init__(self, datasets: Sequence[Numbered], weights: Sequence[float], samples: int) -> None:
        super().__init__(samples)
        operation = "Blend(datasets, weights, samples)"
        if not datasets or len(datasets) != len(weights):
            seen = f"{len(datasets)} datasets, {len(weights)} weights"
            raise DataError(operation, seen, "every dataset has one weight", "Blend([a, b], [0.7, 0.3], samples)")
        if not all(math.isfinite(weight) and weight > 0 for weight in weights):
            rule = "weights are finite and more than 0"
            raise DataError(operation, f"weights {list(weights)}", rule, "leave out a dataset of weight 0")
        other = [type(each).__name__ for each in datasets if not isinstance(each, Numbered)]
        if other:
            rule = "a blend reads samples beyond a dataset's length, so each has sample(number)"
            raise DataError(operation, f"datasets of {other}", rule, "PackedTokens, or a subclass of Numbered")
        self.datasets = list(datasets)
        self.counts = apportion_samples(weights, samples)

    def source(self, number: int) -> tuple[int, int]:
        """Return the dataset of the sample of a number, and its number there."""
        turn, i = divmod(number, self.samples)
        n, parts = self.samples, len(self.counts)
        # The i-th sample's time is in [(2i + 2 - parts) / 2n, (2i + parts) / 2n]: see the head of this file.
        before, candidates = 0, []
        for d, count in enumerate(self.counts):
            first = max(0, -((n - count * (2 * i + 2 - parts)) // (2 * n)))
            end = min(count, (count * (2 * i + parts) + n) // (2 * n))
            before += first
            # Twice the times are equal or 1 / n² apart at least, so whole numbers of that unit are ordered as they are.
            candidates += [((2 * k + 1) * n * n // count, d, k) for k in range(first, end)]
        _, d, k = sorted(candidates)[i - before]
        return d, turn * self.counts[d] + k

    def sample(self, number: int) -> Any:
        """Return the sample of a number."""
        d, k = self.source(number)
        return self.datasets[d].sample(k)
