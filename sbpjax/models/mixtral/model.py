"""Mixtral: a Llama with a mixture of experts in place of the MLP.

Shapes at the line ends: B batch, T positions, D width, V vocabulary, E experts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import KeyValues, MoE, routing_loss, routing_sums, token_loss
from sbpjax.models.llama.model import AttentionSubBlock, CosSin, Llama, Mask

from .config import MixtralConfig


class Block(AttentionSubBlock):
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
        cos_sin: CosSin,
        mask: Mask = (None, True),
        attention_mask: flow.Tensor | None = None,
        cache: KeyValues | None = None,
        cache_position: flow.Tensor | None = None,
    ) -> tuple[flow.Tensor, flow.Tensor | None]:
        """Return the stream `(B, T, D)` after the block, and `sums` with those of this router added."""
        x = self.attend(x, cos_sin, mask, cache, cache_position)
        # Next to a cache a token comes alone, of no known share of its sequence: no capacity.
        made, logits, got = self.moe(self.moe_norm(x), attention_mask, dropless=cache is not None)
        if sums is not None:
            sums = sums + routing_sums(logits, got, attention_mask)
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
        input_ids: flow.Tensor,
        attention_mask: flow.Tensor | None = None,
        position_ids: flow.Tensor | None = None,
        past_key_values: Sequence[KeyValues] | None = None,
        cache_position: flow.Tensor | None = None,
        logits_to_keep: flow.Tensor | None = None,
    ) -> flow.Tensor:
        """Return the logits `(B, T, V)` of the next token at each position; arguments are those of `Llama.forward`."""
        return self._run(input_ids, attention_mask, position_ids, past_key_values, cache_position, logits_to_keep)[0]

    def _run(
        self,
        input_ids: Any,
        attention_mask: Any,
        position_ids: Any,
        past_key_values: Any,
        cache_position: Any,
        logits_to_keep: Any,
        sums: Any = None,
    ) -> tuple[flow.Tensor, flow.Tensor | None]:
        """Return logits, and `sums` with those of all routers added."""
        cos_sin, masks = (
            self.cos_sin(input_ids, position_ids),
            self.masks(input_ids, attention_mask, past_key_values, cache_position),
        )
        routed = attention_mask if past_key_values is None else None
        x = self.embedding(input_ids)  # (B, T, D)
        for i, block in enumerate(self.blocks):
            x, sums = block(
                x,
                sums,
                cos_sin,
                masks[i],
                routed,
                None if past_key_values is None else past_key_values[i],
                cache_position,
            )
        return self.logits(x, logits_to_keep), sums

    def loss(
        self, input_ids: flow.Tensor, labels: flow.Tensor, attention_mask: flow.Tensor | None = None
    ) -> flow.Tensor:
        """Return the mean cross entropy of `labels` `(B, T)`, in nats per token, and the routers' losses.

        Labels of -100 do not count. The routers' losses are there as the configuration has factors for them.
        """
        balance = self.config.router_aux_loss_coef if self.config.output_router_logits else 0.0
        z, experts = self.config.router_z_loss_coef, self.config.num_local_experts
        if not balance and not z:
            return super().loss(input_ids, labels, attention_mask)
        sums = flow.zeros(2 * experts + 2)
        if input_ids.is_global:
            whole = [flow.sbp.broadcast] * len(input_ids.placement.hierarchy)
            sums = flow.zeros(2 * experts + 2, placement=input_ids.placement, sbp=whole)
        logits, sums = self._run(input_ids, attention_mask, None, None, None, None, sums)
        routed = input_ids.numel() * len(self.blocks) if attention_mask is None else None
        return token_loss(logits, labels) + routing_loss(sums, balance, z, routed)
