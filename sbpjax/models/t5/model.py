"""T5: a transformer encoder, and a decoder with cross-attention to it.

Shapes at the line ends: B batch, S positions of the source, T of the target, D width, H heads, C head, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import sbpjax as flow
from sbpjax import nn
from sbpjax.models import layers
from sbpjax.models.layers import MLP, GatedMLP, KeyValues, RelativeBias, make_position_ids, token_loss
from sbpjax.nn import functional as F

from .config import T5Config


class Attention(layers.Attention):
    """Attention whose scores are not scaled.

    Args:
        config: the model's.
        is_cross: whether keys and values are of the source.
    """

    def __init__(self, config: T5Config, is_cross: bool = False):
        super().__init__(config.d_model, config.num_heads, head_dim=config.d_kv, dropout=config.dropout_rate)
        self.is_cross = is_cross

    def keys_values(self, x: flow.Tensor) -> tuple[flow.Tensor, flow.Tensor]:
        """Return keys and values, two `(B, H, S, C)`, of what is attended to, `(B, S, D)`."""
        return self._split_heads(self.k(x), self.heads), self._split_heads(self.v(x), self.heads)

    def forward(  # type: ignore[override]
        self,
        x: flow.Tensor,
        bias: flow.Tensor,
        memory: tuple[flow.Tensor, flow.Tensor] | None = None,
        cache: KeyValues | None = None,
        cache_position: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return `(B, T, D)`: what each position of `x` gathers, with `bias` `(B, H, T, S)` added to the scores."""
        q = self._split_heads(self.q(x), self.heads)  # (B, H, T, C)
        k, v = self.keys_values(x) if memory is None else memory
        if cache is not None and cache_position is not None:
            k, v = cache.extend(k, v, cache_position)
        p = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype), dropout_p=p, scale=1.0)
        return self.out(y.transpose(1, 2).reshape(*x.shape[:2], self.heads * self.head_dim))


