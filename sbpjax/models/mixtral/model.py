"""Mixtral: a Llama with a mixture of experts in place of the MLP.

Shapes at the line ends: B batch, T positions, D width, V vocabulary, E experts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import KeyValues, MoE, routing_loss, routing_sums, token_loss
from sbpjax.models.llama.model import AttentionHalf, Llama, Mask, Turns

from .config import MixtralConfig


class Block(AttentionHalf):
    """Attention and a mixture of experts, each on a normalised input and added to the stream.

    Args:
        config: the model's.
        number: of the block.
    """

    def __init__(self, config: MixtralConfig, number: int):
        super().__init__(config, number)
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
        turns: Turns,
        mask: Mask = (None, True),
        present: flow.Tensor | None = None,
        cache: KeyValues | None = None,
        at: flow.Tensor | None = None,
    ) -> tuple[flow.Tensor, flow.Tensor | None]:
        """Return the stream `(B, T, D)` behind the block, and `sums` with those of this router added."""
        x = self.attend(x, turns, mask, cache, at)
        # Next to a cache a token comes alone, of no known share of its sequence: no capacity.
        made, logits, got = self.moe(self.moe_norm(x), present, dropless=cache is not None)
        if sums is not None:
            sums = sums + routing_sums(logits, got, present)
        return x + made, sums


class Mixtral(Llama):
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

    BLOCK = Block
    config: MixtralConfig

    def forward(
        self,
        tokens: flow.Tensor,
        present: flow.Tensor | None = None,
        positions: flow.Tensor | None = None,
        caches: Sequence[KeyValues] | None = None,
        at: flow.Tensor | None = None,
        only: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the logits `(B, T, V)` of the token behind each one; arguments are those of `Llama.forward`."""
        return self._run(tokens, present, positions, caches, at, only)[0]

    def _run(
        self, tokens: Any, present: Any, positions: Any, caches: Any, at: Any, only: Any, sums: Any = None
    ) -> tuple[flow.Tensor, flow.Tensor | None]:
        """Return logits, and `sums` with those of all routers added."""
        turns, masks = self.turns(tokens, positions), self.masks(tokens, present, caches, at)
        routed = present if caches is None else None
        x = self.embedding(tokens)  # (B, T, D)
        for i, block in enumerate(self.blocks):
            x, sums = block(x, sums, turns, masks[i], routed, None if caches is None else caches[i], at)
        return self.logits(x, only), sums

    def loss(self, tokens: flow.Tensor, targets: flow.Tensor, present: flow.Tensor | None = None) -> flow.Tensor:
        """Return the mean cross entropy of `targets` `(B, T)`, in nats per token, and the routers' losses.

        Targets of -100 do not count. The routers' losses are there as the configuration has factors for them.
        """
        balance = self.config.router_aux_loss_coef if self.config.output_router_logits else 0.0
        z, experts = self.config.router_z_loss_coef, self.config.num_local_experts
        if not balance and not z:
            return super().loss(tokens, targets, present)
        sums = flow.zeros(2 * experts + 2)
        if tokens.is_global:
            whole = [flow.sbp.broadcast] * len(tokens.placement.hierarchy)
            sums = flow.zeros(2 * experts + 2, placement=tokens.placement, sbp=whole)
        logits, sums = self._run(tokens, present, None, None, None, None, sums)
        routed = tokens.numel() * len(self.blocks) if present is None else None
        return token_loss(logits, targets) + routing_loss(sums, balance, z, routed)
