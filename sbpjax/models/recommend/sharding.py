"""Sharding table of recommendation models: embedding tables are split, all else is broadcast."""

from __future__ import annotations

from sbpjax.models.parallelize import Sharding

from .config import RecommendConfig


def axis_sizes(config: RecommendConfig) -> dict[str, int]:
    """Return the size of each logical axis."""
    return {"rows": config.rows, "columns": config.dim}


SHARDING = Sharding(
    logical_axes={
        # One column, which no axis can divide.
        "wide.weight": ("rows", "whole"),
        "first.weight": ("rows", "whole"),
        "deep.weight": ("rows", "columns"),
        "*tables.weight": ("rows", "columns"),
        "*.weight": ("whole", "whole"),
        "*.bias": ("whole",),
    },
    axis_sizes=axis_sizes,
    blocks=(),
)
