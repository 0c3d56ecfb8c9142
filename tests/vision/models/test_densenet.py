"""DenseNet: the logits and gradients of timm with the same weights."""

import pytest

from tests.vision.models.both import check_against_timm

CASES = [
    pytest.param("densenet121", {"block_config": (1, 2, 1, 1)}, {"depths": (1, 2, 1, 1)}, 32),
    pytest.param("densenet121", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param(
        "densenet161", {"block_config": (2, 2, 2, 2)}, {"depths": (2, 2, 2, 2)}, 32, marks=pytest.mark.exhaustive
    ),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
