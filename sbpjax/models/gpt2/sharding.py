"""Sharding table of GPT-2: the logical axes of its parameters."""

from __future__ import annotations

from sbpjax.models.parallelize import Sharding

from .config import GPT2Config


def axis_sizes(config: GPT2Config) -> dict[str, int]:
    """Return the size of each logical axis."""
    return {
        "vocab": config.vocab_size,
        "heads": config.n_head,
        "hidden": config.hidden,
        "width": config.n_embd,
    }


SHARDING = Sharding(
    logical_axes={
        "token.weight": ("vocab", "width"),
        "position.weight": ("whole", "width"),
        "blocks.*.attention.[qkv].weight": ("heads", "width"),
        "blocks.*.attention.[qkv].bias": ("heads",),
        "blocks.*.attention.out.weight": ("width", "heads"),
        "blocks.*.attention.out.bias": ("width",),
        "blocks.*.mlp.up.weight": ("hidden", "width"),
        "blocks.*.mlp.up.bias": ("hidden",),
        "blocks.*.mlp.down.weight": ("width", "hidden"),
        "blocks.*.mlp.down.bias": ("width",),
        "blocks.*.norm?.*": ("width",),
        "norm.*": ("width",),
    },
    axis_sizes=axis_sizes,
    tail_modules=lambda config: {"norm": 0},  # and the output matrix, which is the embedding
)
