"""An order computed item by item: one-to-one, another for each seed, and without memory of its size."""

import numpy as np
import pytest

from sbpjax.train.data import Permutation


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 10, 63, 64, 65, 97, 1000, 4099])
def test_every_number_once(n):
    for seed in range(3):
        order = Permutation(n, (seed, 1))
        assert len(order) == n and sorted(order[i] for i in range(n)) == list(range(n))


def test_a_function_of_the_seed():
    first, again, other = (list(Permutation(1000, seed)) for seed in ((5, 0), (5, 0), (5, 1)))
    assert first == again != other
    assert first != list(range(1000))


def test_every_place_is_as_likely_as_another():
    n, seeds = 16, 4000
    counts = np.zeros((n, n))
    for seed in range(seeds):
        for i, place in enumerate(Permutation(n, seed)):
            counts[i, place] += 1
    expected = seeds / n
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    freedom = (n - 1) ** 2
    assert abs(chi_squared - freedom) < 5 * np.sqrt(2 * freedom)


def test_neighbours_are_parted():
    order = np.array([Permutation(10**12, 3)[i] for i in range(2000)], float)
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.1
    assert abs(order.mean() / 10**12 - 0.5) < 0.05


def test_outside():
    with pytest.raises(IndexError, match="index 5 is outside an order of 5"):
        Permutation(5, 0)[5]
