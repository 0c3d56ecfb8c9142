"""T5: a transformer encoder, and a decoder with cross-attention to it.

Shapes at the line ends: B batch, S positions of the source, T of the target, D width, H heads, C head, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import sbpjax as flow
from sbpjax import nn
from sbpjax.models import layers
from sbpjax.models.layers import MLP, GatedMLP, KeyValues, RelativeBias, positions_of, token_loss
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
        return self._by_head(self.k(x), self.heads), self._by_head(self.v(x), self.heads)

    def forward(  # type: ignore[override]
        self,
        x: flow.Tensor,
        bias: flow.Tensor,
        memory: tuple[flow.Tensor, flow.Tensor] | None = None,
        cache: KeyValues | None = None,
        at: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return `(B, T, D)`: what each position of `x` gathers, with `bias` `(B, H, T, S)` added to the scores."""
        q = self._by_head(self.q(x), self.heads)  # (B, H, T, C)
        k, v = self.keys_values(x) if memory is None else memory
        if cache is not None and at is not None:
            k, v = cache.extend(k, v, at)
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
        source: flow.Tensor | tuple[flow.Tensor, flow.Tensor] | None = None,
        source_bias: flow.Tensor | None = None,
        cache: KeyValues | None = None,
        at: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the stream `(B, T, D)` behind the block; `source` is `(B, S, D)`, or its keys and values."""
        x = x + self.drop(self.attention(self.attention_norm(x), bias, None, cache, at))
        if source is not None and source_bias is not None:
            memory = source if isinstance(source, tuple) else self.cross.keys_values(source)
            x = x + self.drop(self.cross(self.cross_norm(x), source_bias, memory))
        mlp = self.mlp if self.gated is None else self.gated
        assert mlp is not None
        return x + self.drop(mlp(self.mlp_norm(x)))


class Stack(nn.Module):
    """The blocks of one side, which share what distances add to the scores.

    Args:
        config: the model's.
        is_decoder: which side.
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
        >>> tokens = flow.zeros(2, 5, dtype=flow.int64)
        >>> flow.models.t5.T5(config)(tokens, tokens[:, :3]).shape
        sbpjax.Size([2, 3, 64])
    """

    def __init__(self, config: T5Config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder, self.decoder = Stack(config, False), Stack(config, True)
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

    def encode(self, tokens: flow.Tensor, present: flow.Tensor | None = None) -> flow.Tensor:
        """Return the vectors `(B, S, D)` of a source.

        Args:
            tokens: `(B, S)` integers.
            present: `(B, S)`, nonzero where there is a token and not padding; None if there is no padding.
        """
        x = self.encoder.drop(self.embedding(tokens))  # (B, S, D)
        positions = positions_of(x)
        bias = _hidden(self.encoder.relative(positions, positions), present)
        for block in self.encoder.blocks:
            x = block(x, bias)
        return self.encoder.drop(self.encoder.norm(x))

    def decode(
        self,
        tokens: flow.Tensor,
        source: flow.Tensor | Sequence[tuple[flow.Tensor, flow.Tensor]],
        source_present: flow.Tensor | None = None,
        present: flow.Tensor | None = None,
        caches: Sequence[KeyValues] | None = None,
        at: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the logits `(B, T, V)` of the token behind each one of the target.

        Args:
            tokens: `(B, T)`, the start and the targets but the last.
            source: `encode`'s vectors, or of every block the keys and values of them.
            source_present: `(B, S)`, as of `encode`.
            present: with caches of N slots, `(B, N)`: nonzero where there is a token.
            caches: one for each block, of the tokens before these.
            at: with caches: the slot of the first of these tokens.
        """
        x = self.decoder.drop(self.embedding(tokens))  # (B, T, D)
        queries = keys = positions_of(x)
        if at is not None and present is not None:
            queries, keys = queries + at, positions_of(present)
        bias = self.decoder.relative(queries, keys)  # (1, H, T, T), with caches (1, H, T, N)
        bias = _hidden(flow.where(keys[None, :] > queries[:, None], -math.inf, bias), present)
        vectors = source if isinstance(source, flow.Tensor) else source[0][0]
        source_bias = flow.zeros_like(vectors[..., 0])  # (B, S), or of keys (B, H, S)
        source_bias = source_bias[:, None, None] if source_bias.ndim == 2 else source_bias[:, :, None]
        source_bias = _hidden(source_bias, source_present)
        for i, block in enumerate(self.decoder.blocks):
            memory = source if isinstance(source, flow.Tensor) else source[i]
            x = block(x, bias, memory, source_bias, None if caches is None else caches[i], at)
        x = self.decoder.drop(self.decoder.norm(x))
        if self.config.is_scaled:
            x = x * self.config.d_model**-0.5
        return F.linear(x, self.embedding.weight) if self.head is None else self.head(x)  # (B, T, V)

    def forward(self, tokens: flow.Tensor, before: flow.Tensor, present: flow.Tensor | None = None) -> flow.Tensor:
        """Return the logits `(B, T, V)` of targets.

        Args:
            tokens: `(B, S)` integers, the source.
            before: `(B, T)`, the start and the targets but the last.
            present: `(B, S)`, nonzero where there is a token and not padding; None if there is no padding.
        """
        return self.decode(before, self.encode(tokens, present), present)

    def shift_targets(self, targets: flow.Tensor) -> flow.Tensor:
        """Return what the decoder gets for targets `(B, T)`: the start before them, the last one left out."""
        start = flow.full_like(targets[:, :1], self.config.decoder_start_token_id)
        before = flow.cat([start, targets[:, :-1]], dim=1)
        return flow.where(before == -100, self.config.pad_token_id, before)

    def loss(self, tokens: flow.Tensor, targets: flow.Tensor, present: flow.Tensor | None = None) -> flow.Tensor:
        """Return the mean cross entropy of `targets` `(B, T)`, in nats per token; targets of -100 do not count."""
        return token_loss(self(tokens, self.shift_targets(targets), present), targets)


def _hidden(bias: flow.Tensor, present: flow.Tensor | None) -> flow.Tensor:
    """Return scores `(…, T, S)` with those of keys that are no token at minus infinity."""
    if present is None:
        return bias
    return flow.where(present.bool()[:, None, None, :], bias, -math.inf)
