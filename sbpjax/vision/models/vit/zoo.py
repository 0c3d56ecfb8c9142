"""Named ViT variants: registers, mean pooling, layer scale, distillation token (DeiT).

    create_model("vit_base_patch16_224"), create_model("deit_tiny_distilled_patch16_224")

The blocks are those of `model.py`, and so `sharding.py` lays these models out as well; the weights are timm's.
Sources: arxiv.org/abs/2010.11929, 2012.12877 (DeiT), 2204.07118 (DeiT III), 2309.16588 (registers).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import OpValueError
from sbpjax.models.layers import normal_weights
from sbpjax.models.weights import Part

from ..blocks import DropPath, ImageConfig, ImageModel, drop_path_rates
from ..registry import register_model
from .config import ViTConfig
from .model import Block, Patches
from .weights import TIMM

EPS = 1e-6
WEIGHTS = dataclasses.replace(
    TIMM,
    names={
        **TIMM.names,
        "registers": "reg_token",
        "distilled": "dist_token",
        "blocks.*.scale1": "blocks.*.ls1.gamma",
        "blocks.*.scale2": "blocks.*.ls2.gamma",
        "pooled_norm": "fc_norm",
        "head_dist": "head_dist",
    },
)


@dataclass(frozen=True, kw_only=True)
class ImageViTConfig(ImageConfig):
    """The size of a model.

    Attributes:
        image_size: height and width of images.
        patch_size: height and width of a patch.
        hidden_size: size of a token's vector.
        num_hidden_layers: blocks.
        num_attention_heads: attention heads.
        class_token: whether a class token is classified; else the mean of all patches is.
        registers: tokens that stand for nothing.
        distillation: whether there is a second token and classifier, for the teacher's predictions.
        positions_of_all: whether the class token and the registers have positions too.
        layer_scale: first value of the learned scale of a branch; None for none.
        drop_path_rate: of the last block, in training; those before it have less.
        initializer_range: standard deviation of fresh matrices; narrow models that are trained from nothing want more.
    """

    image_size: int = 224
    patch_size: int = 16
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    class_token: bool = True
    registers: int = 0
    distillation: bool = False
    positions_of_all: bool = True
    layer_scale: float | None = None
    drop_path_rate: float = 0.0
    initializer_range: float = 0.02

    def __post_init__(self) -> None:
        super().__post_init__()
        self.block()  # refuses what contradicts itself
        if self.distillation and not self.class_token:
            seen = "distillation=True, class_token=False"
            self.refuse(seen, "a distillation token needs a class token", "class_token=True")

    def block(self) -> ViTConfig:
        """Return the configuration of the blocks."""
        return ViTConfig(
            image_size=self.image_size,
            patch_size=self.patch_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=self.intermediate_size,
            layer_norm_eps=EPS,
        )

    @property
    def intermediate_size(self) -> int:
        """Hidden units of the MLP."""
        return 4 * self.hidden_size

    @property
    def others(self) -> int:
        """How many tokens stand in front of those of the patches."""
        return self.class_token + self.distillation + self.registers


class ScaledBlock(Block):
    """A block whose branches have a learned scale, and are skipped for some images in training.

    Args:
        config: the model's.
        drop_path: the probability that a branch is left out.
    """

    def __init__(self, config: ImageViTConfig, drop_path: float):
        super().__init__(config.block())
        self.drop_path = DropPath(drop_path)
        self.scale1 = self.scale2 = None
        if config.layer_scale is not None:
            self.scale1 = nn.Parameter(flow.full((config.hidden_size,), config.layer_scale))
            self.scale2 = nn.Parameter(flow.full((config.hidden_size,), config.layer_scale))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return the stream `(B, T, D)` behind the block."""
        y = self.attention(self.norm1(x))
        x = x + self.drop_path(y if self.scale1 is None else y * self.scale1)
        y = self.mlp(self.norm2(x))
        return x + self.drop_path(y if self.scale2 is None else y * self.scale2)


