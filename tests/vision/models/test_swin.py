"""Swin v1 and v2: the logits and gradients of timm with the same weights."""

import pytest

from tests.vision.models.both import check_against_timm

CASES = [
    pytest.param(
        "swin_tiny_patch4_window7_224",
        {"img_size": 32, "window_size": 3, "depths": (2, 2), "num_heads": (2, 4), "embed_dim": 16},
        {"image_size": 32, "window": 3, "depths": (2, 2), "heads": (2, 4), "width": 16},
        32,
    ),
    pytest.param(
        "swinv2_tiny_window8_256",
        {"img_size": 32, "window_size": 4, "depths": (2, 2), "num_heads": (2, 4), "embed_dim": 16},
        {"image_size": 32, "window": 4, "depths": (2, 2), "heads": (2, 4), "width": 16},
        32,
        marks=pytest.mark.exhaustive,
    ),
    pytest.param(
        "swin_tiny_patch4_window7_224", {"img_size": 64}, {"image_size": 64}, 64, marks=pytest.mark.exhaustive
    ),
    pytest.param(
        "swin_small_patch4_window7_224", {"img_size": 96}, {"image_size": 96}, 96, marks=pytest.mark.exhaustive
    ),
    pytest.param("swinv2_tiny_window8_256", {"img_size": 128}, {"image_size": 128}, 128, marks=pytest.mark.exhaustive),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
