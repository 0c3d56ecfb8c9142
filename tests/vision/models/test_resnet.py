"""ResNet and its variants: the logits and gradients of timm with the same weights."""

import pytest

from tests.vision.models.both import check_against_timm

CASES = [
    pytest.param("resnet50", {"layers": (1, 1, 1, 1)}, {"depths": (1, 1, 1, 1)}, 32),
    pytest.param("resnet18", {}, {}, 32, marks=pytest.mark.exhaustive),
    *[
        pytest.param(
            name,
            {"layers": (1, 1, 2, 2), "output_stride": stride},
            {"depths": (1, 1, 2, 2), "output_stride": stride},
            64,
            marks=pytest.mark.exhaustive,
        )
        for name, stride in (("resnet18", 16), ("resnet50", 8), ("resnet50", 16))
    ],
    pytest.param("resnet50d", {"layers": (1, 1, 1, 1)}, {"depths": (1, 1, 1, 1)}, 32, marks=pytest.mark.exhaustive),
    pytest.param("seresnet50", {"layers": (1, 2, 1, 1)}, {"depths": (1, 2, 1, 1)}, 32, marks=pytest.mark.exhaustive),
    pytest.param(
        "resnext50_32x4d", {"layers": (1, 1, 1, 1)}, {"depths": (1, 1, 1, 1)}, 32, marks=pytest.mark.exhaustive
    ),
    pytest.param(
        "wide_resnet50_2", {"layers": (1, 1, 1, 1)}, {"depths": (1, 1, 1, 1)}, 32, marks=pytest.mark.exhaustive
    ),
    pytest.param("resnet50", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("resnet18d", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("resnext50d_32x4d", {}, {}, 32, marks=pytest.mark.exhaustive),
    pytest.param("seresnext50_32x4d", {}, {}, 32, marks=pytest.mark.exhaustive),
]


@pytest.mark.filterwarnings("ignore")  # other packages' own
@pytest.mark.parametrize(("name", "theirs", "ours", "size"), CASES)
def test_logits_and_gradients_of_timm(name, theirs, ours, size, tmp_path):
    check_against_timm(name, tmp_path, theirs, ours, size)
