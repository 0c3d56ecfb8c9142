"""Res2Net: the logits and gradients of timm with the same weights."""

import pytest

from tests.vision.models.both import check_against_timm

CASES = [
    pytest.param("res2net50_26w_4s", {"layers": (1, 1, 1, 1)}, {"depths": (1, 1, 1, 1)}, 32),
    pytest.param("res2net50_48w_2s", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("res2net50_26w_4s", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("res2net50_14w_8s", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("res2next50", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("res2net50d", {}, {}, 32, marks=pytest.mark.exhaustive),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
