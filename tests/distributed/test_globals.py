"""Global tensors over several processes: the values of one device, and what OneFlow's ranks held."""

import pytest

from tests.distributed import foundation
from tests.distributed.running import LIMIT_S, passed

# The command `python -m tests.distributed.foundation` runs all of them; these make a tensor in every way, in little
# time.
FEW = ["tests/tensor/test_global.py", "tests/tensor/creation/test_creation.py", "tests/functions/test_printing.py"]


@pytest.mark.parametrize("share", ["sample", pytest.param("all", marks=pytest.mark.exhaustive)])
def test_recorded_facts_on_four_ranks(share):
    passed("facts.py", 4, 1, share, limit_s=LIMIT_S if share == "sample" else 1800)


@pytest.mark.exhaustive  # two processes of two devices: test_together.py
@pytest.mark.parametrize("ranks, devices", [(4, 1), (2, 1)])
def test_training_gives_the_numbers_of_one_device(ranks, devices):
    passed("training.py", ranks, devices)


def test_a_sample_of_the_tests_of_global_tensors_on_two_processes():
    found = foundation.run(2, FEW, one_in=6, quiet=True)  # of the cases that run by default
    assert len(found) >= 4 and not foundation.failures(found)


def test_the_lists_name_what_there_is():
    assert not [file for file in [*foundation.FILES, *foundation.LATER_FILES] if not (foundation.ROOT / file).exists()]
    for name in foundation.ONE_PROCESS:
        file, _, test = name.partition("::")
        assert f"def {test.split('[')[0]}" in (foundation.ROOT / file).read_text(), name


@pytest.mark.exhaustive
@pytest.mark.parametrize("processes", [2, 4])
def test_the_tests_of_global_tensors(processes):
    found = foundation.run(processes, [*foundation.FILES, *foundation.LATER_FILES])
    assert len(found) > 500 and not foundation.failures(found)
