"""Sharding table of T5: the logical axes of its parameters."""

from __future__ import annotations

from sbpjax.models.parallelize import Sharding

from .config import T5Config


def units(config: T5Config) -> dict[str, int]:
    """Return how many there are of each purpose."""
    return {
        "vocab": config.vocab_size,
        "heads": config.num_heads,
        "hidden": config.d_ff,
        "width": config.d_model,
    }


def behind(config: T5Config) -> dict[str, int]:
    """Return the stages of modules beside the blocks: the embedding is the encoder's and the decoder's."""
    last = {"decoder.norm": 0} if config.tie_word_embeddings else {"decoder.norm": -1, "head": -1}
    return {"embedding": 0, "encoder.norm": 0} | last


SHARDING = Sharding(
    purposes={
        "embedding.weight": ("vocab", "width"),
        "head.weight": ("vocab", "width"),
        "*.relative.weight": ("whole", "heads"),
        "*.attention.[qkv].weight": ("heads", "width"),
        "*.attention.out.weight": ("width", "heads"),
        "*.cross.[qkv].weight": ("heads", "width"),
        "*.cross.out.weight": ("width", "heads"),
        "*.gate.weight": ("hidden", "width"),
        "*.up.weight": ("hidden", "width"),
        "*.down.weight": ("width", "hidden"),
        "*norm.weight": ("width",),
    },
    units=units,
    blocks=("encoder.blocks", "decoder.blocks"),
    behind=behind,
)
