"""Sharding table of recommendation models: embedding tables are split, all else is broadcast."""

from __future__ import annotations

from sbpjax.models.parallelize import Sharding

from .config import RecommendConfig


def units(config: RecommendConfig) -> dict[str, int]:
    """Return how many there are of each purpose."""
    return {"rows": config.rows, "columns": config.dim}


SHARDING = Sharding(
    purposes={
        # One column, which no axis can divide.
        "wide.weight": ("rows", "whole"),
        "first.weight": ("rows", "whole"),
        "deep.weight": ("rows", "columns"),
        "*tables.weight": ("rows", "columns"),
        "*.weight": ("whole", "whole"),
        "*.bias": ("whole",),
    },
    units=units,
    blocks=(),
)
