"""MLP-Mixer: image patches mixed by MLPs over tokens and over channels, without attention.

Parameters have timm's names. Source: arxiv.org/abs/2105.01601.
"""

from __future__ import annotations

from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import OpValueError

from .blocks import MLP, DropPath, ImageConfig, ImageModel, truncated_weights
from .registry import register_model

EPS = 1e-6


@dataclass(frozen=True, kw_only=True)
class MixerConfig(ImageConfig):
    """The size of a model.

    Attributes:
        image_size: height and width of images.
        patch_size: height and width of a patch.
        depth: blocks.
        width: of a token.
        drop_path_rate: that a branch is left out, in training.
    """

    image_size: int = 224
    patch_size: int = 16
    depth: int = 12
    width: int = 768
    drop_path_rate: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size % self.patch_size:
            seen = f"image_size={self.image_size}, patch_size={self.patch_size}"
            self.refuse(seen, "an image is cut into whole patches", f"image_size={14 * self.patch_size}")


class Patches(nn.Module):
    """A convolution whose windows do not overlap.

    Args:
        config: the model's.
    """

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.proj = nn.Conv2d(config.in_chans, config.width, config.patch_size, config.patch_size)

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return tokens `(B, N, D)` of `images` `(B, C, H, W)`, row by row."""
        return self.proj(images).flatten(2).transpose(1, 2)


class Block(nn.Module):
    """An MLP over tokens and one over channels, each added to its input.

    Args:
        config: the model's.
    """

    def __init__(self, config: MixerConfig):
        super().__init__()
        tokens = (config.image_size // config.patch_size) ** 2
        self.norm1 = nn.LayerNorm(config.width, eps=EPS)
        self.mlp_tokens = MLP(tokens, config.width // 2)
        self.norm2 = nn.LayerNorm(config.width, eps=EPS)
        self.mlp_channels = MLP(config.width, 4 * config.width)
        self.drop_path = DropPath(config.drop_path_rate)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return `(B, N, D)` of `x` `(B, N, D)`."""
        x = x + self.drop_path(self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2))
        return x + self.drop_path(self.mlp_channels(self.norm2(x)))


class Mixer(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models import mixer
        >>> config = mixer.MixerConfig(image_size=16, patch_size=4, depth=1, width=8, num_classes=10)
        >>> mixer.Mixer(config)(flow.zeros(2, 3, 16, 16)).shape
        sbpjax.Size([2, 10])
    """

    CLASSIFIER = ("head",)

    def __init__(self, config: MixerConfig):
        super().__init__()
        self.config = config
        self.stem = Patches(config)
        self.blocks = nn.Sequential(*[Block(config) for _ in range(config.depth)])
        self.norm = nn.LayerNorm(config.width, eps=EPS)
        self.num_features, self.channels, self.strides = config.width, (config.width,), (config.patch_size,)
        self.head = nn.Linear(config.width, config.num_classes) if config.num_classes else nn.Identity()
        truncated_weights(self)

    def tokens(self, images: flow.Tensor) -> flow.Tensor:
        """Return the normalised tokens `(B, N, D)` behind the last block.

        Raises:
            OpValueError: images are not of the configuration's size.
        """
        size = self.config.image_size
        if tuple(self.check_images(images).shape[2:]) != (size, size):
            rule = f"the MLP over tokens is made for images of {size} x {size}"
            fix = f"create_model(..., image_size={images.shape[2]})"
            raise OpValueError("Mixer(images)", f"shape {tuple(images.shape)}", rule, fix)
        return self.norm(self.blocks(self.stem(images)))

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return one map: the tokens at their places, `(B, D, H / P, W / P)`."""
        tokens, side = self.tokens(images), self.config.image_size // self.config.patch_size
        return [tokens.transpose(1, 2).reshape(tokens.shape[0], -1, side, side)]

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, num_classes)` of `images` `(B, in_chans, H, W)`."""
        return self.head(self.tokens(images).mean(1))


for _size, (_depth, _width) in {"s": (8, 512), "b": (12, 768), "l": (24, 1024)}.items():
    for _patch in (32, 16):
        register_model(f"mixer_{_size}{_patch}_224", Mixer, MixerConfig(patch_size=_patch, depth=_depth, width=_width))
