"""DenseNet: convolutional networks in which each layer reads all earlier layers of its block.

Parameters have torchvision's names, which are timm's as well. Source: arxiv.org/abs/1608.06993.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn

from .blocks import ImageConfig, ImageModel, kaiming_convolutions
from .registry import register_model


@dataclass(frozen=True, kw_only=True)
class DenseNetConfig(ImageConfig):
    """The size of a model.

    Attributes:
        depths: layers of each block.
        growth: channels that a layer adds.
        stem: channels of the first convolution.
        inside: channels between a layer's two convolutions, as a multiple of `growth`.
        drop_rate: probability of a zero among the pooled features, in training.
    """

    depths: tuple[int, ...] = (6, 12, 24, 16)
    growth: int = 32
    stem: int = 64
    inside: int = 4
    drop_rate: float = 0.0


class DenseLayer(nn.Module):
    """``conv2(relu(norm2(conv1(relu(norm1(x))))))``.

    Args:
        config: the model's.
        inputs: channels of all maps before it.
    """

    def __init__(self, config: DenseNetConfig, inputs: int):
        super().__init__()
        inside = config.inside * config.growth
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, inside, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(inside)
        self.conv2 = nn.Conv2d(inside, config.growth, 3, padding=1, bias=False)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, growth, H, W)` of `x` `(B, inputs, H, W)`."""
        return self.conv2(self.norm2(self.conv1(self.norm1(x).relu())).relu())


class DenseBlock(nn.Module):
    """Layers that each read what all before them wrote.

    Args:
        config: the model's.
        inputs: channels of the input.
        depth: how many layers.
    """

    def __init__(self, config: DenseNetConfig, inputs: int, depth: int):
        super().__init__()
        for i in range(depth):
            self.add_module(f"denselayer{i + 1}", DenseLayer(config, inputs + i * config.growth))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, inputs + depth * growth, H, W)` of `x` `(B, inputs, H, W)`."""
        for layer in self.children():
            x = flow.cat([x, layer(x)], dim=1)
        return x


class Transition(nn.Module):
    """Half the channels, half the height and width.

    Args:
        inputs: channels of the input.
    """

    def __init__(self, inputs: int):
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, inputs // 2, 1, bias=False)
        self.pool = nn.AvgPool2d(2, 2)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, inputs / 2, H / 2, W / 2)` of `x` `(B, inputs, H, W)`."""
        return self.pool(self.conv(self.norm(x).relu()))


class DenseNet(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import densenet
        >>> config = densenet.DenseNetConfig(depths=(1, 1, 1, 1), growth=8, stem=8, num_classes=10)
        >>> densenet.DenseNet(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 10])
    """

    CLASSIFIER = ("classifier",)

    def __init__(self, config: DenseNetConfig):
        super().__init__()
        self.config = config
        parts: dict[str, nn.Module] = {
            "conv0": nn.Conv2d(config.in_chans, config.stem, 7, 2, padding=3, bias=False),
            "norm0": nn.BatchNorm2d(config.stem),
            "relu0": nn.ReLU(),
            "pool0": nn.MaxPool2d(3, 2, padding=1),
        }
        width, channels = config.stem, [config.stem]
        for number, depth in enumerate(config.depths, 1):
            parts[f"denseblock{number}"] = DenseBlock(config, width, depth)
            width += depth * config.growth
            channels.append(width)
            if number < len(config.depths):
                parts[f"transition{number}"] = Transition(width)
                width //= 2
        parts["norm5"] = nn.BatchNorm2d(width)
        self.features = nn.Sequential(OrderedDict(parts))
        self.num_features, self.channels = width, tuple(channels)
        self.strides = tuple(2 ** (i + 1) for i in range(len(channels)))
        self.drop = nn.Dropout(config.drop_rate)
        self.classifier = nn.Linear(width, config.num_classes) if config.num_classes else nn.Identity()
        kaiming_convolutions(self)

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the maps behind the stem and the blocks, the finest first; the last one is normalised."""
        x, found = self.check_images(images), []
        for name, part in self.features.named_children():
            x = part(x)
            if name == "norm5":
                x = x.relu()
                found[-1] = x
            elif name == "relu0" or name.startswith("denseblock"):
                found.append(x)
        return found

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, num_classes)` of `images` `(B, in_chans, H, W)`."""
        return self.classifier(self.drop(self.maps(images)[-1].mean((2, 3))))


register_model("densenet121", DenseNet, DenseNetConfig())
register_model("densenet169", DenseNet, DenseNetConfig(depths=(6, 12, 32, 32)))
register_model("densenet201", DenseNet, DenseNetConfig(depths=(6, 12, 48, 32)))
register_model("densenet161", DenseNet, DenseNetConfig(depths=(6, 12, 36, 24), growth=48, stem=96))
