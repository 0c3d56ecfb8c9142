"""The map from keys to rows against a dict."""

import numpy as np
import pytest

from sbpjax.one_embedding.key_map import KeyMap, hash_keys


@pytest.mark.parametrize("room", [0, 100_000])
def test_it_is_a_dict(room):
    rng, known, keys = np.random.default_rng(0), {}, KeyMap(room)
    for _ in range(20):
        tables, ids = rng.integers(0, 3, 3000), rng.integers(-(2**63), 2**63 - 1, 3000) >> rng.integers(0, 60)
        pairs = list(zip(tables.tolist(), ids.tolist(), strict=True))
        assert keys.find(tables, ids).tolist() == [known.get(pair, -1) for pair in pairs]
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        rows = np.arange(len(known), len(known) + len(new))
        keys.insert(*np.array(new).reshape(-1, 2).T, rows)
        known.update(zip(new, rows.tolist(), strict=True))
        assert len(keys) == len(known)
        assert keys.find(tables, ids).tolist() == [known[pair] for pair in pairs]
    keys.clear()
    assert len(keys) == 0 and (keys.find(tables, ids) == -1).all()


def test_extreme_keys_and_equal_keys_of_other_tables():
    keys = KeyMap()
    ids = np.array([0, -1, 2**63 - 1, -(2**63), 0])
    tables = np.array([0, 0, 0, 0, 2**22])
    keys.insert(tables, ids, np.array([5, 2**40 - 1, 0, 7, 9]))
    assert keys.find(tables, ids).tolist() == [5, 2**40 - 1, 0, 7, 9]
    assert keys.find(np.ones(2, np.int64), ids[:2]).tolist() == [-1, -1]


def test_hashes_are_spread():
    h = hash_keys(np.zeros(1 << 16, np.int64), np.arange(1 << 16) << 40)
    for shift in (0, 33, 48):
        counts = np.bincount((h >> np.uint64(shift)).astype(np.int64) & 255, minlength=256)
        assert counts.min() > 180 and counts.max() < 340
    assert len(np.unique(hash_keys(np.arange(1000), np.zeros(1000, np.int64)))) == 1000


def test_a_full_map_takes_few_rounds():
    keys, count = KeyMap(), 200_000
    keys.insert(np.zeros(count, np.int64), np.arange(count) * 7919, np.arange(count))
    assert keys.nbytes < 64 * count
    assert (keys.find(np.zeros(count, np.int64), np.arange(count) * 7919) == np.arange(count)).all()
