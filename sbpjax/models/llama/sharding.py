"""Sharding table of Llama: the logical axes of its parameters."""

from __future__ import annotations

from sbpjax.models.parallelize import Sharding

from .config import LlamaConfig


def axis_sizes(config: LlamaConfig) -> dict[str, int]:
    """Return the size of each logical axis."""
    return {
        "vocab": config.vocab_size,
        "heads": config.num_attention_heads,
        "kv_heads": config.kv_heads,
        "hidden": config.intermediate_size,
        "width": config.hidden_size,
    }


SHARDING = Sharding(
    logical_axes={
        "embedding.weight": ("vocab", "width"),
        "head.weight": ("vocab", "width"),
        "blocks.*.attention.q.weight": ("heads", "width"),
        "blocks.*.attention.q.bias": ("heads",),
        "blocks.*.attention.[kv].weight": ("kv_heads", "width"),
        "blocks.*.attention.[kv].bias": ("kv_heads",),
        "blocks.*.attention.out.weight": ("width", "heads"),
        "blocks.*.attention.out.bias": ("width",),
        "blocks.*.attention.[qk]_norm.weight": ("whole",),
        "blocks.*.mlp.gate.weight": ("hidden", "width"),
        "blocks.*.mlp.gate.bias": ("hidden",),
        "blocks.*.mlp.up.weight": ("hidden", "width"),
        "blocks.*.mlp.up.bias": ("hidden",),
        "blocks.*.mlp.down.weight": ("width", "hidden"),
        "blocks.*.mlp.down.bias": ("width",),
        "*norm.weight": ("width",),
    },
    axis_sizes=axis_sizes,
    tail_modules=lambda config: {"norm": 0} if config.tie_word_embeddings else {"norm": -1, "head": -1},
)
