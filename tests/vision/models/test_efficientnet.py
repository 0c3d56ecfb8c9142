"""EfficientNet and its second version: the logits and gradients of timm with the same weights."""

from dataclasses import replace

import pytest

from sbpjax.vision.models.efficientnet import B0
from tests.vision.models.both import check_against_timm, first_blocks

ONE_EACH = tuple(replace(stage, repeats=1) for stage in B0)
CASES = [
    pytest.param("tf_efficientnet_b0", {"cut": first_blocks}, {"stages": ONE_EACH}, 33),
    pytest.param("efficientnet_b0", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("tf_efficientnet_b0", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("efficientnet_b1", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("tf_efficientnet_b1", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("efficientnet_b2", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("tf_efficientnet_b2", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("efficientnet_b3", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("tf_efficientnet_b3", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("efficientnet_b7", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("tf_efficientnet_b7", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("efficientnetv2_s", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("tf_efficientnetv2_s", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("efficientnetv2_m", {}, {}, 64, marks=pytest.mark.exhaustive),
    pytest.param("tf_efficientnetv2_m", {}, {}, 64, marks=pytest.mark.exhaustive),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
