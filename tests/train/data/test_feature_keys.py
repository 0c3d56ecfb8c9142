"""Rows for keys: hashed evenly and one to one before that, by thresholds over blocks, crossed; and misuse."""

import numpy as np
import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import FrequentKeys, crossed, hashed
from sbpjax.train.data.feature_keys import mix_bits

KEYS = np.random.default_rng(0).zipf(1.5, (5000, 3)).astype(np.uint64)


def test_mixing_is_one_to_one_and_known():
    # The second number that SplitMix64 gives for seed 0 is the finaliser of two steps.
    assert int(mix_bits(np.zeros(1, np.uint64))[0]) == 0xE220A8397B1DCDAF
    assert int(mix_bits(np.zeros(1, np.uint64), 1)[0]) == 0x6E789E6AA1B965F4
    assert len(set(mix_bits(np.arange(100_000)).tolist())) == 100_000


def test_hashed_rows_are_even_and_below_the_sizes():
    ids = hashed(np.arange(30_000).reshape(10_000, 3), (100, 7, 1))
    assert ids.dtype == np.int64 and (ids < [100, 7, 1]).all() and (ids >= 0).all()
    counts = np.bincount(ids[:, 0], minlength=100)
    assert 60 < counts.min() and counts.max() < 145
    same = hashed(np.full((1, 3), 5), (1000, 1000, 1000))[0]
    assert len(set(same.tolist())) == 3  # one key of three features is three keys
    negative = hashed(np.full((1, 1), -5), (1000,))
    assert 0 <= negative.item() < 1000


def test_keys_that_are_frequent_have_rows_and_others_share_one():
    frequent = FrequentKeys.from_blocks(np.array_split(KEYS, 4), least=10)
    ids = frequent.ids(KEYS)
    for f in range(3):
        keys, counts = np.unique(KEYS[:, f], return_counts=True)
        assert frequent.known[f].tolist() == keys[counts >= 10].tolist()
        assert frequent.sizes[f] == (counts >= 10).sum() + 1
        rare = np.isin(KEYS[:, f], keys[counts < 10])
        assert (ids[rare, f] == 0).all() and (frequent.known[f][ids[~rare, f] - 1] == KEYS[~rare, f]).all()
    assert (frequent.ids(np.full((2, 3), 1 << 60)) == 0).all()


def test_crosses_tell_pairs_apart():
    keys = np.array([[1, 2], [2, 1], [1, 3], [1, 2]])
    found = crossed(keys, [(0, 1), (1, 0)])
    assert found[0, 0] == found[3, 0] and len(set(found[:3, 0].tolist())) == 3
    assert (found[0, 1], found[1, 1]) == (found[1, 0], found[0, 0])  # the pair, the other way round


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda: hashed(KEYS, (10, 10)), r"keys are integers \(N, 2\)"),
        (lambda: hashed(KEYS.astype(float), (10, 10, 10)), "keys float64"),
        (lambda: FrequentKeys.from_blocks([]), "no block"),
        (lambda: FrequentKeys.from_blocks([KEYS], least=0), "least=0"),
        (lambda: FrequentKeys.from_blocks([KEYS]).ids(KEYS[:, :2]), r"keys are integers \(N, 3\)"),
    ],
)
def test_misuse(run, expected):
    with pytest.raises(DataError, match=expected):
        run()
