"""The rooms of `sbpjax.utils` that are loaded when they are first asked for."""

from __future__ import annotations

import importlib
from typing import Any

ROOMS = ("data", "hooks", "model_zoo", "tensor")


def attribute(name: str) -> Any:
    """Return a room of the package that was not loaded yet; an AttributeError if there is none."""
    if name in ROOMS:
        return importlib.import_module(f"sbpjax.utils.{name}")
    if name == "load_library":
        return importlib.import_module("sbpjax.compat.small").load_library
    raise AttributeError(f"module 'sbpjax.utils' has no attribute {name!r}")
