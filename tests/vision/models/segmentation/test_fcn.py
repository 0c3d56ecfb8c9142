"""FCN: torchvision's logits, losses and gradients."""

import pytest

from tests.vision.models.segmentation.alike import agrees_with_torchvision


@pytest.mark.parametrize("kind", ["fcn_small", pytest.param("fcn_resnet50", marks=pytest.mark.exhaustive)])
def test_as_torchvision(kind):
    agrees_with_torchvision(kind)
