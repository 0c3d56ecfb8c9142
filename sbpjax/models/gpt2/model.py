"""GPT-2: a decoder-only transformer with pre-norm blocks, learned positions and tied embeddings.

Shapes at the line ends: B batch, T positions, D width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import (
    MLP,
    Attention,
    KeyValues,
    attention_mask,
    normal_weights,
    only_at,
    positions_of,
    token_loss,
)
from sbpjax.nn import functional as F

from .config import GPT2Config


class Block(nn.Module):
    """Attention and MLP, each on a normalised input and added to the stream.

    Args:
        config: the model's.
    """

    def __init__(self, config: GPT2Config):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attention = Attention(config.n_embd, config.n_head, bias=True, dropout=config.attn_pdrop)
        self.norm2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = MLP(config.n_embd, config.hidden, config.activation_function)
        self.drop = nn.Dropout(config.resid_pdrop)

    def forward(
        self,
        x: flow.Tensor,
        mask: flow.Tensor | None = None,
        is_causal: bool = True,
        cache: KeyValues | None = None,
        at: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the stream `(B, T, D)` behind the block."""
        x = x + self.drop(self.attention(self.norm1(x), None, mask, is_causal, cache, at))
        return x + self.drop(self.mlp(self.norm2(x)))


class GPT2(nn.Module):
    """A decoder-only transformer over tokens.

    Args:
        config: its size.

    Example:
        >>> config = flow.models.gpt2.GPT2Config(vocab_size=64, n_positions=8, n_embd=16, n_layer=1, n_head=2)
        >>> flow.models.gpt2.GPT2(config)(flow.zeros(2, 5, dtype=flow.int64)).shape
        sbpjax.Size([2, 5, 64])
    """

    def __init__(self, config: GPT2Config):
        super().__init__()
        self.config = config
        self.token = nn.Embedding(config.vocab_size, config.n_embd)
        self.position = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = nn.Dropout(config.embd_pdrop)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.norm = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.apply(normal_weights(config.initializer_range))
        for name, parameter in self.named_parameters():
            if name.endswith(("out.weight", "down.weight")):  # what adds to the stream
                nn.init.normal_(parameter, std=config.initializer_range / math.sqrt(2 * config.n_layer))

    def forward(
        self,
        tokens: flow.Tensor,
        present: flow.Tensor | None = None,
        positions: flow.Tensor | None = None,
        caches: Sequence[KeyValues] | None = None,
        at: flow.Tensor | None = None,
        only: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the logits of the token behind each one.

        Args:
            tokens: `(B, T)` integers, T at most `n_positions`.
            present: `(B, T)`, nonzero where there is a token and not padding; None if there is no padding.
            positions: `(B, T)` or `(T,)`; by default 0 to T - 1.
            caches: one for each block, of the tokens before these; `present` is then `(B, S)`, of their slots.
            at: with caches: the slot of the first of these tokens.
            only: `(B,)`, the one token of each row whose logits are asked for; None for all.

        Returns:
            ``(B, T, V)``; with `only` ``(B, 1, V)``.
        """
        mask, is_causal = attention_mask(tokens, causal=caches is not None, present=present, at=at)
        is_causal = is_causal or caches is None
        x = self.token(tokens) + self.position(positions_of(tokens) if positions is None else positions)
        x = self.drop(x)  # (B, T, D)
        for i, block in enumerate(self.blocks):
            x = block(x, mask, is_causal, None if caches is None else caches[i], at)
        return F.linear(self.norm(only_at(x, only)), self.token.weight)  # (B, T, V)

    def loss(self, tokens: flow.Tensor, targets: flow.Tensor, present: flow.Tensor | None = None) -> flow.Tensor:
        """Return the mean cross entropy of `targets` `(B, T)`, in nats per token; targets of -100 do not count."""
        return token_loss(self(tokens, present), targets)
