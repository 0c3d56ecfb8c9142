"""ReXNet: inverted bottlenecks with linearly growing channels.

Where a block has more channels than its input, the input is added to the first of them. Parameters have timm's names.
Source: arxiv.org/abs/2007.00992.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn

from .blocks import (
    ConvNorm,
    DropPath,
    ImageConfig,
    ImageModel,
    PooledHead,
    SqueezeExcite,
    drop_path_rates,
    kaiming_convolutions,
)
from .registry import register_model


@dataclass(frozen=True, kw_only=True)
class ReXNetConfig(ImageConfig):
    """The size of a model.

    Attributes:
        width: factor of channels.
        repeats: blocks of each stage.
        strides: of the first block of each stage.
        first: channels of the first block.
        growth: channels that are added from the first block to the last.
        squeeze: squeeze and excite keeps one of so many channels, from the third stage on.
        drop_rate: probability of a zero among the pooled features, in training.
        drop_path_rate: of the last block, in training; those before it have less.
    """

    width: float = 1.0
    repeats: tuple[int, ...] = (1, 2, 2, 3, 3, 5)
    strides: tuple[int, ...] = (1, 2, 2, 2, 1, 2)
    first: int = 16
    growth: int = 180
    squeeze: int = 12
    drop_rate: float = 0.2
    drop_path_rate: float = 0.0

    def outputs(self) -> list[int]:
        """Return the channels of each block."""
        blocks, begin = sum(self.repeats), self.first / self.width if self.width < 1 else self.first
        return [round((begin + i * self.growth / blocks) * self.width) for i in range(blocks)]


class Block(nn.Module):
    """Expand by 1 x 1, convolve each channel by itself, squeeze and excite, narrow by 1 x 1.

    Args:
        inputs: channels of the input.
        outputs: of the output.
        expansion: channels inside, as a multiple of `inputs`.
        stride: of the middle convolution.
        squeeze: squeeze and excite keeps one of so many channels; 0 for none.
        drop_path: the probability that the branch is left out, in training.
    """

    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int, squeeze: int, drop_path: float):
        super().__init__()
        inside = inputs * expansion
        self.conv_exp = ConvNorm(inputs, inside, 1, act="silu") if expansion != 1 else nn.Identity()
        self.conv_dw = ConvNorm(inside, inside, 3, stride, inside, act="none")
        self.se = SqueezeExcite(inside, inside // squeeze, norm=True) if squeeze else nn.Identity()
        self.act_dw = nn.ReLU6()
        self.conv_pwl = ConvNorm(inside, outputs, 1, act="none")
        self.drop_path = DropPath(drop_path)
        self.adds = inputs if stride == 1 and inputs <= outputs else 0

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, outputs, H / stride, W / stride)` of `x` `(B, inputs, H, W)`."""
        y = self.conv_pwl(self.act_dw(self.se(self.conv_dw(self.conv_exp(x)))))
        if not self.adds:
            return y
        y = self.drop_path(y)
        return flow.cat([y[:, : self.adds] + x, y[:, self.adds :]], dim=1) if y.shape[1] > self.adds else y + x


class ReXNet(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import rexnet
        >>> config = rexnet.ReXNetConfig(repeats=(1, 1, 1, 1, 1, 1), growth=24, num_classes=10)
        >>> rexnet.ReXNet(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 10])
    """

    CLASSIFIER = ("head.fc",)

    def __init__(self, config: ReXNetConfig):
        super().__init__()
        self.config = config
        stem = round(32 * max(config.width, 1.0)) if config.width >= 1 else 32
        self.stem = ConvNorm(config.in_chans, stem, 3, 2, act="silu")
        outputs, inputs, row = config.outputs(), stem, []
        strides = []
        for number, rates in enumerate(drop_path_rates(config.drop_path_rate, config.repeats)):
            for i, rate in enumerate(rates):
                stride, channels = config.strides[number] if i == 0 else 1, outputs[len(row)]
                squeeze = config.squeeze if number > 1 else 0
                row.append(Block(inputs, channels, 1 if number == 0 else 6, stride, squeeze, rate))
                strides.append(stride)
                inputs = channels
        self.num_features = int(1280 * config.width)
        row.append(ConvNorm(inputs, self.num_features, 1, act="silu"))
        self.features = nn.Sequential(*row)
        last = len(outputs) - 1
        self.kept = [i for i in range(last + 1) if i == last or strides[i + 1] > 1]
        self.channels = tuple(outputs[i] for i in self.kept)
        self.strides = tuple(2 * math.prod(strides[: i + 1]) for i in self.kept)
        self.head = PooledHead(self.num_features, config.num_classes, dropout=config.drop_rate)
        kaiming_convolutions(self)

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the maps in front of each stride, and the last one, the finest first: `(B, channels[i], ...)`."""
        x, found = self.stem(self.check_images(images)), []
        for i, block in enumerate(self.features[:-1]):
            x = block(x)
            if i in self.kept:
                found.append(x)
        return found

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, num_classes)` of `images` `(B, in_chans, H, W)`."""
        return self.head(self.features[-1](self.maps(images)[-1]))


for _width in (1.0, 1.3, 1.5, 2.0, 3.0):
    register_model(f"rexnet_{round(100 * _width)}", ReXNet, ReXNetConfig(width=_width))
