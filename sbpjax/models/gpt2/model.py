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
    make_attention_mask,
    make_position_ids,
    normal_weights,
    select_positions,
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
        cache_position: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the stream `(B, T, D)` after the block."""
        x = x + self.drop(self.attention(self.norm1(x), None, mask, is_causal, cache, cache_position))
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
        input_ids: flow.Tensor,
        attention_mask: flow.Tensor | None = None,
        position_ids: flow.Tensor | None = None,
        past_key_values: Sequence[KeyValues] | None = None,
        cache_position: flow.Tensor | None = None,
        logits_to_keep: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the logits of the next token at each position.

        Args:
            input_ids: `(B, T)` integers, T at most `n_positions`.
            attention_mask: `(B, T)`, nonzero for tokens, 0 for padding; None if there is no padding.
            position_ids: `(B, T)` or `(T,)`; by default 0 to T - 1.
            past_key_values: the cache of each block; `attention_mask` is then `(B, S)`, one entry for each slot.
            cache_position: with caches: the slot of the first input token.
            logits_to_keep: `(B,)`, the position in each row whose logits are returned; None for all.

        Returns:
            ``(B, T, V)``; with `logits_to_keep` ``(B, 1, V)``.
        """
        mask, is_causal = make_attention_mask(
            input_ids, causal=past_key_values is not None, attention_mask=attention_mask, cache_position=cache_position
        )
        is_causal = is_causal or past_key_values is None
        x = self.token(input_ids) + self.position(
            make_position_ids(input_ids) if position_ids is None else position_ids
        )
        x = self.drop(x)  # (B, T, D)
        for i, block in enumerate(self.blocks):
            x = block(x, mask, is_causal, None if past_key_values is None else past_key_values[i], cache_position)
        return F.linear(self.norm(select_positions(x, logits_to_keep)), self.token.weight)  # (B, T, V)

    def loss(
        self, input_ids: flow.Tensor, labels: flow.Tensor, attention_mask: flow.Tensor | None = None
    ) -> flow.Tensor:
        """Return the mean cross entropy of `labels` `(B, T)`, in nats per token; labels of -100 do not count."""
        return token_loss(self(input_ids, attention_mask), labels)
