"""DeepLabV3: torchvision's logits, losses and gradients."""

import pytest

from tests.vision.models.segmentation.alike import agrees_with_torchvision


@pytest.mark.parametrize("kind", ["deeplabv3_small", pytest.param("deeplabv3_resnet50", marks=pytest.mark.exhaustive)])
def test_as_torchvision(kind):
    agrees_with_torchvision(kind)
