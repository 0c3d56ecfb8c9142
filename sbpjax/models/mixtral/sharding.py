"""What the dims of Mixtral's parameters are for."""

from __future__ import annotations

from sbpjax.models.parallelize import Sharding

from .config import MixtralConfig


def units(config: MixtralConfig) -> dict[str, int]:
    """Return how many there are of each purpose."""
    return {
        "vocab": config.vocab_size,
        "heads": config.num_attention_heads,
        "kv_heads": config.kv_heads,
        "experts": config.num_local_experts,
        "hidden": config.intermediate_size,
        "width": config.hidden_size,
    }


SHARDING = Sharding(
    purposes={
        "embedding.weight": ("vocab", "width"),
        "head.weight": ("vocab", "width"),
        "blocks.*.attention.q.weight": ("heads", "width"),
        "blocks.*.attention.[kv].weight": ("kv_heads", "width"),
        "blocks.*.attention.out.weight": ("width", "heads"),
        "blocks.*.moe.router.weight": ("whole", "width"),
        "blocks.*.moe.gate": ("experts", "width", "hidden"),
        "blocks.*.moe.up": ("experts", "width", "hidden"),
        "blocks.*.moe.down": ("experts", "hidden", "width"),
        "*norm.weight": ("width",),
    },
    units=units,
    behind=lambda config: {"norm": 0} if config.tie_word_embeddings else {"norm": -1, "head": -1},
)
