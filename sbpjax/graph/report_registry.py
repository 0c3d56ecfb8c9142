"""Report registry: `sbpjax.inspect`, a package above this one, registers its reports on graphs here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

REPORTS: dict[str, Callable[..., Any]] = {}


def register_report(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function, or a class, under its name as the implementation of the method of that name."""
    REPORTS[function.__name__] = function
    return function
