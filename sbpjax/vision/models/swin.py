"""Swin v1 and v2: hierarchical transformers with shifted-window attention.

Four stages, each with half the height and width of the last and twice its channels. Version 2 compares queries and keys
by their angle, takes the bias of a distance from a small network of it, and normalises behind a branch, not in front.
Parameters have timm's names. Sources: arxiv.org/abs/2103.14030, 2111.09883.
"""

from __future__ import annotations

from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import OpValueError
from sbpjax.nn import functional as F

from .blocks import MLP, DropPath, ImageConfig, ImageModel, PooledHead, drop_path_rates, truncated_weights, windows
from .blocks.windows import CosineWindowAttention, WindowAttention
from .registry import register_model


@dataclass(frozen=True, kw_only=True)
class SwinConfig(ImageConfig):
    """The size of a model.

    Attributes:
        version: 1 or 2.
        image_size: height and width of images.
        patch_size: height and width of a patch.
        window: height and width of a window, in patches; a smaller map is one window.
        depths: blocks of each stage.
        heads: attention heads of each stage.
        width: channels of the first stage.
        drop_rate: probability of a zero among the pooled features, in training.
        drop_path_rate: of the last block, in training; those before it have less.
        initializer_range: standard deviation of fresh matrices; narrow models that are trained from nothing want more.
    """

    version: int = 1
    image_size: int = 224
    patch_size: int = 4
    window: int = 7
    depths: tuple[int, ...] = (2, 2, 6, 2)
    heads: tuple[int, ...] = (3, 6, 12, 24)
    width: int = 96
    drop_rate: float = 0.0
    drop_path_rate: float = 0.1
    initializer_range: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.version not in (1, 2):
            self.refuse(f"version={self.version}", "version is 1 or 2", "version=1")
        halved = self.patch_size * 2 ** (len(self.depths) - 1)
        if self.image_size % halved:
            rule = f"a map is halved {len(self.depths) - 1} times after patches of {self.patch_size}"
            self.refuse(f"image_size={self.image_size}", rule, f"image_size={-(-self.image_size // halved) * halved}")


class SwinBlock(nn.Module):
    """Attention within windows and an MLP, each added to its input.

    Args:
        config: the model's.
        stage: which stage.
        size: height and width of its map.
        moves: whether the map is moved by half a window first.
        drop_path: the probability that a branch is left out, in training.
    """

    def __init__(self, config: SwinConfig, stage: int, size: int, moves: bool, drop_path: float):
        super().__init__()
        width, side = config.width * 2**stage, min(config.window, size)
        self.window, self.after = (side, side), config.version == 2
        self.shift = config.window // 2 if moves and size > config.window else 0
        self.padded = -(-size // side) * side
        self.norm1 = nn.LayerNorm(width)
        attention = CosineWindowAttention if self.after else WindowAttention
        self.attn = attention(width, config.heads[stage], self.window)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = MLP(width, 4 * width)
        self.drop_path = DropPath(drop_path)
        if self.after:  # a fresh block hands on its input
            nn.init.zeros_(self.norm1.weight)
            nn.init.zeros_(self.norm2.weight)
        mask = windows.shifted_window_mask((self.padded, self.padded), self.window, (self.shift, self.shift))
        self.register_buffer("mask", flow.tensor(mask) if self.shift else None, persistent=False)

    def _attend(self, x: flow.Tensor) -> flow.Tensor:
        size, lacking = x.shape[1], self.padded - x.shape[1]
        if self.shift:
            x = flow.roll(x, (-self.shift, -self.shift), (1, 2))
        if lacking:
            x = F.pad(x, (0, 0, 0, lacking, 0, lacking))
        x = self.attn(windows.cut(x, self.window), self.mask)  # (B, windows, tokens, D)
        x = windows.join_windows(x, self.window, (self.padded, self.padded))
        if lacking:
            x = x[:, :size, :size]
        return flow.roll(x, (self.shift, self.shift), (1, 2)) if self.shift else x

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, H, W, D)` of `x` `(B, H, W, D)`."""
        if self.after:
            x = x + self.drop_path(self.norm1(self._attend(x)))
            return x + self.drop_path(self.norm2(self.mlp(x)))
        x = x + self.drop_path(self._attend(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class Merge(nn.Module):
    """Half the height and width, twice the channels: four neighbours become one token.

    Args:
        config: the model's.
        width: channels of the input.
    """

    def __init__(self, config: SwinConfig, width: int):
        super().__init__()
        self.after = config.version == 2
        self.norm = nn.LayerNorm(2 * width if self.after else 4 * width)
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, H / 2, W / 2, 2 D)` of `x` `(B, H, W, D)`."""
        batch, height, width, depth = x.shape
        x = x.reshape(batch, height // 2, 2, width // 2, 2, depth).permute(0, 1, 3, 4, 2, 5)
        x = x.reshape(batch, height // 2, width // 2, 4 * depth)  # of each four the column's two first
        return self.norm(self.reduction(x)) if self.after else self.reduction(self.norm(x))


class SwinStage(nn.Module):
    """A stage: halves height and width (except in the first stage), then applies blocks.

    Args:
        config: the model's.
        number: which stage.
        rates: of stochastic depth, one a block.
    """

    def __init__(self, config: SwinConfig, number: int, rates: list[float]):
        super().__init__()
        size = config.image_size // config.patch_size // 2**number
        self.downsample = Merge(config, config.width * 2 ** (number - 1)) if number else nn.Identity()
        self.blocks = nn.Sequential(*[SwinBlock(config, number, size, i % 2 == 1, r) for i, r in enumerate(rates)])

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return the map behind the stage."""
        return self.blocks(self.downsample(x))


