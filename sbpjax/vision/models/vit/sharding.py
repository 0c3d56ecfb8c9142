"""Sharding table of ViT: the logical axes of its parameters."""

from __future__ import annotations

from sbpjax.models.parallelize import Sharding

from .config import ViTConfig


def axis_sizes(config: ViTConfig) -> dict[str, int]:
    """Return the size of each logical axis."""
    return {"heads": config.num_attention_heads, "hidden": config.intermediate_size, "width": config.hidden_size}


SHARDING = Sharding(
    logical_axes={
        "patches.weight": ("width", "whole", "whole", "whole"),
        "patches.bias": ("width",),
        "first": ("whole", "whole", "width"),
        "positions": ("whole", "whole", "width"),
        "registers": ("whole", "whole", "width"),
        "distilled": ("whole", "whole", "width"),
        "blocks.*.scale?": ("width",),
        "pooled_norm.*": ("width",),
        "head_dist.weight": ("whole", "width"),
        "head_dist.bias": ("whole",),
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
        "head.weight": ("whole", "width"),
        "head.bias": ("whole",),
    },
    axis_sizes=axis_sizes,
    tail_modules=lambda config: {"norm": -1, "pooled_norm": -1, "head": -1, "head_dist": -1},
)
