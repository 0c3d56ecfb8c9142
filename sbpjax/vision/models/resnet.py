"""ResNet and its variants: ResNeXt, wide, squeeze-and-excitation and "D" ResNets.

A stem cuts an image to a quarter of its height and width, four stages of residual blocks follow, each with half the
height and width of the last and twice its channels. Parameters have torchvision's names, which are timm's as well.
Sources: arxiv.org/abs/1512.03385, 1611.05431 (ResNeXt), 1605.07146 (wide), 1709.01507 (SE), 1812.01187 (D).
"""

from __future__ import annotations

from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn

from .blocks import DropPath, ImageConfig, ImageModel, SqueezeExcite, divisible, drop_path_rates, kaiming_convolutions
from .registry import register_model


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(ImageConfig):
    """The size of a model.

    Attributes:
        depths: blocks of each stage.
        bottleneck: whether a block has three convolutions, the outer two of 1 x 1; else two of 3 x 3.
        width: channels of the first stage inside of blocks.
        groups: of the 3 x 3 convolutions of bottlenecks.
        group_width: channels of a group where `width` is 64.
        squeeze: whether blocks end with squeeze and excite.
        deep_stem: three convolutions of 3 x 3 in place of one of 7 x 7, and a mean in front of each shortcut ("D").
        drop_path_rate: of the last block, in training; those before it have less.
        zero_init_last: whether the scale of the last norm of a block begins at 0, so that a fresh block hands on its
            input.
        output_stride: how many pixels a step in the last map is: 32, or 16 or 8 for finer maps, as segmentation wants
            them. Convolutions behind take every second or fourth cell then, so that weights fit any of them.

    Raises:
        ConfigError: `output_stride` is another, or not 32 with `deep_stem`.
    """

    depths: tuple[int, ...] = (3, 4, 6, 3)
    bottleneck: bool = True
    width: int = 64
    groups: int = 1
    group_width: int = 64
    squeeze: bool = False
    deep_stem: bool = False
    drop_path_rate: float = 0.0
    zero_init_last: bool = True
    output_stride: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output_stride not in (8, 16, 32) or (self.deep_stem and self.output_stride != 32):
            rule = "output_stride is 8, 16 or 32, and 32 with deep_stem"
            self.refuse(f"output_stride={self.output_stride}, deep_stem={self.deep_stem}", rule, "output_stride=32")

    def steps(self, stage: int) -> tuple[int, int, int]:
        """Return of a stage the stride of its first block, and the dilations of that and of the further ones."""
        before = 4 * 2 ** max(stage - 1, 0)  # pixels of a step in front of it, if all stages had strides
        first = max(before // self.output_stride, 1)
        if stage == 0:
            return 1, 1, 1
        return (2, 1, 1) if 2 * before <= self.output_stride else (1, first, 2 * first)

    @property
    def expansion(self) -> int:
        """How many times the channels of a stage's inside its blocks hand on."""
        return 4 if self.bottleneck else 1


def shortcut(config: ResNetConfig, inputs: int, outputs: int, stride: int) -> nn.Module | None:
    """Return what a block does to its input before it adds it; None for nothing."""
    if stride == 1 and inputs == outputs:
        return None
    if not config.deep_stem:
        return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
    pool = nn.AvgPool2d(2, stride, ceil_mode=True, count_include_pad=False) if stride > 1 else nn.Identity()
    return nn.Sequential(pool, nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))


