"""FCN: torchvision's logits, losses and gradients."""

import pytest

from tests.vision.models.segmentation.alike import agrees_with_torchvision


@pytest.mark.exhaustive  # `test_deeplabv3` has the same backbone, and `test_base` trains an FCN
@pytest.mark.parametrize("kind", ["fcn_small", "fcn_resnet50"])
def test_as_torchvision(kind):
    agrees_with_torchvision(kind)
