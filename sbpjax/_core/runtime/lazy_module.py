"""`LazyModule`: a module that is imported on first use, for packages that are optional or slow to import.

optax = LazyModule("optax")  # at the head of a module, among the imports
optax.trace(0.9)  # imports optax
"""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """Import a module when one of its attributes is read.

    Args:
        name: the module's full name.

    Example:
        >>> fractions = LazyModule("fractions")
        >>> fractions.Fraction(2, 4)
        Fraction(1, 2)
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # of whoever inspects the object, such as `inspect.unwrap`
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)
