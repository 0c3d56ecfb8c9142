"""DeepLabV3: semantic segmentation by atrous spatial pyramid pooling."""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn

from .base import SegmentationModel, make_convolution

WIDTH = 256
DILATIONS = (12, 24, 36)  # for maps whose step is 8 pixels


class _Mean(nn.Sequential):
    """The mean of a map through a convolution, at all its cells.

    Args:
        inputs: channels of the map.
    """

    def __init__(self, inputs: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *make_convolution(inputs, WIDTH, 1))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return ``(B, 256, H, W)``."""
        return super().forward(x).expand(x.shape[0], WIDTH, *x.shape[2:])


class Pyramid(nn.Module):
    """Five looks at a map, brought together: a cell, three grids of 3 × 3 cells of growing width, and the mean of all.

    Args:
        inputs: channels of the map.

    Example:
        >>> from sbpjax.vision.models.segmentation.deeplabv3 import Pyramid
        >>> Pyramid(8).eval()(flow.zeros(2, 8, 4, 4)).shape
        sbpjax.Size([2, 256, 4, 4])
    """

    def __init__(self, inputs: int) -> None:
        super().__init__()
        near = nn.Sequential(*make_convolution(inputs, WIDTH, 1))
        wider = [nn.Sequential(*make_convolution(inputs, WIDTH, 3, dilation)) for dilation in DILATIONS]
        self.convs = nn.ModuleList([near, *wider, _Mean(inputs)])
        self.project = nn.Sequential(*make_convolution(5 * WIDTH, WIDTH, 1), nn.Dropout(0.5))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, 256, H, W)` of `x` `(B, inputs, H, W)`."""
        return self.project(flow.cat([look(x) for look in self.convs], 1))


class DeepLabV3(SegmentationModel):
    """Classify every pixel by its surroundings, near and far.

    Args:
        num_classes: C, the background among them.
        backbone: the name of a ResNet of the zoo, or a model of images with maps.
        auxiliary: whether there is a second head, for training.

    Source: Chen et al., "Rethinking Atrous Convolution for Semantic Image Segmentation", 2017; names and numbers of
    torchvision's `deeplabv3_resnet50`, whose state dict it loads.

    Raises:
        ConfigError: see `SegmentationModel`.

    Example:
        >>> body = flow.vision.create_model("resnet18", width=8, depths=(1, 1, 1, 1))
        >>> DeepLabV3(3, body).eval()(flow.zeros(1, 3, 32, 32)).shape
        sbpjax.Size([1, 3, 32, 32])
    """

    @staticmethod
    def head(inputs: int, num_classes: int) -> nn.Module:
        """Return the pyramid and two convolutions."""
        return nn.Sequential(Pyramid(inputs), *make_convolution(WIDTH, WIDTH, 3), nn.Conv2d(WIDTH, num_classes, 1))
