"""MobileNet v3: inverted bottlenecks found by architecture search, for phones.

Parameters have timm's names. Source: arxiv.org/abs/1905.02244.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn

from .blocks import ImageConfig, ImageModel, Stage, divisible, inverted_stages, kaiming_convolutions
from .blocks.inverted import Style
from .registry import register_model

SMALL = (
    (Stage("ds", 1, 3, 2, 1, 16, 0.25, "relu"),),
    (Stage("ir", 1, 3, 2, 4.5, 24, 0, "relu"), Stage("ir", 1, 3, 1, 3.67, 24, 0, "relu")),
    (Stage("ir", 1, 5, 2, 4, 40, 0.25), Stage("ir", 2, 5, 1, 6, 40, 0.25)),
    (Stage("ir", 2, 5, 1, 3, 48, 0.25),),
    (Stage("ir", 3, 5, 2, 6, 96, 0.25),),
    (Stage("cn", 1, 1, 1, 1, 576),),
)
LARGE = (
    (Stage("ds", 1, 3, 1, 1, 16, 0, "relu"),),
    (Stage("ir", 1, 3, 2, 4, 24, 0, "relu"), Stage("ir", 1, 3, 1, 3, 24, 0, "relu")),
    (Stage("ir", 3, 5, 2, 3, 40, 0.25, "relu"),),
    (Stage("ir", 1, 3, 2, 6, 80), Stage("ir", 1, 3, 1, 2.5, 80), Stage("ir", 2, 3, 1, 2.3, 80)),
    (Stage("ir", 2, 3, 1, 6, 112, 0.25),),
    (Stage("ir", 3, 5, 2, 6, 160, 0.25),),
    (Stage("cn", 1, 1, 1, 1, 960),),
)


@dataclass(frozen=True, kw_only=True)
class MobileNetConfig(ImageConfig):
    """The size of a model.

    Attributes:
        stages: rows of blocks; those of one tuple have one map size, and are numbered together in names of parameters.
        width: factor of channels.
        features: channels that the classifier reads.
        drop_rate: probability of a zero among them, in training.
        drop_path_rate: of the last block, in training; those before it have less.
    """

    stages: tuple[tuple[Stage, ...], ...] = LARGE
    width: float = 1.0
    features: int = 1280
    drop_rate: float = 0.0
    drop_path_rate: float = 0.0


class MobileNetV3(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import mobilenetv3
        >>> config = mobilenetv3.MobileNetConfig(width=0.5, features=64, num_classes=10)
        >>> mobilenetv3.MobileNetV3(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 10])
    """

    CLASSIFIER = ("classifier",)

    def __init__(self, config: MobileNetConfig):
        super().__init__()
        self.config = config
        style = Style(
            "hard_swish", "hard_sigmoid", "relu", lambda inside, _, part: divisible(inside * part), keeps_ones=False
        )
        stem = divisible(16 * config.width) if config.width >= 0.75 else 16
        self.conv_stem = style.conv(config.in_chans, stem, 3, 2)
        self.bn1 = nn.BatchNorm2d(stem)
        self.act = nn.Hardswish()
        rows = [
            [dataclasses.replace(s, channels=divisible(s.channels * config.width)) for s in r] for r in config.stages
        ]
        made = list(inverted_stages([s for row in rows for s in row], style, stem, config.drop_path_rate))
        stages, strides = [], []
        for row in rows:
            own, made = made[: len(row)], made[len(row) :]
            stages.append(nn.Sequential(*[block for blocks, _ in own for block in blocks]))
            strides.append(math.prod(stride for _, stride in own))
        self.blocks = nn.Sequential(*stages)
        last = len(rows) - 1
        self.kept = [i for i in range(last + 1) if i == last or strides[i + 1] > 1]
        self.channels = tuple(rows[i][-1].channels for i in self.kept)
        self.strides = tuple(2 * math.prod(strides[: i + 1]) for i in self.kept)
        self.num_features = config.features
        self.conv_head = nn.Conv2d(rows[-1][-1].channels, config.features, 1)
        self.drop = nn.Dropout(config.drop_rate)
        self.classifier = nn.Linear(config.features, config.num_classes) if config.num_classes else nn.Identity()
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
        pooled = self.maps(images)[-1].mean((2, 3), keepdim=True)
        return self.classifier(self.drop(self.act(self.conv_head(pooled)).flatten(1)))


register_model("mobilenetv3_small_100", MobileNetV3, MobileNetConfig(stages=SMALL, features=1024))
register_model("mobilenetv3_small_075", MobileNetV3, MobileNetConfig(stages=SMALL, features=1024, width=0.75))
register_model("mobilenetv3_large_100", MobileNetV3, MobileNetConfig())
register_model("mobilenetv3_large_075", MobileNetV3, MobileNetConfig(width=0.75))
