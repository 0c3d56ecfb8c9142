"""ReXNet: the logits and gradients of timm with the same weights."""

import pytest

from tests.vision.models.both import check_against_timm

CASES = [
    pytest.param("rexnet_100", {"depth_mult": 0.2}, {"repeats": (1, 1, 1, 1, 1, 1)}, 32),
    pytest.param("rexnet_100", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("rexnet_130", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("rexnet_200", {}, {}, 64, marks=pytest.mark.exhaustive),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
