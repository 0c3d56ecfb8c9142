"""The rooms of `sbpjax.utils` that are loaded when they are first asked for."""

from __future__ import annotations

import importlib
from typing import Any

ROOMS = ("data",)


def attribute(name: str) -> Any:
    """Return a room of the package that was not loaded yet; an AttributeError if there is none."""
    if name in ROOMS:
        return importlib.import_module(f"sbpjax.utils.{name}")
    raise AttributeError(f"module 'sbpjax.utils' has no attribute {name!r}")
