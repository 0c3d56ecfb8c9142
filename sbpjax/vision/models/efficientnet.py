"""EfficientNet b0 to b7 and v2: inverted bottlenecks with compound scaling of width and depth.

    Stage("ir", 2, kernel=3, stride=2, expansion=6, channels=24)     # the first of two blocks has the stride

``ir`` expands by 1 x 1, convolves each channel by itself, and narrows by 1 x 1. ``ds`` does not expand. ``er`` expands
by a full convolution. ``cn`` is one convolution. Names with ``tf_`` are TensorFlow's: padding as it pads, 1e-3 in the
norms. Parameters have timm's names. Sources: arxiv.org/abs/1905.11946, 2104.00298 (v2).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn

from .blocks import (
    DropPath,
    ImageConfig,
    ImageModel,
    SameConv2d,
    SqueezeExcite,
    divisible,
    drop_path_rates,
    kaiming_convolutions,
)
from .registry import register_model


@dataclass(frozen=True)
class Stage:
    """A row of blocks.

    Attributes:
        kind: ``"ir"``, ``"ds"``, ``"er"`` or ``"cn"``.
        repeats: how many blocks.
        kernel: of the spatial convolution.
        stride: of the first block.
        expansion: channels inside, as a multiple of the input's.
        channels: of the output.
        squeeze: the part of the channels that squeeze and excite keeps; 0 for none.
    """

    kind: str
    repeats: int
    kernel: int
    stride: int
    expansion: float
    channels: int
    squeeze: float = 0.0


@dataclass(frozen=True)
class LayerStyle:
    """The convolutions and norms of a model.

    Attributes:
        same: whether convolutions are padded as TensorFlow pads.
        eps: of the norms.
    """

    same: bool = False
    eps: float = 1e-5

    def conv(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
        """Return a convolution without bias."""
        if self.same and stride > 1:
            return SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)
        return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)


class InvertedResidual(nn.Module):
    """One block of any kind: convolutions with a norm each, squeeze and excite before the last, and the input added.

    Args:
        stage: the row that it is of.
        style: the model's.
        inputs: channels of the input.
        stride: of the spatial convolution.
        drop_path: the probability that the branch is left out, in training.
    """

    def __init__(self, stage: Stage, style: LayerStyle, inputs: int, stride: int, drop_path: float):
        super().__init__()
        inside = inputs if stage.kind in ("ds", "cn") else divisible(inputs * stage.expansion)
        outputs = stage.channels
        # (name, convolution) in order; timm's names.
        convolutions: dict[str, list[tuple[str, nn.Conv2d]]] = {
            "ir": [
                ("conv_pw", style.conv(inputs, inside, 1)),
                ("conv_dw", style.conv(inside, inside, stage.kernel, stride, inside)),
                ("conv_pwl", style.conv(inside, outputs, 1)),
            ],
            "ds": [
                ("conv_dw", style.conv(inside, inside, stage.kernel, stride, inside)),
                ("conv_pw", style.conv(inside, outputs, 1)),
            ],
            "er": [
                ("conv_exp", style.conv(inputs, inside, stage.kernel, stride)),
                ("conv_pwl", style.conv(inside, outputs, 1)),
            ],
            "cn": [("conv", style.conv(inputs, outputs, stage.kernel, stride))],
        }
        self.steps: list[tuple[str, str]] = []
        for number, (name, conv) in enumerate(convolutions[stage.kind], 1):
            if name == ("conv_pw" if stage.kind == "ds" else "conv_pwl") and stage.squeeze:
                names = ("conv_reduce", "conv_expand")
                self.se = SqueezeExcite(inside, round(inputs * stage.squeeze), "silu", names)
                self.steps.append(("se", ""))
            self.add_module(name, conv)
            self.add_module(f"bn{number}", nn.BatchNorm2d(conv.out_channels, eps=style.eps))
            self.steps.append((name, f"bn{number}"))
        self.act = nn.SiLU()
        self.last_act = stage.kind == "cn"
        self.adds = stride == 1 and inputs == outputs
        self.drop_path = DropPath(drop_path)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, channels, H / stride, W / stride)` of `x` `(B, inputs, H, W)`."""
        y, last = x, self.steps[-1]
        for step in self.steps:
            name, norm = step
            y = getattr(self, name)(y)
            if norm:
                y = getattr(self, norm)(y)
                y = self.act(y) if step != last or self.last_act else y
        return x + self.drop_path(y) if self.adds else y


def inverted_stages(
    stages: Sequence[Stage], style: LayerStyle, inputs: int, drop_path_rate: float = 0.0
) -> Iterator[tuple[nn.Sequential, int]]:
    """Yield the blocks of each stage, and its stride.

    Args:
        stages: the rows.
        style: what they have in common.
        inputs: channels of the first one's input.
        drop_path_rate: of the last block; those before it have less.
    """
    for stage, rates in zip(stages, drop_path_rates(drop_path_rate, [s.repeats for s in stages]), strict=True):
        row = []
        for i, rate in enumerate(rates):
            row.append(InvertedResidual(stage, style, inputs, stage.stride if i == 0 else 1, rate))
            inputs = stage.channels
        yield nn.Sequential(*row), stage.stride


