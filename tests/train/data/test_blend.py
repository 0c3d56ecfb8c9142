"""Blends: exact proportions, even all the way, every sample of each dataset in its order, computed one by one."""

from fractions import Fraction

import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import Blend, Numbered
from sbpjax.train.data.blend import apportion_samples


class Named(Numbered):
    def __init__(self, name, samples=10):
        super().__init__(samples)
        self.name = name

    def sample(self, number):
        return self.name, number


CASES = [([1], 7), ([0.5, 0.5], 9), ([5, 3], 8), ([0.7, 0.2, 0.1], 1000), ([1, 1, 1, 1, 1], 13), ([1e-6, 1, 2.5], 500)]
CASES += [([1 / (d + 1) for d in range(20)], 777), ([3, 1], 2)]


@pytest.mark.parametrize(("weights", "samples"), CASES, ids=str)
def test_proportions_and_order(weights, samples):
    blend = Blend([Named(d) for d in range(len(weights))], weights, samples)
    assert sum(blend.counts) == samples == len(blend)
    shares = [Fraction(w) * samples / sum(map(Fraction, weights)) for w in weights]
    assert all(abs(count - share) < 1 for count, share in zip(blend.counts, shares))
    times = [(Fraction(2 * k + 1, 2 * n), d, k) for d, n in enumerate(blend.counts) for k in range(n)]
    assert [blend.source(i) for i in range(samples)] == [(d, k) for _, d, k in sorted(times)]
    so_far = [0] * len(weights)
    for i in range(samples):  # even: no dataset is ever far from its share
        so_far[blend.source(i)[0]] += 1
        assert all(
            abs(n - Fraction(count * (i + 1), samples)) <= len(weights) for n, count in zip(so_far, blend.counts)
        )


def test_largest_remainder():
    assert apportion_samples([0.5, 0.3, 0.2], 7) == [4, 2, 1]
    assert apportion_samples([1, 1, 1], 5) == [2, 2, 1]


def test_a_dataset_that_is_used_up_goes_on():
    blend = Blend([Named("a", samples=2), Named("b")], [3, 1], 8)
    taken = [blend[i] for i in range(8)]
    assert [k for name, k in taken if name == "a"] == [0, 1, 2, 3, 4, 5]
    assert blend.sample(8) == ("a", 6) and {blend.sample(i) for i in range(8, 16)}.isdisjoint(taken)


def test_a_blend_of_blends_and_far_away():
    inner = Blend([Named("a"), Named("b")], [1, 1], 10)
    outer = Blend([inner, Named("c")], [1, 1], 10**9)
    assert outer.counts == [5 * 10**8] * 2
    assert {outer[10**9 - 2][0], outer[10**9 - 1][0]} == {"c", "b"}


@pytest.mark.parametrize(
    ("datasets", "weights", "expected"),
    [
        ([Named("a")], [1, 2], "1 datasets, 2 weights"),
        ([], [], "every dataset has one weight"),
        ([Named("a"), Named("b")], [1, 0], "leave out a dataset of weight 0"),
        ([Named("a"), Named("b")], [1, float("nan")], "weights are finite"),
        ([[1, 2]], [1], "datasets of \\['list'\\]"),
    ],
)
def test_refused(datasets, weights, expected):
    with pytest.raises(DataError, match=expected):
        Blend(datasets, weights, 10)