class SwinPatches(nn.Module):
    """The vectors of an image's patches, normalised.

    Args:
        config: the model's.
    """

    def __init__(self, config: SwinConfig):
        super().__init__()
        self.proj = nn.Conv2d(config.in_chans, config.width, config.patch_size, config.patch_size)
        self.norm = nn.LayerNorm(config.width)

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return `(B, H / P, W / P, D)` of `images` `(B, C, H, W)`."""
        return self.norm(self.proj(images).permute(0, 2, 3, 1))


class Swin(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import swin
        >>> config = swin.SwinConfig(
        ...     image_size=32, patch_size=2, window=4, depths=(2, 2), heads=(2, 4), width=8, num_classes=10
        ... )
        >>> swin.Swin(config)(flow.zeros(2, 3, 32, 32)).shape
        sbpjax.Size([2, 10])
    """

    CLASSIFIER = ("head.fc",)

    def __init__(self, config: SwinConfig):
        super().__init__()
        self.config = config
        self.patch_embed = SwinPatches(config)
        rates = drop_path_rates(config.drop_path_rate, config.depths)
        self.layers = nn.Sequential(*[SwinStage(config, i, row) for i, row in enumerate(rates)])
        self.channels = tuple(config.width * 2**i for i in range(len(rates)))
        self.strides = tuple(config.patch_size * 2**i for i in range(len(rates)))
        self.num_features = self.channels[-1]
        self.norm = nn.LayerNorm(self.num_features)
        self.head = PooledHead(self.num_features, config.num_classes, (1, 2), config.drop_rate)
        truncated_weights(self, config.initializer_range)

    def _stages(self, images: flow.Tensor) -> list[flow.Tensor]:
        size = self.config.image_size
        if tuple(self.check_images(images).shape[2:]) != (size, size):
            rule = f"its windows are made for images of {size} x {size}"
            fix = f"create_model(..., image_size={images.shape[2]})"
            raise OpValueError("Swin(images)", f"shape {tuple(images.shape)}", rule, fix)
        x, found = self.patch_embed(images), []
        for stage in self.layers:
            x = stage(x)
            found.append(x)
        return found

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return the maps behind the stages, the finest first: `(B, channels[i], ...)`."""
        return [x.permute(0, 3, 1, 2) for x in self._stages(images)]

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, num_classes)` of `images` `(B, in_chans, H, W)`."""
        return self.head(self.norm(self._stages(images)[-1]))


_DEEP = (2, 2, 18, 2)
_SIZES = {
    "tiny": ((2, 2, 6, 2), (3, 6, 12, 24), 96),
    "small": (_DEEP, (3, 6, 12, 24), 96),
    "base": (_DEEP, (4, 8, 16, 32), 128),
}
for _size, (_depths, _heads, _width) in _SIZES.items():
    _one = SwinConfig(depths=_depths, heads=_heads, width=_width)
    register_model(f"swin_{_size}_patch4_window7_224", Swin, _one)
    for _window in (8, 16):
        _two = SwinConfig(version=2, image_size=256, window=_window, depths=_depths, heads=_heads, width=_width)
        register_model(f"swinv2_{_size}_window{_window}_256", Swin, _two)