class ImageViT(ImageModel):
    """Classify images.

    Args:
        config: its size.

    Example:
        >>> from sbpjax.vision.models.vit.zoo import ImageViT, ImageViTConfig
        >>> config = ImageViTConfig(
        ...     image_size=8, patch_size=4, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_classes=10
        ... )
        >>> ImageViT(config)(flow.zeros(2, 3, 8, 8)).shape
        sbpjax.Size([2, 10])
    """

    def __init__(self, config: ImageViTConfig):
        super().__init__()
        self.config = config
        width, patches = config.hidden_size, (config.image_size // config.patch_size) ** 2
        self.patches = Patches(config.in_chans, config.patch_size, width)
        self.first = nn.Parameter(flow.zeros(1, 1, width)) if config.class_token else None
        self.distilled = nn.Parameter(flow.zeros(1, 1, width)) if config.distillation else None
        self.registers = nn.Parameter(flow.zeros(1, config.registers, width)) if config.registers else None
        placed = patches + (config.others if config.positions_of_all else 0)
        self.positions = nn.Parameter(flow.zeros(1, placed, width))
        (rates,) = drop_path_rates(config.drop_path_rate, [config.num_hidden_layers])
        self.blocks = nn.ModuleList(ScaledBlock(config, rate) for rate in rates)
        # The norm stands behind a mean of the patches, and in front of the choice of a token.
        self.norm = nn.LayerNorm(width, eps=EPS) if config.class_token else nn.Identity()
        self.pooled_norm = nn.Identity() if config.class_token else nn.LayerNorm(width, eps=EPS)
        self.num_features, self.channels, self.strides = width, (width,), (config.patch_size,)
        self.CLASSIFIER = ("head", "head_dist") if config.distillation else ("head",)
        self.reset_classifier(config.num_classes)
        self.apply(normal_weights(config.initializer_range))
        for parameter in (self.patches.weight, self.first, self.distilled, self.registers, self.positions):
            if parameter is not None:
                nn.init.normal_(parameter, std=config.initializer_range)

    def weights_of(self, name: str) -> Part:
        """Return where a parameter is in timm's files."""
        part = WEIGHTS.part(name)
        assert part is not None, name  # the table has all of them
        return part

    def tokens(self, images: flow.Tensor) -> flow.Tensor:
        """Return the tokens `(B, T, D)` behind the last block, those of the patches last.

        Raises:
            OpValueError: images are not of the configuration's size.
        """
        size = self.config.image_size
        if tuple(self.check_images(images).shape[2:]) != (size, size):
            rule = f"its positions are made for images of {size} x {size}"
            fix = f"create_model(..., image_size={images.shape[2]})"
            raise OpValueError("ImageViT(images)", f"shape {tuple(images.shape)}", rule, fix)
        x = self.patches(images)  # (B, N, D)
        others = [token for token in (self.first, self.distilled, self.registers) if token is not None]
        others = [token.expand(x.shape[0], token.shape[1], x.shape[2]) for token in others]
        if self.config.positions_of_all:
            x = (flow.cat([*others, x], dim=1) if others else x) + self.positions
        else:
            x = x + self.positions
            x = flow.cat([*others, x], dim=1) if others else x  # (B, T, D)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def maps(self, images: flow.Tensor) -> list[flow.Tensor]:
        """Return one map: the patches' tokens at their places, `(B, D, H / P, W / P)`."""
        tokens, side = self.tokens(images)[:, self.config.others :], self.config.image_size // self.config.patch_size
        return [tokens.transpose(1, 2).reshape(tokens.shape[0], -1, side, side)]

    def both(self, images: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
        """Return the logits of the class token and those of the distillation token, `(B, num_classes)` each.

        Args:
            images: `(B, in_chans, H, W)`.
        """
        tokens = self.tokens(images)
        return self.head(tokens[:, 0]), self.head_dist(tokens[:, 1])

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return logits `(B, num_classes)` of `images` `(B, in_chans, H, W)`; with distillation the mean of both."""
        if self.config.distillation:
            one, other = self.both(images)
            return (one + other) / 2
        tokens = self.tokens(images)
        pooled = tokens[:, 0] if self.config.class_token else tokens[:, self.config.others :].mean(1)
        return self.head(self.pooled_norm(pooled))


def _config(size: str, patch: int, image: int, **fields) -> ImageViTConfig:
    """Return the configuration of a size: width, blocks, heads."""
    width, blocks, heads = _SIZES[size]
    return ImageViTConfig(
        image_size=image,
        patch_size=patch,
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=heads,
        **fields,
    )


_SIZES = {
    "tiny": (192, 12, 3), "small": (384, 12, 6), "medium": (512, 12, 8), "base": (768, 12, 12),
    "large": (1024, 24, 16), "huge": (1280, 32, 16),
}  # fmt: skip
_PLAIN = {
    "tiny": ((16, 224), (16, 384)),
    "small": ((8, 224), (16, 224), (16, 384), (32, 224), (32, 384)),
    "base": ((8, 224), (16, 224), (16, 384), (32, 224), (32, 384)),
    "large": ((14, 224), (16, 224), (16, 384), (32, 224), (32, 384)),
    "huge": ((14, 224),),
}
for _size, _kinds in _PLAIN.items():
    for _patch, _image in _kinds:
        register_model(f"vit_{_size}_patch{_patch}_{_image}", ImageViT, _config(_size, _patch, _image))
_POOLED = {"class_token": False, "positions_of_all": False}
for _size, _registers in (("medium", 1), ("medium", 4), ("base", 4)):
    register_model(
        f"vit_{_size}_patch16_reg{_registers}_gap_256",
        ImageViT,
        _config(_size, 16, 256, registers=_registers, **_POOLED | ({"layer_scale": 1e-5} if _size == "medium" else {})),
    )
for _size in ("small", "base", "large"):
    _fields = {"layer_scale": 1e-5, "num_classes": 0}
    register_model(f"vit_{_size}_patch14_dinov2", ImageViT, _config(_size, 14, 518, **_fields))
    _fields |= {"registers": 4, "positions_of_all": False}
    register_model(f"vit_{_size}_patch14_reg4_dinov2", ImageViT, _config(_size, 14, 518, **_fields))
for _size, _image in (("tiny", 224), ("small", 224), ("base", 224), ("base", 384)):
    register_model(f"deit_{_size}_patch16_{_image}", ImageViT, _config(_size, 16, _image))
    _two = _config(_size, 16, _image, distillation=True)
    register_model(f"deit_{_size}_distilled_patch16_{_image}", ImageViT, _two)
_THREE = {"positions_of_all": False, "layer_scale": 1e-6}
for _size, _image in (("small", 224), ("small", 384), ("medium", 224), ("base", 224), ("base", 384), ("large", 224)):
    register_model(f"deit3_{_size}_patch16_{_image}", ImageViT, _config(_size, 16, _image, **_THREE))
register_model("deit3_huge_patch14_224", ImageViT, _config("huge", 14, 224, **_THREE))
