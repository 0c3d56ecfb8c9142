"""ConvNeXt v1 and v2: the logits and gradients of timm with the same weights."""

import pytest

from tests.vision.models.both import check_against_timm

CASES = [
    pytest.param("convnextv2_atto", {"depths": (1, 1, 1, 1)}, {"depths": (1, 1, 1, 1)}, 32),
    pytest.param("convnext_tiny", {"depths": (1, 1, 2, 1)}, {"depths": (1, 1, 2, 1)}, 32, marks=pytest.mark.exhaustive),
    pytest.param("convnextv2_tiny", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("convnextv2_nano", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("convnext_small", {}, {}, 32, marks=pytest.mark.exhaustive),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
