"""Llama: a decoder-only transformer with RMS norms, rotary attention and gated MLPs.

Shapes at the line ends: B batch, T positions, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import (
    Attention,
    GatedMLP,
    KeyValues,
    attention_mask,
    normal_weights,
    only_at,
    positions_of,
    rotation,
    token_loss,
)
from sbpjax.nn import functional as F

from .config import LlamaConfig

Turns = tuple[flow.Tensor, flow.Tensor]  # cosines and sines of `rotation`
Mask = tuple[flow.Tensor | None, bool]  # of `attention_mask`


class AttentionHalf(nn.Module):
    """The first half of a block: attention on the normalised stream, added to it.

    Args:
        config: the model's.
        number: of the block.
    """

    def __init__(self, config: LlamaConfig, number: int):
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.attention = Attention(
            config.hidden_size,
            config.num_attention_heads,
            kv_heads=config.kv_heads,
            head_dim=config.head_size,
            bias=config.qkv_bias,
            out_bias=config.attention_bias,
            norm_eps=config.rms_norm_eps if config.qk_norm else None,
            dropout=config.attention_dropout,
            window=config.window(number),
        )

    def attend(
        self,
        x: flow.Tensor,
        turns: Turns,
        mask: Mask = (None, True),
        cache: KeyValues | None = None,
        at: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the stream `(B, T, D)` behind the attention."""
        return x + self.attention(self.attention_norm(x), turns, *mask, cache, at)


class Block(AttentionHalf):
    """Attention and MLP, each on a normalised input and added to the stream.

    Args:
        config: the model's.
        number: of the block.
    """

    def __init__(self, config: LlamaConfig, number: int):
        super().__init__(config, number)
        self.mlp_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.mlp = GatedMLP(config.hidden_size, config.intermediate_size, config.hidden_act, bias=config.mlp_bias)

    def forward(
        self,
        x: flow.Tensor,
        turns: Turns,
        mask: Mask = (None, True),
        cache: KeyValues | None = None,
        at: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the stream `(B, T, D)` behind the block."""
        x = self.attend(x, turns, mask, cache, at)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    """A decoder-only transformer over tokens.

    Args:
        config: its size.

    Example:
        >>> config = flow.models.llama.LlamaConfig(
        ...     vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=4
        ... )
        >>> flow.models.llama.Llama(config)(flow.zeros(2, 5, dtype=flow.int64)).shape
        sbpjax.Size([2, 5, 64])
    """

    BLOCK: ClassVar[type[AttentionHalf]] = Block

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.blocks = nn.ModuleList(self.BLOCK(config, i) for i in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        tied = config.tie_word_embeddings
        self.head = None if tied else nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.apply(normal_weights(config.initializer_range))

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
            tokens: `(B, T)` integers.
            present: `(B, T)`, nonzero where there is a token and not padding; None if there is no padding.
            positions: `(B, T)` or `(T,)`; by default 0 to T - 1.
            caches: one for each block, of the tokens before these; `present` is then `(B, S)`, of their slots.
            at: with caches: the slot of the first of these tokens.
            only: `(B,)`, the one token of each row whose logits are asked for; None for all.

        Returns:
            ``(B, T, V)``; with `only` ``(B, 1, V)``.
        """
        turns, masks = self.turns(tokens, positions), self.masks(tokens, present, caches, at)
        x = self.embedding(tokens)  # (B, T, D)
        for i, block in enumerate(self.blocks):
            x = block(x, turns, masks[i], None if caches is None else caches[i], at)
        return self.logits(x, only)

    def turns(self, tokens: flow.Tensor, positions: flow.Tensor | None = None) -> Turns:
        """Return the cosines and sines by which all blocks turn queries and keys."""
        where = positions_of(tokens) if positions is None else positions
        return rotation(where, self.config.head_size, self.config.rope_theta, self.config.rope_scaling)

    def masks(
        self,
        tokens: flow.Tensor,
        present: flow.Tensor | None = None,
        caches: Sequence[KeyValues] | None = None,
        at: flow.Tensor | None = None,
    ) -> list[Mask]:
        """Return which keys the queries of each block may read."""
        windows = [self.config.window(i) for i in range(len(self.blocks))]
        if caches is None:  # the blocks know their windows, of which their kernels skip what is hidden
            return [(attention_mask(tokens, causal=False, present=present)[0], True)] * len(windows)
        masks = {w: attention_mask(tokens, causal=True, window=w, present=present, at=at) for w in set(windows)}
        return [masks[window] for window in windows]

    def logits(self, x: flow.Tensor, only: flow.Tensor | None = None) -> flow.Tensor:
        """Return the logits `(B, T, V)` of a stream `(B, T, D)` behind all blocks; with `only` `(B, 1, V)`."""
        x = self.norm(only_at(x, only))
        return F.linear(x, self.embedding.weight) if self.head is None else self.head(x)

    def loss(self, tokens: flow.Tensor, targets: flow.Tensor, present: flow.Tensor | None = None) -> flow.Tensor:
        """Return the mean cross entropy of `targets` `(B, T)`, in nats per token; targets of -100 do not count."""
        return token_loss(self(tokens, present), targets)
