"""Mixtral: blocks of rotary attention and a mixture of experts, each behind an RMS norm.

Shapes at the line ends: B batch, T positions, D width, V vocabulary, E experts.
"""

from __future__ import annotations

from collections.abc import Sequence

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import (
    Attention,
    KeyValues,
    MoE,
    attention_mask,
    normal_weights,
    only_at,
    positions_of,
    rotation,
    routing_loss,
    routing_sums,
    token_loss,
)
from sbpjax.nn import functional as F

from .config import MixtralConfig


class Block(nn.Module):
    """Attention and a mixture of experts, each on a normalised input and added to the stream.

    Args:
        config: the model's.
        number: of the block.
    """

    def __init__(self, config: MixtralConfig, number: int):
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.attention = Attention(
            config.hidden_size,
            config.num_attention_heads,
            kv_heads=config.kv_heads,
            head_dim=config.head_size,
            dropout=config.attention_dropout,
            window=config.window(number),
        )
        self.moe_norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.moe = MoE(
            config.hidden_size,
            config.intermediate_size,
            config.num_local_experts,
            config.num_experts_per_tok,
            config.hidden_act,
            config.capacity_factor,
        )

    def forward(
        self,
        x: flow.Tensor,
        sums: flow.Tensor | None,
        cos: flow.Tensor,
        sin: flow.Tensor,
        mask: flow.Tensor | None = None,
        is_causal: bool = True,
        present: flow.Tensor | None = None,
        cache: KeyValues | None = None,
        at: flow.Tensor | None = None,
    ) -> tuple[flow.Tensor, flow.Tensor | None]:
        """Return the stream `(B, T, D)` behind the block, and `sums` with those of this router added."""
        x = x + self.attention(self.attention_norm(x), (cos, sin), mask, is_causal, cache, at)
        # Next to a cache a token comes alone, of no known share of its sequence: no capacity.
        made, logits, got = self.moe(self.moe_norm(x), present, dropless=cache is not None)
        if sums is not None:
            sums = sums + routing_sums(logits, got, present)
        return x + made, sums


class Mixtral(nn.Module):
    """A decoder-only transformer over tokens, with experts.

    Args:
        config: its size.

    Example:
        >>> config = flow.models.mixtral.MixtralConfig(
        ...     vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=4,
        ...     num_key_value_heads=2, num_local_experts=4
        ... )
        >>> flow.models.mixtral.Mixtral(config)(flow.zeros(2, 5, dtype=flow.int64)).shape
        sbpjax.Size([2, 5, 64])
    """

    def __init__(self, config: MixtralConfig):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)
        self.blocks = nn.ModuleList(Block(config, i) for i in range(config.num_hidden_layers))
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
        return self._run(tokens, present, positions, caches, at, only=only)[0]

    def _run(self, tokens, present=None, positions=None, caches=None, at=None, sums=None, only=None):
        """Return logits, and `sums` with those of all routers added."""
        cos, sin = rotation(
            positions_of(tokens) if positions is None else positions,
            self.config.head_size,
            self.config.rope_theta,
            self.config.rope_scaling,
        )
        windows = [self.config.window(i) for i in range(len(self.blocks))]
        if caches is None:  # the blocks know their windows, of which their kernels skip what is hidden
            masks = dict.fromkeys(windows, (attention_mask(tokens, causal=False, present=present)[0], True))
        else:
            masks = {w: attention_mask(tokens, causal=True, window=w, present=present, at=at) for w in set(windows)}
        routed = present if caches is None else None
        x = self.embedding(tokens)  # (B, T, D)
        for i, block in enumerate(self.blocks):
            cache = None if caches is None else caches[i]
            x, sums = block(x, sums, cos, sin, *masks[windows[i]], routed, cache, at)
        x = self.norm(only_at(x, only))
        return F.linear(x, self.embedding.weight) if self.head is None else self.head(x), sums  # (B, T, V)

    def loss(self, tokens: flow.Tensor, targets: flow.Tensor, present: flow.Tensor | None = None) -> flow.Tensor:
        """Return the mean cross entropy of `targets` `(B, T)`, in nats per token, and the routers' losses.

        Targets of -100 do not count. The routers' losses are there as the configuration has factors for them.
        """
        balance = self.config.router_aux_loss_coef if self.config.output_router_logits else 0.0
        z, experts = self.config.router_z_loss_coef, self.config.num_local_experts
        if not balance and not z:
            return token_loss(self(tokens, present), targets)
        sums = flow.zeros(2 * experts + 2)
        if tokens.is_global:
            whole = [flow.sbp.broadcast] * len(tokens.placement.hierarchy)
            sums = flow.zeros(2 * experts + 2, placement=tokens.placement, sbp=whole)
        logits, sums = self._run(tokens, present, sums=sums)
        return token_loss(logits, targets) + routing_loss(sums, balance, z)
