"""Sharding table of BERT: the logical axes of its parameters."""

from __future__ import annotations

from sbpjax.models.parallelize import Sharding

from .config import BertConfig


def axis_sizes(config: BertConfig) -> dict[str, int]:
    """Return the size of each logical axis."""
    return {
        "vocab": config.vocab_size,
        "heads": config.num_attention_heads,
        "hidden": config.intermediate_size,
        "width": config.hidden_size,
    }


SHARDING = Sharding(
    logical_axes={
        "embeddings.token.weight": ("vocab", "width"),
        "embeddings.position.weight": ("whole", "width"),
        "embeddings.segment.weight": ("whole", "width"),
        "embeddings.norm.*": ("width",),
        "blocks.*.attention.[qkv].weight": ("heads", "width"),
        "blocks.*.attention.[qkv].bias": ("heads",),
        "blocks.*.attention.out.weight": ("width", "heads"),
        "blocks.*.attention.out.bias": ("width",),
        "blocks.*.mlp.up.weight": ("hidden", "width"),
        "blocks.*.mlp.up.bias": ("hidden",),
        "blocks.*.mlp.down.weight": ("width", "hidden"),
        "blocks.*.mlp.down.bias": ("width",),
        "blocks.*.norm?.*": ("width",),
        "pooler.weight": ("width", "whole"),
        "pooler.bias": ("width",),
        "masked.dense.weight": ("width", "whole"),
        "masked.dense.bias": ("width",),
        "masked.norm.*": ("width",),
        "masked.bias": ("vocab",),
        "follows.weight": ("whole", "width"),
        "follows.bias": ("whole",),
        "classifier.weight": ("whole", "width"),
        "classifier.bias": ("whole",),
    },
    axis_sizes=axis_sizes,
    # The output matrix of masked tokens is the embedding, so the tail modules are in its stage.
    tail_modules=lambda config: {"pooler": 0, "masked": 0, "follows": 0, "classifier": 0},
)
