"""FCN: semantic segmentation by a fully convolutional ResNet."""

from __future__ import annotations

from sbpjax import nn

from .base import FCNHead, SegmentationModel


class FCN(SegmentationModel):
    """Classify every pixel by the cells around it.

    Args:
        num_classes: C, the background among them.
        backbone: the name of a ResNet of the zoo, or a model of images with maps.
        auxiliary: whether there is a second head, for training.

    Source: Long et al., "Fully Convolutional Networks for Semantic Segmentation", 2015; names and numbers of
    torchvision's `fcn_resnet50`, whose state dict it loads.

    Raises:
        ConfigError: see `SegmentationModel`.

    Example:
        >>> body = flow.vision.create_model("resnet18", width=8, depths=(1, 1, 1, 1))
        >>> FCN(3, body).eval()(flow.zeros(1, 3, 32, 32)).shape
        sbpjax.Size([1, 3, 32, 32])
    """

    @staticmethod
    def head(inputs: int, num_classes: int) -> nn.Module:
        """Return a head of two convolutions."""
        return FCNHead(inputs, num_classes)
