"""A GPT in PyTorch's style, without a mention of devices; `sharding.py` has its layouts.

Shapes at the line ends: B batch, T context, D width, H heads, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F


@dataclass(frozen=True)
class GPTConfig:
    """The size of a model.

    Attributes:
        vocab_size: number of token kinds.
        context: the longest input.
        layers: number of blocks.
        heads: attention heads; must divide the width.
        width: size of a token's vector.
        dropout: probability of a zero in training.
    """

    vocab_size: int = 256
    context: int = 128
    layers: int = 4
    heads: int = 4
    width: int = 128
    dropout: float = 0.0


class Attention(nn.Module):
    """Causal self-attention.

    The rows of `qkv` are ordered by head, each head's query, key and value next to each other, so that a split of
    the rows over ranks gives every rank whole heads.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.heads = config.heads
        self.dropout = config.dropout
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        batch, length, width = x.shape  # (B, T, D)
        qkv = self.qkv(x).reshape(batch, length, self.heads, 3 * width // self.heads)  # (B, T, H, 3D/H)
        q, k, v = qkv.permute(0, 2, 1, 3).chunk(3, dim=-1)  # each (B, H, T, D/H)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        y = y.permute(0, 2, 1, 3).reshape(batch, length, width)  # (B, T, D)
        return self.out(y)


class MLP(nn.Module):
    """Two linear layers with a gelu between them."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.down(F.gelu(self.up(x), approximate="tanh"))  # (B, T, 4D) inside, (B, T, D)


class Block(nn.Module):
    """Attention and MLP, each on a normalised input and added to the stream."""

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.norm2 = nn.LayerNorm(config.width)
        self.mlp = MLP(config)
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    """A decoder-only transformer over tokens; the output matrix is the embedding table.

    Args:
        config: its size.
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocab_size, config.width)
        self.position = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.apply(self._initialise)
        for name, parameter in self.named_parameters():
            if name.endswith(("out.weight", "down.weight")):  # outputs added to the stream: smaller with depth
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * config.layers))

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, tokens: flow.Tensor) -> flow.Tensor:
        """Return the logits `(B, T, V)` of the token after each of `tokens` `(B, T)`."""
        length = tokens.shape[1]
        x = self.token(tokens) + self.position.weight[:length]  # (B, T, D)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.token.weight)  # (B, T, V)

    def loss(self, tokens: flow.Tensor, targets: flow.Tensor) -> flow.Tensor:
        """Return the mean cross entropy of `targets` `(B, T)`, in nats per token."""
        logits = self(tokens)
        return F.cross_entropy(logits.reshape(-1, self.config.vocab_size), targets.reshape(-1))
