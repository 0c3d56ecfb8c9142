"""Lazy import of `GlobalLoader`, the one name of this package that needs JAX."""

from __future__ import annotations

from typing import Any


def attribute(name: str) -> Any:
    """Return `GlobalLoader`; an AttributeError for every other name."""
    if name == "GlobalLoader":
        from .global_loader import GlobalLoader  # workers load this module without JAX

        return GlobalLoader
    raise AttributeError(f"module 'sbpjax.utils.data' has no attribute {name!r}")


attribute.names = ["GlobalLoader"]  # type: ignore[attr-defined]  # for the reference: `dir` does not show it