class Basic(nn.Module):
    """Two convolutions of 3 x 3, added to the input.

    Args:
        config: the model's.
        inputs: channels of the input.
        width: channels of both convolutions.
        stride: of the first one.
        dilations: of the convolutions of 3 x 3.
        drop_path: the probability that the branch is left out, in training.
    """

    def __init__(
        self,
        config: ResNetConfig,
        inputs: int,
        width: int,
        stride: int,
        dilations: tuple[int, int],
        drop_path: float,
    ):
        super().__init__()
        first, second = dilations
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=first, dilation=first, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=second, dilation=second, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.se = SqueezeExcite(width, divisible(width / 16, 8, 0.0)) if config.squeeze else nn.Identity()
        self.drop_path = DropPath(drop_path)
        self.downsample = shortcut(config, inputs, width, stride)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, width, H / stride, W / stride)` of `x` `(B, inputs, H, W)`."""
        y = self.bn1(self.conv1(x)).relu()
        y = self.drop_path(self.se(self.bn2(self.conv2(y))))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class Bottleneck(nn.Module):
    """Convolutions of 1 x 1 to fewer channels, of 3 x 3, and of 1 x 1 to more, added to the input.

    Args:
        config: the model's.
        inputs: channels of the input.
        width: of the stage; a fourth of the channels handed on.
        stride: of the middle one.
        dilations: of the convolutions of 3 x 3.
        drop_path: the probability that the branch is left out, in training.
    """

    def __init__(
        self,
        config: ResNetConfig,
        inputs: int,
        width: int,
        stride: int,
        dilations: tuple[int, int],
        drop_path: float,
    ):
        super().__init__()
        inside, outputs = width * config.group_width // 64 * config.groups, width * config.expansion
        self.conv1 = nn.Conv2d(inputs, inside, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(inside)
        spread = {"padding": dilations[0], "dilation": dilations[0]}
        self.conv2 = nn.Conv2d(inside, inside, 3, stride, groups=config.groups, bias=False, **spread)
        self.bn2 = nn.BatchNorm2d(inside)
        self.conv3 = nn.Conv2d(inside, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.se = SqueezeExcite(outputs, divisible(outputs / 16, 8, 0.0)) if config.squeeze else nn.Identity()
        self.drop_path = DropPath(drop_path)
        self.downsample = shortcut(config, inputs, outputs, stride)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, 4 width, H / stride, W / stride)` of `x` `(B, inputs, H, W)`."""
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        y = self.drop_path(self.se(self.bn3(self.conv3(y))))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import resnet
        >>> config = resnet.ResNetConfig(depths=(1, 1, 1, 1), bottleneck=False, width=8, num_classes=10)
        >>> resnet.ResNet(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 10])
    """

    def __init__(self, config: ResNetConfig):
        super().__init__()
        self.config = config
        stem, half = config.width, config.width // 2
        self.conv1: nn.Module = nn.Conv2d(config.in_chans, stem, 7, 2, padding=3, bias=False)
        if config.deep_stem:
            self.conv1 = nn.Sequential(
                nn.Conv2d(config.in_chans, half, 3, 2, padding=1, bias=False),
                nn.BatchNorm2d(half),
                nn.ReLU(),
                nn.Conv2d(half, half, 3, padding=1, bias=False),
                nn.BatchNorm2d(half),
                nn.ReLU(),
                nn.Conv2d(half, stem, 3, padding=1, bias=False),
            )
        self.bn1 = nn.BatchNorm2d(stem)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        block, channels = self.block(), [stem]
        for number, rates in enumerate(drop_path_rates(config.drop_path_rate, config.depths)):
            width, stage = config.width * 2**number, []
            stride, first, further = config.steps(number)
            for i, rate in enumerate(rates):
                inputs = channels[-1] if i == 0 else width * config.expansion
                dilations = (further if i else first, further)
                stage.append(block(config, inputs, width, 1 if i else stride, dilations, rate))
            self.add_module(f"layer{number + 1}", nn.Sequential(*stage))
            channels.append(width * config.expansion)
        self.num_features, self.channels = channels[-1], tuple(channels)
        self.strides = tuple(min(2 ** (i + 1), config.output_stride) for i in range(len(channels)))
        self.fc = nn.Linear(self.num_features, config.num_classes) if config.num_classes else nn.Identity()
        self._initialise()

    def block(self) -> type[nn.Module]:
        """Return the class of blocks."""
        return Bottleneck if self.config.bottleneck else Basic

    def _initialise(self) -> None:
        kaiming_convolutions(self)
        for module in self.modules():
            if self.config.zero_init_last and isinstance(module, self.block()):
                nn.init.zeros_(getattr(module, "bn3" if self.config.bottleneck else "bn2").weight)

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the maps behind the stem and the stages, the finest first: `(B, channels[i], ...)`."""
        x = self.bn1(self.conv1(self.check_images(images))).relu()  # (B, C, H/2, W/2)
        found, x = [x], self.maxpool(x)
        for number in range(len(self.config.depths)):
            x = getattr(self, f"layer{number + 1}")(x)
            found.append(x)
        return found

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, num_classes)` of `images` `(B, in_chans, H, W)`."""
        return self.fc(self.maps(images)[-1].mean((2, 3)))


_SMALL = {"bottleneck": False}
_D = {"deep_stem": True}
_X32X4 = {"groups": 32, "group_width": 4}
_MODELS = {
    "resnet18": {"depths": (2, 2, 2, 2)} | _SMALL,
    "resnet34": {} | _SMALL,
    "resnet50": {},
    "resnet101": {"depths": (3, 4, 23, 3)},
    "resnet152": {"depths": (3, 8, 36, 3)},
    "resnet18d": {"depths": (2, 2, 2, 2)} | _SMALL | _D,
    "resnet34d": {} | _SMALL | _D,
    "resnet50d": {} | _D,
    "resnet101d": {"depths": (3, 4, 23, 3)} | _D,
    "resnet152d": {"depths": (3, 8, 36, 3)} | _D,
    "resnext50_32x4d": {} | _X32X4,
    "resnext50d_32x4d": {} | _X32X4 | _D,
    "resnext101_32x8d": {"depths": (3, 4, 23, 3), "groups": 32, "group_width": 8},
    "wide_resnet50_2": {"group_width": 128},
    "wide_resnet101_2": {"depths": (3, 4, 23, 3), "group_width": 128},
    "seresnet18": {"depths": (2, 2, 2, 2), "squeeze": True} | _SMALL,
    "seresnet50": {"squeeze": True},
    "seresnext50_32x4d": {"squeeze": True} | _X32X4,
}
for _name, _fields in _MODELS.items():
    register_model(_name, ResNet, ResNetConfig(**_fields))
