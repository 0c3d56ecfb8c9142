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
    make_attention_mask,
    make_position_ids,
    normal_weights,
    rope_cos_sin,
    select_positions,
    token_loss,
)
from sbpjax.nn import functional as F

from .config import LlamaConfig

CosSin = tuple[flow.Tensor, flow.Tensor]  # cosines and sines of `rope_cos_sin`
Mask = tuple[flow.Tensor | None, bool]  # of `make_attention_mask`


class AttentionSubBlock(nn.Module):
    """The attention sub-block: attention on the normalised stream, added to it.

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
        cos_sin: CosSin,
        mask: Mask = (None, True),
        cache: KeyValues | None = None,
        cache_position: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the stream `(B, T, D)` after attention."""
        return x + self.attention(self.attention_norm(x), cos_sin, *mask, cache, cache_position)


class Block(AttentionSubBlock):
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
        cos_sin: CosSin,
        mask: Mask = (None, True),
        cache: KeyValues | None = None,
        cache_position: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the stream `(B, T, D)` after the block."""
        x = self.attend(x, cos_sin, mask, cache, cache_position)
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

    BLOCK: ClassVar[type[AttentionSubBlock]] = Block

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
        input_ids: flow.Tensor,
        attention_mask: flow.Tensor | None = None,
        position_ids: flow.Tensor | None = None,
        past_key_values: Sequence[KeyValues] | None = None,
        cache_position: flow.Tensor | None = None,
        logits_to_keep: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the logits of the next token at each position.

        Args:
            input_ids: `(B, T)` integers.
            attention_mask: `(B, T)`, nonzero for tokens, 0 for padding; None if there is no padding.
            position_ids: `(B, T)` or `(T,)`; by default 0 to T - 1.
            past_key_values: the cache of each block; `attention_mask` is then `(B, S)`, one entry for each slot.
            cache_position: with caches: the slot of the first input token.
            logits_to_keep: `(B,)`, the position in each row whose logits are returned; None for all.

        Returns:
            ``(B, T, V)``; with `logits_to_keep` ``(B, 1, V)``.
        """
        cos_sin, masks = (
            self.cos_sin(input_ids, position_ids),
            self.masks(input_ids, attention_mask, past_key_values, cache_position),
        )
        x = self.embedding(input_ids)  # (B, T, D)
        for i, block in enumerate(self.blocks):
            x = block(x, cos_sin, masks[i], None if past_key_values is None else past_key_values[i], cache_position)
        return self.logits(x, logits_to_keep)

    def cos_sin(self, input_ids: flow.Tensor, position_ids: flow.Tensor | None = None) -> CosSin:
        """Return the rotary cosines and sines of all blocks."""
        where = make_position_ids(input_ids) if position_ids is None else position_ids
        return rope_cos_sin(where, self.config.head_size, self.config.rope_theta, self.config.rope_scaling)

    def masks(
        self,
        input_ids: flow.Tensor,
        attention_mask: flow.Tensor | None = None,
        past_key_values: Sequence[KeyValues] | None = None,
        cache_position: flow.Tensor | None = None,
    ) -> list[Mask]:
        """Return the attention mask of each block."""
        windows = [self.config.window(i) for i in range(len(self.blocks))]
        if past_key_values is None:  # the blocks know their windows, of which their kernels skip what is hidden
            return [(make_attention_mask(input_ids, causal=False, attention_mask=attention_mask)[0], True)] * len(
                windows
            )
        masks = {
            w: make_attention_mask(
                input_ids, causal=True, window=w, attention_mask=attention_mask, cache_position=cache_position
            )
            for w in set(windows)
        }
        return [masks[window] for window in windows]

    def logits(self, x: flow.Tensor, logits_to_keep: flow.Tensor | None = None) -> flow.Tensor:
        """Return the logits `(B, T, V)` of a stream `(B, T, D)` after all blocks; with `logits_to_keep` `(B, 1, V)`."""
        x = self.norm(select_positions(x, logits_to_keep))
        return F.linear(x, self.embedding.weight) if self.head is None else self.head(x)

    def loss(
        self, input_ids: flow.Tensor, labels: flow.Tensor, attention_mask: flow.Tensor | None = None
    ) -> flow.Tensor:
        """Return the mean cross entropy of `labels` `(B, T)`, in nats per token; labels of -100 do not count."""
        return token_loss(self(input_ids, attention_mask), labels)
