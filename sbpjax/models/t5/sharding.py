"""Sharding table of T5: the logical axes of its parameters."""

from __future__ import annotations

from sbpjax.models.parallelize import Sharding

from .config import T5Config


def axis_sizes(config: T5Config) -> dict[str, int]:
    """Return the size of each logical axis."""
    return {
        "vocab": config.vocab_size,
        "heads": config.num_heads,
        "hidden": config.d_ff,
        "width": config.d_model,
    }


def tail_modules(config: T5Config) -> dict[str, int]:
    """Return the stages of modules outside the blocks: the embedding is the encoder's and the decoder's."""
    last = {"decoder.norm": 0} if config.tie_word_embeddings else {"decoder.norm": -1, "head": -1}
    return {"embedding": 0, "encoder.norm": 0} | last


SHARDING = Sharding(
    logical_axes={
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
    axis_sizes=axis_sizes,
    blocks=("encoder.blocks", "decoder.blocks"),
    tail_modules=tail_modules,
)
