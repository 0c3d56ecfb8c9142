"""MLP-Mixer: the logits and gradients of timm with the same weights."""

import pytest

from tests.vision.models.both import check_against_timm, first_blocks

CASES = [
    pytest.param("mixer_s32_224", {"img_size": 64, "cut": first_blocks}, {"image_size": 64, "depth": 2}, 64),
    pytest.param("mixer_s16_224", {"img_size": 64}, {"image_size": 64}, 64, marks=pytest.mark.exhaustive),
    pytest.param("mixer_b16_224", {"img_size": 32}, {"image_size": 32}, 32, marks=pytest.mark.exhaustive),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