class Block(nn.Module):
    """Attention, in the decoder attention to the source, and MLP, each on a normalised input and added to the stream.

    Args:
        config: the model's.
        is_decoder: whether it looks at a source.
    """

    def __init__(self, config: T5Config, is_decoder: bool):
        super().__init__()

        def norm() -> nn.RMSNorm:
            return nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)

        self.attention_norm, self.attention = norm(), Attention(config)
        if is_decoder:
            self.cross_norm, self.cross = norm(), Attention(config, is_cross=True)
        sizes = config.d_model, config.d_ff, config.activation
        self.mlp_norm = norm()
        self.mlp = None if config.is_gated else MLP(*sizes, bias=False, dropout=config.dropout_rate)
        self.gated = GatedMLP(*sizes, dropout=config.dropout_rate) if config.is_gated else None
        self.drop = nn.Dropout(config.dropout_rate)

    def forward(
        self,
        x: flow.Tensor,
        bias: flow.Tensor,
        encoder_hidden_states: flow.Tensor | tuple[flow.Tensor, flow.Tensor] | None = None,
        source_bias: flow.Tensor | None = None,
        cache: KeyValues | None = None,
        cache_position: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the stream `(B, T, D)` after the block.

        Args:
            x: `(B, T, D)`.
            bias: added to the scores of self-attention.
            encoder_hidden_states: `(B, S, D)`, or its keys and values.
            source_bias: added to the scores of cross-attention.
            cache: keys and values of earlier tokens.
            cache_position: with a cache: the slot of the first token.
        """
        x = x + self.drop(self.attention(self.attention_norm(x), bias, None, cache, cache_position))
        if encoder_hidden_states is not None and source_bias is not None:
            memory = (
                encoder_hidden_states
                if isinstance(encoder_hidden_states, tuple)
                else self.cross.keys_values(encoder_hidden_states)
            )
            x = x + self.drop(self.cross(self.cross_norm(x), source_bias, memory))
        mlp = self.mlp if self.gated is None else self.gated
        assert mlp is not None
        return x + self.drop(mlp(self.mlp_norm(x)))


class BlockStack(nn.Module):
    """The blocks of the encoder or of the decoder, with their shared relative position bias.

    Args:
        config: the model's.
        is_decoder: whether they are the decoder's.
    """

    def __init__(self, config: T5Config, is_decoder: bool):
        super().__init__()
        buckets, reach = config.relative_attention_num_buckets, config.relative_attention_max_distance
        self.relative = RelativeBias(config.num_heads, buckets, reach, both=not is_decoder)
        count = config.decoder_layers if is_decoder else config.num_layers
        self.blocks = nn.ModuleList(Block(config, is_decoder) for _ in range(count))
        self.norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.drop = nn.Dropout(config.dropout_rate)


class T5(nn.Module):
    """An encoder-decoder transformer over tokens.

    Args:
        config: its size.

    Example:
        >>> config = flow.models.t5.T5Config(vocab_size=64, d_model=16, d_kv=4, d_ff=32, num_layers=1, num_heads=4)
        >>> input_ids = flow.zeros(2, 5, dtype=flow.int64)
        >>> flow.models.t5.T5(config)(input_ids, input_ids[:, :3]).shape
        sbpjax.Size([2, 3, 64])
    """

    def __init__(self, config: T5Config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder, self.decoder = BlockStack(config, False), BlockStack(config, True)
        tied = config.tie_word_embeddings
        self.head = None if tied else nn.Linear(config.d_model, config.vocab_size, bias=False)
        self._initialise()

    def _initialise(self) -> None:
        config, factor = self.config, self.config.initializer_factor
        width = config.d_model**-0.5
        kinds = {
            "embedding": 1.0,
            "head": 1.0,
            "relative": width,
            "q": width * config.d_kv**-0.5,
            "out": (config.num_heads * config.d_kv) ** -0.5,
            "down": config.d_ff**-0.5,
        }
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=factor * kinds.get(name.split(".")[-2], width))

    def encode(self, input_ids: flow.Tensor, attention_mask: flow.Tensor | None = None) -> flow.Tensor:
        """Return the vectors `(B, S, D)` of a source.

        Args:
            input_ids: `(B, S)` integers.
            attention_mask: `(B, S)`, nonzero for tokens, 0 for padding; None if there is no padding.
        """
        x = self.encoder.drop(self.embedding(input_ids))  # (B, S, D)
        position_ids = make_position_ids(x)
        bias = _mask_scores(self.encoder.relative(position_ids, position_ids), attention_mask)
        for block in self.encoder.blocks:
            x = block(x, bias)
        return self.encoder.drop(self.encoder.norm(x))

    def decode(
        self,
        decoder_input_ids: flow.Tensor,
        encoder_hidden_states: flow.Tensor | Sequence[tuple[flow.Tensor, flow.Tensor]],
        encoder_attention_mask: flow.Tensor | None = None,
        attention_mask: flow.Tensor | None = None,
        past_key_values: Sequence[KeyValues] | None = None,
        cache_position: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the logits `(B, T, V)` of the next token at each position of the target.

        Args:
            decoder_input_ids: `(B, T)`, the start and the labels but the last.
            encoder_hidden_states: `encode`'s vectors, or of every block the keys and values of them.
            encoder_attention_mask: `(B, S)`, as of `encode`.
            attention_mask: with caches of N slots, `(B, N)`: nonzero where there is a token.
            past_key_values: the cache of each block.
            cache_position: with caches: the slot of the first input token.
        """
        x = self.decoder.drop(self.embedding(decoder_input_ids))  # (B, T, D)
        queries = keys = make_position_ids(x)
        if cache_position is not None and attention_mask is not None:
            queries, keys = queries + cache_position, make_position_ids(attention_mask)
        bias = self.decoder.relative(queries, keys)  # (1, H, T, T), with caches (1, H, T, N)
        bias = _mask_scores(flow.where(keys[None, :] > queries[:, None], -math.inf, bias), attention_mask)
        vectors = (
            encoder_hidden_states if isinstance(encoder_hidden_states, flow.Tensor) else encoder_hidden_states[0][0]
        )
        source_bias = flow.zeros_like(vectors[..., 0])  # (B, S), or of keys (B, H, S)
        source_bias = source_bias[:, None, None] if source_bias.ndim == 2 else source_bias[:, :, None]
        source_bias = _mask_scores(source_bias, encoder_attention_mask)
        for i, block in enumerate(self.decoder.blocks):
            memory = (
                encoder_hidden_states if isinstance(encoder_hidden_states, flow.Tensor) else encoder_hidden_states[i]
            )
            x = block(
                x, bias, memory, source_bias, None if past_key_values is None else past_key_values[i], cache_position
            )
        x = self.decoder.drop(self.decoder.norm(x))
        if self.config.is_scaled:
            x = x * self.config.d_model**-0.5
        return F.linear(x, self.embedding.weight) if self.head is None else self.head(x)  # (B, T, V)

    def forward(
        self, input_ids: flow.Tensor, decoder_input_ids: flow.Tensor, attention_mask: flow.Tensor | None = None
    ) -> flow.Tensor:
        """Return the logits `(B, T, V)` of the decoder.

        Args:
            input_ids: `(B, S)` integers, the source.
            decoder_input_ids: `(B, T)`, the start and the labels but the last.
            attention_mask: `(B, S)`, nonzero for tokens, 0 for padding; None if there is no padding.
        """
        return self.decode(decoder_input_ids, self.encode(input_ids, attention_mask), attention_mask)

    def shift_right(self, labels: flow.Tensor) -> flow.Tensor:
        """Return the decoder's input for labels `(B, T)`: the start token, then all labels but the last."""
        start = flow.full_like(labels[:, :1], self.config.decoder_start_token_id)
        decoder_input_ids = flow.cat([start, labels[:, :-1]], dim=1)
        return flow.where(decoder_input_ids == -100, self.config.pad_token_id, decoder_input_ids)

    def loss(
        self, input_ids: flow.Tensor, labels: flow.Tensor, attention_mask: flow.Tensor | None = None
    ) -> flow.Tensor:
        """Return the mean cross entropy of `labels` `(B, T)`, in nats per token; labels of -100 do not count."""
        return token_loss(self(input_ids, self.shift_right(labels), attention_mask), labels)


def _mask_scores(bias: flow.Tensor, attention_mask: flow.Tensor | None) -> flow.Tensor:
    """Return scores `(…, T, S)`, minus infinity at keys that are padding."""
    if attention_mask is None:
        return bias
    return flow.where(attention_mask.bool()[:, None, None, :], bias, -math.inf)
