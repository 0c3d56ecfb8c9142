"""ConvNeXt v1 and v2: convolutional networks with the design of vision transformers.

A block convolves each channel by itself with a kernel of 7 x 7, normalises over channels, and has an MLP of four times
the width. Version 2 divides hidden units by their mean size over all channels (`ResponseNorm`) in place of a learned
scale of the branch. Parameters have timm's names. Sources: arxiv.org/abs/2201.03545, 2301.00808.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.weights import Part

from .blocks import ChannelNorm, DropPath, ImageConfig, ImageModel, PooledHead, drop_path_rates, truncated_weights
from .registry import register_model

EPS = 1e-6


@dataclass(frozen=True, kw_only=True)
class ConvNeXtConfig(ImageConfig):
    """The size of a model.

    Attributes:
        depths: blocks of each stage.
        widths: channels of each stage.
        layer_scale: first value of the learned scale of a branch; None for none.
        response_norm: whether hidden units are divided by their mean size (v2).
        drop_rate: probability of a zero among the pooled features, in training.
        drop_path_rate: of the last block, in training; those before it have less.
        conv_mlp: whether files have the products of an MLP as convolutions of 1 x 1, as timm's of the small sizes do.
    """

    depths: tuple[int, ...] = (3, 3, 9, 3)
    widths: tuple[int, ...] = (96, 192, 384, 768)
    layer_scale: float | None = 1e-6
    response_norm: bool = False
    drop_rate: float = 0.0
    drop_path_rate: float = 0.0
    conv_mlp: bool = False


class ResponseNorm(nn.Module):
    """``x + bias + weight * x * s / (mean of s over channels)``, `s` the size of a channel over the map.

    Args:
        channels: C.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(flow.zeros(channels))
        self.bias = nn.Parameter(flow.zeros(channels))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, H, W, C)` of `x` `(B, H, W, C)`."""
        size = x.norm(dim=(1, 2), keepdim=True)  # (B, 1, 1, C)
        return x + (self.bias + self.weight * (x * (size / (size.mean(-1, keepdim=True) + EPS))))


class ConvMLP(nn.Module):
    """The MLP of a block, over the last dim.

    Args:
        config: the model's.
        width: C.
    """

    def __init__(self, config: ConvNeXtConfig, width: int):
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.grn = ResponseNorm(4 * width) if config.response_norm else nn.Identity()
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, H, W, C)` of `x` `(B, H, W, C)`."""
        return self.fc2(self.grn(self.act(self.fc1(x))))


class Block(nn.Module):
    """A convolution of each channel, norm, MLP; added to the input.

    Args:
        config: the model's.
        width: C.
        drop_path: the probability that the branch is left out, in training.
    """

    def __init__(self, config: ConvNeXtConfig, width: int, drop_path: float):
        super().__init__()
        self.conv_dw = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=EPS)
        self.mlp = ConvMLP(config, width)
        scale = config.layer_scale
        self.gamma = None if scale is None else nn.Parameter(flow.full((width,), scale))
        self.drop_path = DropPath(drop_path)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, C, H, W)` of `x` `(B, C, H, W)`."""
        y = self.mlp(self.norm(self.conv_dw(x).permute(0, 2, 3, 1)))  # (B, H, W, C)
        y = y if self.gamma is None else y * self.gamma
        return x + self.drop_path(y.permute(0, 3, 1, 2))


class ConvStage(nn.Module):
    """A stage: halves height and width (except in the first stage), then applies blocks.

    Args:
        config: the model's.
        number: which stage.
        rates: of stochastic depth, one a block.
    """

    def __init__(self, config: ConvNeXtConfig, number: int, rates: list[float]):
        super().__init__()
        width, before = config.widths[number], config.widths[max(number - 1, 0)]
        halves = nn.Sequential(ChannelNorm(before, eps=EPS), nn.Conv2d(before, width, 2, 2))
        self.downsample = halves if number else nn.Identity()
        self.blocks = nn.Sequential(*[Block(config, width, rate) for rate in rates])

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return the map behind the stage."""
        return self.blocks(self.downsample(x))


class ConvNeXt(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import convnext
        >>> config = convnext.ConvNeXtConfig(depths=(1, 1, 1, 1), widths=(8, 16, 24, 32), num_classes=10)
        >>> convnext.ConvNeXt(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 10])
    """

    CLASSIFIER = ("head.fc",)

    def __init__(self, config: ConvNeXtConfig):
        super().__init__()
        self.config = config
        first = config.widths[0]
        self.stem = nn.Sequential(nn.Conv2d(config.in_chans, first, 4, 4), ChannelNorm(first, eps=EPS))
        rates = drop_path_rates(config.drop_path_rate, config.depths)
        self.stages = nn.Sequential(*[ConvStage(config, i, stage) for i, stage in enumerate(rates)])
        self.num_features, self.channels = config.widths[-1], config.widths
        self.strides = tuple(4 * 2**i for i in range(len(config.depths)))
        norm = nn.LayerNorm(self.num_features, eps=EPS)
        self.head = PooledHead(self.num_features, config.num_classes, dropout=config.drop_rate, norm=norm)
        truncated_weights(self)

    def weights_of(self, name: str) -> Part:
        """Return where a parameter is in timm's files."""
        is_product = name.endswith((".mlp.fc1.weight", ".mlp.fc2.weight"))
        return Part(name, ones=2 if self.config.conv_mlp and is_product else 0)

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the maps behind the stages, the finest first: `(B, channels[i], ...)`."""
        x, found = self.stem(self.check_images(images)), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        return found

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, num_classes)` of `images` `(B, in_chans, H, W)`."""
        return self.head(self.maps(images)[-1])


def _widths(first: int) -> tuple[int, ...]:
    return first, 2 * first, 4 * first, 8 * first


_SIZES = {
    "atto": ((2, 2, 6, 2), 40), "femto": ((2, 2, 6, 2), 48), "pico": ((2, 2, 6, 2), 64), "nano": ((2, 2, 8, 2), 80),
    "tiny": ((3, 3, 9, 3), 96), "small": ((3, 3, 27, 3), 96), "base": ((3, 3, 27, 3), 128),
    "large": ((3, 3, 27, 3), 192), "xlarge": ((3, 3, 27, 3), 256), "huge": ((3, 3, 27, 3), 352),
}  # fmt: skip
for _size, (_depths, _first) in _SIZES.items():
    _one = ConvNeXtConfig(depths=_depths, widths=_widths(_first), conv_mlp=_first <= 80)
    if _size != "huge":
        register_model(f"convnext_{_size}", ConvNeXt, _one)
    if _size != "xlarge":
        _two = dataclasses.replace(_one, response_norm=True, layer_scale=None)
        register_model(f"convnextv2_{_size}", ConvNeXt, _two)
