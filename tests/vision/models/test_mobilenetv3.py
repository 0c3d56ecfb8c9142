"""MobileNet v3: the logits and gradients of timm with the same weights."""

from dataclasses import replace

import pytest

from sbpjax.vision.models.mobilenetv3 import SMALL
from tests.vision.models.both import check_against_timm, first_blocks

ONE_EACH = tuple((replace(row[0], repeats=1),) for row in SMALL)
CASES = [
    pytest.param("mobilenetv3_small_100", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("mobilenetv3_small_100", {"cut": first_blocks}, {"stages": ONE_EACH}, 32),
    pytest.param("mobilenetv3_large_100", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("mobilenetv3_small_075", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("mobilenetv3_large_075", {}, {}, 64, marks=pytest.mark.exhaustive),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
