"""Res2Net: ResNet with multi-scale convolutions inside each block.

Of four groups the first is convolved; the second, added to what came of the first, is convolved; and so on; the last is
handed on. So one block sees several scales. Parameters have timm's names. Source: arxiv.org/abs/1904.01169.
"""

from __future__ import annotations

from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn

from .blocks import DropPath
from .registry import register_model
from .resnet import ResNet, ResNetConfig, shortcut


@dataclass(frozen=True, kw_only=True)
class Res2NetConfig(ResNetConfig):
    """The size of a model.

    Attributes:
        scale: into how many parts the channels inside a block are cut.
        group_width: channels of a part where `width` is 64.
    """

    scale: int = 4
    group_width: int = 26

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale < 2 or not self.bottleneck:
            seen = f"scale={self.scale}, bottleneck={self.bottleneck}"
            self.refuse(seen, "blocks are bottlenecks of two parts or more", "scale=4, bottleneck=True")


class Bottle2neck(nn.Module):
    """A bottleneck whose middle convolution is divided into groups of channels.

    Args:
        config: the model's.
        inputs: channels of the input.
        width: of the stage; a fourth of the channels handed on.
        stride: of the middle convolutions.
        dilations: of the middle convolutions: the first of both.
        drop_path: the probability that the branch is left out, in training.
    """

    def __init__(
        self,
        config: Res2NetConfig,
        inputs: int,
        width: int,
        stride: int,
        dilations: tuple[int, int],
        drop_path: float,
    ):
        super().__init__()
        self.part, outputs = width * config.group_width // 64 * config.groups, 4 * width
        inside, spread = self.part * config.scale, {"padding": dilations[0], "dilation": dilations[0]}
        self.conv1 = nn.Conv2d(inputs, inside, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inside)
        self.convs = nn.ModuleList(
            nn.Conv2d(self.part, self.part, 3, stride, groups=config.groups, bias=False, **spread)
            for _ in range(config.scale - 1)
        )
        self.bns = nn.ModuleList(nn.BatchNorm2d(self.part) for _ in range(config.scale - 1))
        self.conv3 = nn.Conv2d(inside, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.drop_path = DropPath(drop_path)
        self.downsample = shortcut(config, inputs, outputs, stride)
        # The first block of a stage changes the size of maps, so its parts cannot be added to each other.
        self.pool = None if self.downsample is None else nn.AvgPool2d(3, stride, padding=1)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, 4 width, H / stride, W / stride)` of `x` `(B, inputs, H, W)`."""
        parts = self.bn1(self.conv1(x)).relu().split(self.part, dim=1)
        found: list[flow.Tensor] = []
        for part, conv, norm in zip(parts, self.convs, self.bns, strict=False):
            joined = part + found[-1] if found and self.pool is None else part
            found.append(norm(conv(joined)).relu())
        found.append(parts[-1] if self.pool is None else self.pool(parts[-1]))
        y = self.drop_path(self.bn3(self.conv3(flow.cat(found, dim=1))))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class Res2Net(ResNet):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import res2net
        >>> config = res2net.Res2NetConfig(depths=(1, 1, 1, 1), width=16, num_classes=10)
        >>> res2net.Res2Net(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 10])
    """

    def block(self) -> type[nn.Module]:
        """Return the class of blocks."""
        return Bottle2neck


for _width, _scale in ((26, 4), (48, 2), (14, 8), (26, 6), (26, 8)):
    register_model(f"res2net50_{_width}w_{_scale}s", Res2Net, Res2NetConfig(group_width=_width, scale=_scale))
register_model("res2net101_26w_4s", Res2Net, Res2NetConfig(depths=(3, 4, 23, 3)))
register_model("res2next50", Res2Net, Res2NetConfig(groups=8, group_width=4))
register_model("res2net50d", Res2Net, Res2NetConfig(deep_stem=True))
