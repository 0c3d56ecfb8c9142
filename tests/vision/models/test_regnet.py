"""RegNet X and Y: the logits and gradients of timm with the same weights."""

import pytest

from tests.vision.models.both import check_against_timm

CASES = [
    pytest.param("regnety_002", {"depth": 7}, {"depth": 7}, 32),
    pytest.param("regnetx_002", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnetx_004", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnetx_006", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnetx_008", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnetx_016", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnety_002", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnety_004", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnety_006", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnety_008", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnety_016", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("regnetx_032", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("regnety_160", {}, {}, 32, marks=pytest.mark.exhaustive),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
