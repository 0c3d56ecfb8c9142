"""First values: their distributions, and that they depend on (seed, table, key) alone."""

import numpy as np
import pytest
from scipy import stats

from sbpjax import one_embedding as oe
from sbpjax.errors import TableError
from sbpjax.one_embedding.initializers import RowInitializer

KEYS = np.arange(20_000) * 2**40 - 2**50
ZERO = np.zeros(len(KEYS), np.int64)


@pytest.mark.parametrize(
    ("made", "law"),
    [
        (oe.make_uniform_initializer(-1.0, 3.0), stats.uniform(-1, 4)),
        (oe.make_normal_initializer(2.0, 0.5), stats.norm(2, 0.5)),
        (oe.make_trunc_normal_initializer(0.1, 1.0, -0.5, 2.0), stats.truncnorm(-0.6, 1.9, 0.1, 1.0)),
    ],
)
def test_distributions(made, law):
    rows = RowInitializer([oe.make_table_options(made)], [4], None, 0).rows(ZERO, KEYS)
    assert rows.dtype == np.float32
    assert stats.kstest(rows.ravel(), law.cdf).pvalue > 1e-3
    assert np.abs(np.corrcoef(rows.T) - np.eye(4)).max() < 0.03  # columns are apart
    assert abs(np.corrcoef(rows[1:, 0], rows[:-1, 0])[0, 1]) < 0.03  # and neighbouring keys


def test_they_depend_on_seed_table_and_key_alone():
    tables = [oe.make_table_options(oe.make_normal_initializer(0.0, 1.0))] * 2
    first = RowInitializer(tables, [3], None, 0)
    rows = first.rows(ZERO, KEYS)
    order = np.random.default_rng(0).permutation(len(KEYS))[:50]
    np.testing.assert_array_equal(first.rows(ZERO[order], KEYS[order]), rows[order])
    for others in (first.rows(ZERO + 1, KEYS), RowInitializer(tables, [3], None, 1).rows(ZERO, KEYS)):
        assert abs(np.corrcoef(others[:, 0], rows[:, 0])[0, 1]) < 0.03


def test_defaults_and_unknown_kinds():
    one = oe.make_constant_initializer(1.5)
    assert RowInitializer([{}], [1, 1], one, 0).rows(ZERO[:1], KEYS[:1]).tolist() == [[1.5, 1.5]]
    assert RowInitializer([{}], [2], None, 0).rows(ZERO[:1], KEYS[:1]).tolist() == [[0, 0]]
    with pytest.raises(TableError, match="one of uniform, normal, trunc_normal, constant"):
        RowInitializer([oe.make_table_options({"type": "xavier"})], [2], None, 0)
