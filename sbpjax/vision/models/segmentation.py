"""Semantic segmentation (a class for every pixel): `DeepLabV3` and `FCN`.

    model = DeepLabV3(num_classes=21)
    logits = model(images)                       # (B, 21, H, W)
    loss = model.loss(images, masks)             # masks (B, H, W), 255 where nothing is known

A backbone's last map has a step of 8 pixels. The head's logits are brought to the image's size by interpolation. In
training a second head reads the map before the last one; its loss counts too, so that gradients reach that map by a
short way. Parameters have torchvision's names.
"""

from __future__ import annotations

from typing import Any

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import ConfigError, OpError
from sbpjax.nn import functional as F

from . import label_checks
from .blocks import ImageModel
from .registry import create_model

IGNORED = 255  # the class of pixels that do not count, in the masks of Pascal VOC
AUXILIARY_SHARE = 0.5  # of the second head's loss


def make_convolution(inputs: int, outputs: int, kernel: int, dilation: int = 1) -> list[nn.Module]:
    """Return a convolution that keeps the size of maps, its norm and a ReLU."""
    padding = dilation * (kernel // 2)
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=padding, dilation=dilation, bias=False)
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]


class FCNHead(nn.Sequential):
    """Logits of the cells of a map: a convolution to a fourth of its channels, and one to the classes.

    Args:
        inputs: channels of the map.
        num_classes: C.

    Example:
        >>> from sbpjax.vision.models.segmentation import FCNHead
        >>> FCNHead(8, 3)(flow.zeros(2, 8, 4, 4)).shape
        sbpjax.Size([2, 3, 4, 4])
    """

    def __init__(self, inputs: int, num_classes: int) -> None:
        inside = inputs // 4
        super().__init__(*make_convolution(inputs, inside, 3), nn.Dropout(0.1), nn.Conv2d(inside, num_classes, 1))


class SegmentationModel(nn.Module):
    """Base class of the segmentation models; a subclass defines `head`.

    Args:
        num_classes: C, the background among them.
        backbone: the name of a ResNet of the zoo, or a model of images with maps.
        auxiliary: whether there is a second head, for training.

    Raises:
        ConfigError: there are no classes, or the backbone has one map alone, or none.
    """

    def __init__(self, num_classes: int = 21, backbone: str | ImageModel = "resnet50", *, auxiliary: bool = True):
        super().__init__()
        operation = f"{type(self).__name__}({num_classes})"
        if num_classes < 1:
            raise ConfigError(operation, f"num_classes={num_classes}", "there is one class at least", "num_classes=21")
        if isinstance(backbone, str):
            backbone = create_model(backbone, num_classes=0, output_stride=8)  # type: ignore[assignment]
        channels = getattr(backbone, "channels", ())
        if len(channels) < 2:
            seen, rule = f"a {type(backbone).__name__} with {len(channels)} maps", "a backbone has two maps or more"
            raise ConfigError(operation, seen, rule, "backbone='resnet50'")
        backbone.reset_classifier(0)  # type: ignore[union-attr]
        self.num_classes, self.backbone = num_classes, backbone
        self.classifier = self.head(channels[-1], num_classes)
        self.aux_classifier = FCNHead(channels[-2], num_classes) if auxiliary else None

    @staticmethod
    def head(inputs: int, num_classes: int) -> nn.Module:
        """Return what makes logits `(B, C, h, w)` of a map `(B, inputs, h, w)`."""
        raise NotImplementedError

    def both(self, images: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor | None]:
        """Return the logits of both heads, `(B, C, H, W)` each; None for a head that is not there.

        Args:
            images: `(B, 3, H, W)`, normalised as the backbone's weights were trained.
        """
        size, maps = tuple(images.shape[2:]), self.backbone.maps(images)

        def logits(head: nn.Module, x: flow.Tensor) -> flow.Tensor:
            return F.interpolate(head(x), size=size, mode="bilinear", align_corners=False)

        second = None if self.aux_classifier is None else logits(self.aux_classifier, maps[-2])
        return logits(self.classifier, maps[-1]), second

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, C, H, W)` of `images` `(B, 3, H, W)`; `argmax(1)` is the class of each pixel."""
        size = tuple(images.shape[2:])
        found = self.classifier(self.backbone.maps(images)[-1])
        return F.interpolate(found, size=size, mode="bilinear", align_corners=False)

    def check_batch(self, batch: Any) -> None:
        """Refuse masks with numbers that are no class; a `Trainer` shows each batch while it is on the host.

        Args:
            batch: a dict with ``masks``, or a sequence whose second part they are.

        Raises:
            DataError: a pixel has such a number.
        """
        masks = label_checks.batch_part(batch, "masks", 1)
        if masks is not None:
            label_checks.check_labels(masks, type(self).__name__, self.num_classes, ignored=IGNORED, named="pixels")

    def loss(self, images: flow.Tensor, masks: flow.Tensor) -> flow.Tensor:
        """Return the mean cross entropy of the pixels that count, and half of that of the second head.

        Args:
            images: `(B, 3, H, W)`.
            masks: `(B, H, W)`, int64: the class of each pixel, 255 for none.

        Raises:
            OpError: masks are of another size.
        """
        if tuple(masks.shape) != (images.shape[0], *images.shape[2:]):
            seen = f"images {tuple(images.shape)}, masks {tuple(masks.shape)}"
            fix = "masks[:, 0] for (B, 1, H, W); transforms move the masks of a sample with its image"
            raise OpError(f"{type(self).__name__}().loss", seen, "each pixel of an image has a class", fix)
        first, second = self.both(images)
        loss = F.cross_entropy(first, masks, ignore_index=IGNORED)
        return loss if second is None else loss + AUXILIARY_SHARE * F.cross_entropy(second, masks, ignore_index=IGNORED)


class FCN(SegmentationModel):
    """FCN: classify every pixel with a convolutional head.

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


WIDTH = 256
DILATIONS = (12, 24, 36)  # for maps whose step is 8 pixels


class _Mean(nn.Sequential):
    """The mean of a map through a convolution, at all its cells."""

    def __init__(self, inputs: int) -> None:
        super().__init__(nn.AdaptiveAvgPool2d(1), *make_convolution(inputs, WIDTH, 1))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return ``(B, 256, H, W)``."""
        return super().forward(x).expand(x.shape[0], WIDTH, *x.shape[2:])


class Pyramid(nn.Module):
    """Atrous spatial pyramid pooling: concatenates a 1 × 1 convolution, three dilated 3 × 3 convolutions, and the mean.

    Args:
        inputs: channels of the map.

    Example:
        >>> from sbpjax.vision.models.segmentation import Pyramid
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
    """DeepLabV3: classify every pixel from features at several scales.

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
