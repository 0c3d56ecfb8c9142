"""Sharding table of Mixtral: that of Llama, and the logical axes of the experts."""

from __future__ import annotations

from dataclasses import replace

from sbpjax.models.llama import sharding as llama

from .config import MixtralConfig


def axis_sizes(config: MixtralConfig) -> dict[str, int]:
    """Return the size of each logical axis."""
    return llama.axis_sizes(config) | {"experts": config.num_local_experts}


SHARDING = replace(
    llama.SHARDING,
    logical_axes={
        **llama.SHARDING.logical_axes,
        "blocks.*.moe.router.weight": ("whole", "width"),
        "blocks.*.moe.gate": ("experts", "width", "hidden"),
        "blocks.*.moe.up": ("experts", "width", "hidden"),
        "blocks.*.moe.down": ("experts", "hidden", "width"),
    },
    axis_sizes=axis_sizes,
)
