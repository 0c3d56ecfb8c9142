"""Row ids of categorical features from 64-bit keys: by hashing, or by a table of frequent keys.

    ids = hashed(keys, sizes)                              # (N, F) uint64 → (N, F) int64, below each feature's size
    frequent = FrequentKeys.from_blocks(blocks_of_keys, least=10)   # row 0 of a feature is for all rarer keys
    ids = frequent.ids(keys)

`crossed` makes keys of pairs of features, as linear models need. Keys are mixed by SplitMix64's finaliser, so that
neighbouring keys are far apart; the same key of two features is two keys.

Source: Steele et al., Fast Splittable Pseudorandom Number Generators, OOPSLA 2014, for the mixing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sbpjax.errors import DataError

_STEP = np.uint64(0x9E3779B97F4A7C15)


def mix_bits(keys: np.ndarray, salt: int = 0) -> np.ndarray:
    """Return 64-bit numbers as others that look random; one to one.

    Args:
        keys: integers.
        salt: a seed of the mixing.

    Example:
        >>> hex(mix_bits(np.array([1], np.uint64))[0])
        '0x910a2dec89025cc1'
    """
    with np.errstate(over="ignore"):
        z = keys.astype(np.uint64) + np.uint64(salt + 1) * _STEP
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def hashed(keys: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Return a row for each key: `(N, F)` integers to `(N, F)` int64, of feature f below ``sizes[f]``.

    Raises:
        DataError: there are not as many sizes as features.
    """
    _check(keys, len(sizes), "hashed(keys, sizes)")
    columns = [mix_bits(keys[:, f], f) % np.uint64(size) for f, size in enumerate(sizes)]
    return np.stack(columns, 1).astype(np.int64)


def crossed(keys: np.ndarray, pairs: Iterable[tuple[int, int]]) -> np.ndarray:
    """Return keys of pairs of features: `(N, F)` to `(N, number of pairs)` uint64.

    Example:
        >>> crossed(np.array([[1, 2], [1, 2]]), [(0, 1)]).shape
        (2, 1)
    """
    return np.stack([mix_bits(keys[:, a].astype(np.uint64) ^ mix_bits(keys[:, b], 1), 2) for a, b in pairs], 1)


class FrequentKeys:
    """Frequent keys of each feature, each with a row; row 0 is for all others.

    Args:
        known: of each feature its keys, ascending.

    Attributes:
        sizes: the number of rows of each feature, row 0 included.
    """

    def __init__(self, known: Sequence[np.ndarray]) -> None:
        self.known = [np.asarray(k, np.uint64) for k in known]
        self.sizes = tuple(len(k) + 1 for k in self.known)

    @classmethod
    def from_blocks(cls, blocks: Iterable[np.ndarray], least: int = 10) -> FrequentKeys:
        """Return the frequent keys of data that is read once, block by block.

        Args:
            blocks: `(N, F)` integers each.
            least: the minimum count of a frequent key.

        Raises:
            DataError: there is no block, or `least` is below 1.
        """
        if least < 1:
            raise DataError(
                "FrequentKeys.from_blocks(...)", f"least={least}", "a key that has a row occurs once", "least=10"
            )
        counts: list[tuple[np.ndarray, np.ndarray]] = []
        for block in blocks:
            counts = counts or [(np.zeros(0, np.uint64), np.zeros(0, np.int64))] * block.shape[1]
            _check(block, len(counts), "FrequentKeys.from_blocks(blocks)")
            for f, (keys, times) in enumerate(counts):
                more, often = np.unique(block[:, f].astype(np.uint64), return_counts=True)
                both, place = np.unique(np.concatenate([keys, more]), return_inverse=True)
                counts[f] = both, np.bincount(place, np.concatenate([times, often])).astype(np.int64)
        if not counts:
            rule = "thresholds are counted in data"
            raise DataError("FrequentKeys.from_blocks(blocks)", "no block", rule, "FrequentKeys.from_blocks([keys])")
        return cls([keys[times >= least] for keys, times in counts])

    def ids(self, keys: np.ndarray) -> np.ndarray:
        """Return the row of each key: `(N, F)` integers to `(N, F)` int64."""
        _check(keys, len(self.known), "FrequentKeys.ids(keys)")
        columns = []
        for f, known in enumerate(self.known):
            own = keys[:, f].astype(np.uint64)
            place = np.searchsorted(known, own)
            there = place < len(known)
            there[there] = known[place[there]] == own[there]
            columns.append(np.where(there, place + 1, 0))
        return np.stack(columns, 1).astype(np.int64)


def _check(keys: np.ndarray, features: int, operation: str) -> None:
    if keys.ndim != 2 or keys.shape[1] != features or keys.dtype.kind not in "iu":
        seen = f"keys {keys.dtype}{list(keys.shape)}"
        rule = f"keys are integers (N, {features}), a column for each feature"
        raise DataError(operation, seen, rule, f"keys.reshape(-1, {features})")
