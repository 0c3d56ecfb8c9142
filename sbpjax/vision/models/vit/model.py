"""ViT: a transformer over image patches, with the class read from the first token.

Shapes at the line ends: B batch, C channels, P size of a patch, N patches, T = N + 1 tokens, D width.
"""

from __future__ import annotations

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import MLP, Attention, normal_weights
from sbpjax.nn import functional as F

from .config import ViTConfig


class Patches(nn.Module):
    """The vectors of an image's patches: a convolution whose windows do not overlap, as one product.

    Args:
        channels: C.
        size: P.
        width: D.
    """

    def __init__(self, channels: int, size: int, width: int):
        super().__init__()
        self.size = size
        self.weight = nn.Parameter(flow.zeros(width, channels, size, size))
        self.bias = nn.Parameter(flow.zeros(width))

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return `(B, N, D)` of `images` `(B, C, H, W)`, row by row."""
        batch, channels, height, width = images.shape
        rows, columns = height // self.size, width // self.size
        cut = images.reshape(batch, channels, rows, self.size, columns, self.size)
        cut = cut.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, -1)  # (B, N, C P P)
        return F.linear(cut, self.weight.reshape(self.weight.shape[0], -1), self.bias)


class Block(nn.Module):
    """Attention and MLP, each on the normalised stream and added to it.

    Args:
        config: the model's.
    """

    def __init__(self, config: ViTConfig):
        super().__init__()
        width, dropped = config.hidden_size, config.attention_probs_dropout_prob
        self.norm1 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.attention = Attention(
            width, config.num_attention_heads, bias=config.qkv_bias, out_bias=True, dropout=dropped
        )
        self.norm2 = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.mlp = MLP(width, config.intermediate_size, config.hidden_act)
        self.drop = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        """Return the stream `(B, T, D)` behind the block."""
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    """Classify images.

    Args:
        config: its size; `num_labels` is the number of classes.

    Example:
        >>> config = ViTConfig(
        ...     image_size=8, patch_size=4, num_channels=1, hidden_size=16, num_hidden_layers=1,
        ...     num_attention_heads=2, intermediate_size=32, num_labels=10,
        ... )
        >>> ViT(config)(flow.zeros(2, 1, 8, 8)).shape
        sbpjax.Size([2, 10])
    """

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.config = config
        self.patches = Patches(config.num_channels, config.patch_size, config.hidden_size)
        self.first = nn.Parameter(flow.zeros(1, 1, config.hidden_size))
        self.positions = nn.Parameter(flow.zeros(1, config.patches + 1, config.hidden_size))
        self.drop = nn.Dropout(config.hidden_dropout_prob)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.head = nn.Linear(config.hidden_size, config.num_labels)
        self.apply(normal_weights(config.initializer_range))
        for parameter in (self.patches.weight, self.first, self.positions):
            nn.init.normal_(parameter, std=config.initializer_range)

    def forward(self, images: flow.Tensor) -> flow.Tensor:
        """Return the logits of classes.

        Args:
            images: `(B, C, H, W)`, of the configuration's size.

        Returns:
            ``(B, num_labels)``.
        """
        x = self.patches(images)  # (B, N, D)
        first = self.first.expand(x.shape[0], 1, x.shape[2])
        x = self.drop(flow.cat([first, x], dim=1) + self.positions)  # (B, T, D)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])

    def loss(self, images: flow.Tensor, labels: flow.Tensor) -> flow.Tensor:
        """Return the mean cross entropy of `labels` `(B,)`, in nats per image."""
        return F.cross_entropy(self(images).float(), labels)
