"""Biases by distance: the buckets of the paper's formula, each direction its own."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.models.layers import RelativeBias
from sbpjax.models.layers.relative import first_distances


def bucket(distance, buckets, reach):
    """Return the bucket of a distance in one direction, as the paper has it."""
    exact = buckets // 2
    if distance < exact:
        return distance
    return min(exact + int(np.log(distance / exact) / np.log(reach / exact) * (buckets - exact) + 1e-6), buckets - 1)


@pytest.mark.parametrize("buckets, reach", [(4, 10), (8, 16), (16, 128), (32, 128)])
def test_first_distances(buckets, reach):
    of = [bucket(d, buckets, reach) for d in range(2 * reach)]
    assert first_distances(buckets, reach) == [of.index(number) for number in range(1, buckets)]


@pytest.mark.parametrize("both", [True, False])
def test_a_bias_is_that_of_its_bucket(both):
    layer = RelativeBias(2, buckets=8, reach=16, both=both)
    flow.nn.init.normal_(layer.weight)
    found = layer(flow.arange(3, 6), flow.arange(40)).detach().numpy()
    weight = layer.weight.detach().numpy()
    for t in range(3):
        for s in range(40):
            ahead = s - (t + 3)
            if both:
                number = bucket(abs(ahead), 4, 16) + 4 * (ahead > 0)
            else:
                number = bucket(max(-ahead, 0), 8, 16)
            np.testing.assert_array_equal(found[0, :, t, s], weight[number])
    layer(flow.arange(3), flow.arange(3)).sum().backward()
    assert layer.weight.grad.sum().item() == 2 * 9
