"""IResNet: residual networks that give face embeddings.

An image of 112 x 112 becomes a vector; two faces of one person have vectors that point the same way. A block normalises
its input first, and its activation has a learned slope. Parameters have InsightFace's names.
Sources: arxiv.org/abs/1801.07698, 2004.04989.
"""

from __future__ import annotations

from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import OpValueError

from .blocks import ImageConfig, ImageModel, checked_classes
from .registry import register_model


@dataclass(frozen=True, kw_only=True)
class IResNetConfig(ImageConfig):
    """The size of a model.

    Attributes:
        num_classes: length of the vector; 0 hands on the last map, flattened.
        depths: blocks of each stage.
        width: channels of the first stage; each further stage has twice as many.
        image_size: height and width of images.
        drop_rate: probability of a zero among the features that are projected, in training.
    """

    num_classes: int = 512
    depths: tuple[int, ...] = (3, 4, 14, 3)
    width: int = 64
    image_size: int = 112
    drop_rate: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size % 16:
            self.refuse(f"image_size={self.image_size}", "image_size is a multiple of 16", "image_size=112")


class Block(nn.Module):
    """``bn3(conv2(prelu(bn2(conv1(bn1(x))))))``, added to the input.

    Args:
        inputs: channels of the input.
        width: of the output.
        stride: of the second convolution.
    """

    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.prelu = nn.PReLU(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride > 1 or inputs != width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, width, H / stride, W / stride)` of `x` `(B, inputs, H, W)`."""
        y = self.prelu(self.bn2(self.conv1(self.bn1(x))))
        return self.bn3(self.conv2(y)) + (x if self.downsample is None else self.downsample(x))


class IResNet(ImageModel):
    """IResNet: compute the embedding of a face.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import iresnet
        >>> config = iresnet.IResNetConfig(depths=(1, 1, 1, 1), width=8, image_size=32, num_classes=16)
        >>> iresnet.IResNet(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 16])
    """

    def __init__(self, config: IResNetConfig):
        super().__init__()
        self.config = config
        self.conv1 = nn.Conv2d(config.in_chans, config.width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(config.width)
        self.prelu = nn.PReLU(config.width)
        channels = [config.width]
        for number, depth in enumerate(config.depths):
            width = config.width * 2**number
            blocks = [Block(channels[-1] if i == 0 else width, width, 2 if i == 0 else 1) for i in range(depth)]
            self.add_module(f"layer{number + 1}", nn.Sequential(*blocks))
            channels.append(width)
        self.channels = tuple(channels[1:])
        self.strides = tuple(2 ** (i + 1) for i in range(len(self.channels)))
        self.bn2 = nn.BatchNorm2d(channels[-1])
        self.dropout = nn.Dropout(config.drop_rate)
        self.num_features = channels[-1] * (config.image_size // self.strides[-1]) ** 2
        self.fc: nn.Module = nn.Identity()
        self.features: nn.Module = nn.Identity()
        self.reset_classifier(config.num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, std=0.1)

    def reset_classifier(self, num_classes: int) -> None:
        """Replace the projection to a vector, and its norm, by fresh ones.

        Args:
            num_classes: length of the vector; 0 leaves both out.
        """
        checked_classes(num_classes)
        self.fc, self.features = nn.Identity(), nn.Identity()
        if num_classes:
            self.fc = nn.Linear(self.num_features, num_classes)
            self.features = nn.BatchNorm1d(num_classes)
            self.features.weight.requires_grad = False  # the length of a vector is the loss's affair

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the maps behind the stages, the finest first: `(B, channels[i], ...)`.

        Raises:
            OpValueError: images are not of the configuration's size.
        """
        size = self.config.image_size
        if tuple(self.check_images(images).shape[2:]) != (size, size):
            rule = f"the projection is made for images of {size} x {size}"
            fix = f"create_model(..., image_size={images.shape[2]})"
            raise OpValueError("IResNet(images)", f"shape {tuple(images.shape)}", rule, fix)
        x, found = self.prelu(self.bn1(self.conv1(images))), []
        for number in range(len(self.config.depths)):
            x = getattr(self, f"layer{number + 1}")(x)
            found.append(x)
        return found

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return vectors `(B, num_classes)` of `images` `(B, in_chans, H, W)`; their length is not 1."""
        x = self.dropout(self.bn2(self.maps(images)[-1]).flatten(1))
        return self.features(self.fc(x))


for _name, _depths in {"18": (2, 2, 2, 2), "34": (3, 4, 6, 3), "50": (3, 4, 14, 3), "101": (3, 13, 30, 3)}.items():
    register_model(f"iresnet{_name}", IResNet, IResNetConfig(depths=_depths))
