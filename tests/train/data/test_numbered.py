"""Datasets whose samples have numbers: a length for loaders, and no end."""

import pytest

from sbpjax.errors import DataError
from sbpjax.train.data import Numbered


class Doubles(Numbered):
    def sample(self, number):
        return 2 * number


def test_a_length_and_no_end():
    dataset = Doubles(3)
    assert list(dataset) == [0, 2, 4] and len(dataset) == 3 and dataset[-1] == 4 and dataset.sample(10) == 20
    for index in (3, -4):
        with pytest.raises(IndexError, match="outside a dataset of 3 samples"):
            dataset[index]


def test_no_samples():
    with pytest.raises(DataError, match="samples=0\n  rule: a run takes one sample at least\n  fix:  samples=steps"):
        Doubles(0)
