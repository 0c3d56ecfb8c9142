"""Sharding table of Mixtral: that of Llama, and the logical axes of the experts."""

from __future__ import annotations

from dataclasses import replace

from sbpjax.models.llama import sharding as llama

from .config import MixtralConfig


def units(config: MixtralConfig) -> dict[str, int]:
    """Return how many there are of each purpose."""
    return llama.units(config) | {"experts": config.num_local_experts}


SHARDING = replace(
    llama.SHARDING,
    purposes={
        **llama.SHARDING.purposes,
        "blocks.*.moe.router.weight": ("whole", "width"),
        "blocks.*.moe.gate": ("experts", "width", "hidden"),
        "blocks.*.moe.up": ("experts", "width", "hidden"),
        "blocks.*.moe.down": ("experts", "hidden", "width"),
    },
    units=units,
)
