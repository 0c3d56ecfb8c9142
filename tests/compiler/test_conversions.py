"""Logical values on placements and back; `test_between_placements` tests the ways between them."""

import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler import conversions
from sbpjax.sbp import placement

ONE = placement("cpu", [0, 1, 2, 3])
TWO = placement("cpu", [[0, 1], [2, 3]])
LAYOUTS = [
    (ONE, "S0"),
    (ONE, "S1"),
    (ONE, "B"),
    (ONE, "P"),
    (TWO, "S0,S1"),
    (TWO, "S0,S0"),
    (TWO, "P,S1"),
    (TWO, "B,P"),
]


def values(shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(("place", "sbp"), LAYOUTS)
@pytest.mark.parametrize("shape", [(8, 12), (5, 7), (3, 2), (0, 4)])
def test_from_logical_and_back(place, sbp, shape):
    x = values(shape)
    array, layout = conversions.from_logical(x, place, sbp)
    assert array.shape == layout.physical_shape
    np.testing.assert_array_equal(conversions.to_logical(array, layout), x)
    np.testing.assert_array_equal(conversions.to_logical(*conversions.from_logical(jnp.asarray(x), place, sbp)), x)


def test_local_shards_follow_the_balanced_rule():
    array, layout = conversions.from_logical(np.arange(7), ONE, "S0")
    assert {r: v.tolist() for r, v in conversions.local_shards(array, layout).items()} == {
        0: [0, 1],
        1: [2, 3],
        2: [4, 5],
        3: [6],
    }
    array, layout = conversions.from_logical(np.arange(3), ONE, "S0")
    assert conversions.local_shards(array, layout)[3].shape == (0,)


def test_a_partial_sum_lies_on_the_first_rank():
    array, layout = conversions.from_logical(np.arange(3), ONE, "P")
    shards = conversions.local_shards(array, layout)
    assert shards[0].tolist() == [0, 1, 2]
    assert all((shards[r] == 0).all() for r in (1, 2, 3))
