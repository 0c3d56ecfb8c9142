"""The rule and the fix of parts that make no tensor."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import errors
from sbpjax.sbp.algebra import B, P
from sbpjax.sbp.shape_check import find_shape_mismatch
from tests.support.assemble import from_local_shards

CASES = [
    ({0: (4, 8), 1: (4, 9)}, {0: (4, 8), 1: (4, 8)}, (0,), "all dims but 0 must be equal", "dim 1 is 8 on rank 0, 9"),
    ({0: (4, 8), 1: (5, 8)}, {0: (5, 8), 1: (4, 8)}, (0,), "rank 0 needs 5 rows, rank 1 needs 4 rows", "rank 1 has 5"),
    ({0: (3, 1), 1: (3, 2)}, {0: (3, 2), 1: (3, 1)}, (1,), "rank 0 needs 2 elements along dim 1", "rank 0 has 1"),
    ({0: (4,), 1: (5,), 2: (5,)}, {0: (4,)} | {1: (4,), 2: (4,)}, (B,), "no dim is split (B)", "5 on ranks [1, 2]"),
    ({0: (4,), 1: (5,)}, {0: (4,), 1: (4,)}, (P,), "no dim is split (P)", "dim 0 is 4 on rank 0, 5 on rank 1"),
]


@pytest.mark.parametrize("shapes, expected, codes, rule, more", CASES)
def test_what_differs_is_named(shapes, expected, codes, rule, more):
    text, fix = find_shape_mismatch(shapes, expected, codes)
    assert rule in text and more in text and "to_global(placement, sbp)" not in fix
    if codes in ((B,), (P,)):
        assert fix.startswith("build it alike on all ranks")


def test_shards_of_one_process_are_told_alike():
    shards = {0: np.ones((1, 3)), 1: np.ones((2, 3))}
    with pytest.raises(errors.OpError, match="rank 0 needs 2 rows, rank 1 needs 1 rows; rank 0 has 1"):
        from_local_shards(shards, flow.placement("cpu", [0, 1]), "S0")