B0 = (
    Stage("ds", 1, 3, 1, 1, 16, 0.25),
    Stage("ir", 2, 3, 2, 6, 24, 0.25),
    Stage("ir", 2, 5, 2, 6, 40, 0.25),
    Stage("ir", 3, 3, 2, 6, 80, 0.25),
    Stage("ir", 3, 5, 1, 6, 112, 0.25),
    Stage("ir", 4, 5, 2, 6, 192, 0.25),
    Stage("ir", 1, 3, 1, 6, 320, 0.25),
)
V2_S = (
    Stage("cn", 2, 3, 1, 1, 24),
    Stage("er", 4, 3, 2, 4, 48),
    Stage("er", 4, 3, 2, 4, 64),
    Stage("ir", 6, 3, 2, 4, 128, 0.25),
    Stage("ir", 9, 3, 1, 6, 160, 0.25),
    Stage("ir", 15, 3, 2, 6, 256, 0.25),
)
V2_M = (
    Stage("cn", 3, 3, 1, 1, 24),
    Stage("er", 5, 3, 2, 4, 48),
    Stage("er", 5, 3, 2, 4, 80),
    Stage("ir", 7, 3, 2, 4, 160, 0.25),
    Stage("ir", 14, 3, 1, 6, 176, 0.25),
    Stage("ir", 18, 3, 2, 6, 304, 0.25),
    Stage("ir", 5, 3, 1, 6, 512, 0.25),
)


@dataclass(frozen=True, kw_only=True)
class EfficientNetConfig(ImageConfig):
    """The size of a model.

    Attributes:
        stages: of the smallest member.
        stem: channels of the first convolution, of the smallest member.
        width: factor of channels.
        depth: factor of blocks.
        features: channels that are pooled, of the smallest member.
        tensorflow: padding and norms as in TensorFlow.
        drop_rate: probability of a zero among the pooled features, in training.
        drop_path_rate: of the last block, in training; those before it have less.
    """

    stages: tuple[Stage, ...] = B0
    stem: int = 32
    width: float = 1.0
    depth: float = 1.0
    features: int = 1280
    tensorflow: bool = False
    drop_rate: float = 0.0
    drop_path_rate: float = 0.0

    def scale_stages(self) -> tuple[Stage, ...]:
        """Return the stages with the factors of this member."""
        return tuple(
            dataclasses.replace(
                s, channels=divisible(s.channels * self.width), repeats=math.ceil(s.repeats * self.depth)
            )
            for s in self.stages
        )


class EfficientNet(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import efficientnet
        >>> config = efficientnet.EfficientNetConfig(width=0.25, depth=0.1, features=32, num_classes=10)
        >>> efficientnet.EfficientNet(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 10])
    """

    CLASSIFIER = ("classifier",)

    def __init__(self, config: EfficientNetConfig):
        super().__init__()
        self.config = config
        eps = 1e-3 if config.tensorflow else 1e-5
        style = LayerStyle(config.tensorflow, eps)
        stem, self.num_features = divisible(config.stem * config.width), divisible(config.features * config.width)
        self.conv_stem = style.conv(config.in_chans, stem, 3, 2)
        self.bn1 = nn.BatchNorm2d(stem, eps=eps)
        self.act = nn.SiLU()
        scaled = config.scale_stages()
        made = list(inverted_stages(scaled, style, stem, config.drop_path_rate))
        self.blocks = nn.Sequential(*[blocks for blocks, _ in made])
        # The stages in front of a stride, and the last one, give the maps.
        self.kept = [i for i in range(len(made)) if i + 1 == len(made) or made[i + 1][1] > 1]
        self.channels = tuple(scaled[i].channels for i in self.kept)
        self.strides = tuple(2 * math.prod(stride for _, stride in made[: i + 1]) for i in self.kept)
        self.conv_head = style.conv(scaled[-1].channels, self.num_features, 1)
        self.bn2 = nn.BatchNorm2d(self.num_features, eps=eps)
        self.drop = nn.Dropout(config.drop_rate)
        self.classifier = nn.Linear(self.num_features, config.num_classes) if config.num_classes else nn.Identity()
        kaiming_convolutions(self)

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the maps in front of each stride, and the last one, the finest first: `(B, channels[i], ...)`."""
        x = self.act(self.bn1(self.conv_stem(self.check_images(images))))  # (B, C, H/2, W/2)
        found = []
        for i, stage in enumerate(self.blocks):
            x = stage(x)
            if i in self.kept:
                found.append(x)
        return found

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, num_classes)` of `images` `(B, in_chans, H, W)`."""
        x = self.act(self.bn2(self.conv_head(self.maps(images)[-1])))  # (B, F, H/32, W/32)
        return self.classifier(self.drop(x.mean((2, 3))))


# Factors of width and depth.
_FACTORS = ((1.0, 1.0), (1.0, 1.1), (1.1, 1.2), (1.2, 1.4), (1.4, 1.8), (1.6, 2.2), (1.8, 2.6), (2.0, 3.1))
for _prefix, _tf in (("", False), ("tf_", True)):
    for _n, (_width, _depth) in enumerate(_FACTORS):
        register_model(
            f"{_prefix}efficientnet_b{_n}", EfficientNet, EfficientNetConfig(width=_width, depth=_depth, tensorflow=_tf)
        )
    for _size, _stages in (("s", V2_S), ("m", V2_M)):
        register_model(
            f"{_prefix}efficientnetv2_{_size}",
            EfficientNet,
            EfficientNetConfig(stages=_stages, stem=24, tensorflow=_tf),
        )
