"""Boxing between placements: every kind of pair, even and uneven, with and without partial sums."""

import itertools

import numpy as np
import pytest

from sbpjax._core.compiler import conversions
from sbpjax.sbp import placement

PLACES = {
    "four": [0, 1, 2, 3],
    "reversed": [3, 2, 1, 0],
    "square": [[0, 1], [2, 3]],
    "overlap": [1, 2, 5],
    "apart": [[4, 5], [6, 7]],
    "one": [6],
    "cube": [[[0, 1]], [[2, 3]]],
}
SBPS = {1: ["S0", "S1", "B", "P"], 2: ["S0,S1", "S0,S0", "P,B", "B,P"], 3: ["S0,B,S1", "P,S0,P"]}


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(PLACES, 2)))
def test_values_arrive(source, target):
    a, b = placement("cpu", PLACES[source]), placement("cpu", PLACES[target])
    pairs = list(itertools.product(SBPS[a.ranks.ndim], SBPS[b.ranks.ndim]))
    rng = np.random.default_rng(sum(map(ord, source + target)))
    for i in rng.choice(len(pairs), size=min(4, len(pairs)), replace=False):
        for shape in ((8, 4), (5, 7)):
            x = rng.normal(size=shape).astype(np.float32)
            array, layout = conversions.convert(*conversions.from_logical(x, a, pairs[i][0]), b, pairs[i][1])
            assert layout.placement == b
            np.testing.assert_array_equal(conversions.to_logical(array, layout), x, err_msg=f"{pairs[i]} {shape}")


def test_the_same_devices_in_another_grid_move_nothing():
    from sbpjax._core.compiler.between_placements import _cost, _relabel
    from sbpjax.sbp.layout import Layout

    source = Layout(placement("cpu", PLACES["four"]), "S0", (8, 4), np.float32)
    target = Layout(placement("cpu", PLACES["square"]), "S0,S0", (8, 4), np.float32)
    leave, arrive = _relabel(source, target)
    assert _cost(source, leave) == _cost(arrive, target) == 0
