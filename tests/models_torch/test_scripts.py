"""Scripts written for PyTorch compute PyTorch's numbers when `torch` is answered by sbpjax."""

import numpy as np
import pytest

from tests.models_torch.both import TOLERANCE, load

NAMES = ["training_loop", "hooks_and_checkpoints", "in_place_and_indexing", "own_function"]


@pytest.fixture(scope="module")
def files():
    return load("scripts", mocked=False), load("scripts", mocked=True)


@pytest.mark.parametrize("name", NAMES)
def test_same_numbers(name, files):
    wanted, found = (getattr(file, name)() for file in files)
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        if isinstance(value, (np.ndarray, float)):
            np.testing.assert_allclose(found[key], value, rtol=TOLERANCE, atol=TOLERANCE, err_msg=key)
        else:
            assert found[key] == value, key


def test_every_script_is_compared(files):
    assert [f.__name__ for f in files[0].SCRIPTS] == NAMES
