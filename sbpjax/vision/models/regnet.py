"""RegNet X and Y: residual networks whose stage widths follow a quantized linear rule.

Block i would have ``w0 + wa * i`` channels; that is rounded to ``w0 * wm^n``, and blocks of one width are a stage. Y
adds squeeze and excite. Parameters have timm's names. Source: arxiv.org/abs/2003.13678.
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
    kaiming_convolutions,
    rising,
)
from .registry import register_model


@dataclass(frozen=True, kw_only=True)
class RegNetConfig(ImageConfig):
    """The size of a model.

    Attributes:
        depth: blocks.
        w0: channels of the first block.
        wa: channels that each further block would have more.
        wm: factor between widths.
        group: channels of a group in the 3 x 3 convolutions.
        squeeze: the part of a block's input channels that squeeze and excite keeps; 0 for none.
        stem: channels of the first convolution.
        drop_path_rate: of the last block, in training; those before it have less.
    """

    depth: int
    w0: int
    wa: float
    wm: float
    group: int
    squeeze: float = 0.0
    stem: int = 32
    drop_path_rate: float = 0.0

    def stages(self) -> list[tuple[int, int]]:
        """Return the channels and the number of blocks of each stage.

        Example:
            >>> from sbpjax.vision.models.regnet import RegNetConfig
            >>> RegNetConfig(depth=13, w0=24, wa=36.44, wm=2.49, group=8).stages()
            [(24, 1), (56, 1), (152, 4), (368, 7)]
        """
        counts: dict[int, int] = {}
        for i in range(self.depth):
            power = round(math.log((self.w0 + self.wa * i) / self.w0) / math.log(self.wm))
            width = round(self.w0 * self.wm**power / 8) * 8
            counts[width] = counts.get(width, 0) + 1
        groups = {width: min(self.group, width) for width in counts}
        return [(round(width / groups[width]) * groups[width], count) for width, count in counts.items()]


class Block(nn.Module):
    """Convolutions of 1 x 1, 3 x 3 in groups, and 1 x 1, added to the input.

    Args:
        config: the model's.
        inputs: channels of the input.
        width: of all three.
        stride: of the middle one.
        drop_path: the probability that the branch is left out, in training.
    """

    def __init__(self, config: RegNetConfig, inputs: int, width: int, stride: int, drop_path: float):
        super().__init__()
        self.conv1 = ConvNorm(inputs, width, 1)
        self.conv2 = ConvNorm(width, width, 3, stride, width // min(config.group, width))
        self.se = SqueezeExcite(width, round(inputs * config.squeeze)) if config.squeeze else nn.Identity()
        self.conv3 = ConvNorm(width, width, 1, act="none")
        self.drop_path = DropPath(drop_path)
        changes = stride > 1 or inputs != width
        self.downsample = ConvNorm(inputs, width, 1, stride, act="none") if changes else nn.Identity()

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, width, H / stride, W / stride)` of `x` `(B, inputs, H, W)`."""
        y = self.drop_path(self.conv3(self.se(self.conv2(self.conv1(x)))))
        return (y + self.downsample(x)).relu()


class RegNet(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import regnet
        >>> config = regnet.RegNetConfig(depth=4, w0=8, wa=8, wm=2, group=4, stem=8, num_classes=10)
        >>> regnet.RegNet(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 10])
    """

    CLASSIFIER = ("head.fc",)

    def __init__(self, config: RegNetConfig):
        super().__init__()
        self.config = config
        self.stem = ConvNorm(config.in_chans, config.stem, 3, 2)
        stages, channels = config.stages(), [config.stem]
        rates = rising(config.drop_path_rate, [count for _, count in stages])
        self.names = [f"s{i + 1}" for i in range(len(stages))]
        for name, (width, _), row in zip(self.names, stages, rates, strict=True):
            stage = nn.Module()
            for i, rate in enumerate(row):
                first = i == 0
                stage.add_module(
                    f"b{i + 1}", Block(config, channels[-1] if first else width, width, 2 if first else 1, rate)
                )
            self.add_module(name, stage)
            channels.append(width)
        self.num_features, self.channels = channels[-1], tuple(channels)
        self.strides = tuple(2 ** (i + 1) for i in range(len(channels)))
        self.head = PooledHead(self.num_features, config.num_classes)
        kaiming_convolutions(self)

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the maps behind the stem and the stages, the finest first: `(B, channels[i], ...)`."""
        x = self.stem(self.check_images(images))
        found = [x]
        for name in self.names:
            for block in getattr(self, name).children():
                x = block(x)
            found.append(x)
        return found

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, num_classes)` of `images` `(B, in_chans, H, W)`."""
        return self.head(self.maps(images)[-1])


_X = {
    "002": (13, 24, 36.44, 2.49, 8), "004": (22, 24, 24.48, 2.54, 16), "006": (16, 48, 36.97, 2.24, 24),
    "008": (16, 56, 35.73, 2.28, 16), "016": (18, 80, 34.01, 2.25, 24), "032": (25, 88, 26.31, 2.25, 48),
    "040": (23, 96, 38.65, 2.43, 40), "080": (23, 80, 49.56, 2.88, 120),
}  # fmt: skip
_Y = {
    "002": (13, 24, 36.44, 2.49, 8), "004": (16, 48, 27.89, 2.09, 8), "006": (15, 48, 32.54, 2.32, 16),
    "008": (14, 56, 38.84, 2.4, 16), "016": (27, 48, 20.71, 2.65, 24), "032": (21, 80, 42.63, 2.66, 24),
    "040": (22, 96, 31.41, 2.24, 64), "080": (17, 192, 76.82, 2.19, 56), "160": (18, 200, 106.23, 2.48, 112),
}  # fmt: skip
for _kind, _sizes, _squeeze in (("x", _X, 0.0), ("y", _Y, 0.25)):
    for _size, (_depth, _w0, _wa, _wm, _group) in _sizes.items():
        _config = RegNetConfig(depth=_depth, w0=_w0, wa=_wa, wm=_wm, group=_group, squeeze=_squeeze)
        register_model(f"regnet{_kind}_{_size}", RegNet, _config)
