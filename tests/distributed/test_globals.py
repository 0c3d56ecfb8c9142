"""Global tensors over several processes: the values of one device, and what OneFlow's ranks held."""

import pytest

from .running import passed


@pytest.mark.parametrize("share", ["sample", pytest.param("all", marks=pytest.mark.exhaustive)])
def test_recorded_facts_on_four_ranks(share):
    passed("facts.py", 4, 1, share)


@pytest.mark.parametrize(
    "ranks, devices", [(2, 2), *(pytest.param(r, d, marks=pytest.mark.exhaustive) for r, d in ((4, 1), (2, 1)))]
)
def test_training_gives_the_numbers_of_one_device(ranks, devices):
    passed("training.py", ranks, devices)
