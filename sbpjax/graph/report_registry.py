"""Reports on graphs and compiled functions: they stand above this room, in `sbpjax.inspect`, which registers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SHOWN: dict[str, Callable[..., Any]] = {}


def shows(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function, or a class, under its name: what the method of that name returns."""
    SHOWN[function.__name__] = function
    return function
