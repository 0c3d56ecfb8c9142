"""`torch.fx.experimental.symbolic_shapes`: sizes are plain numbers, and what is asked of them is known."""

from __future__ import annotations

from typing import Any


def guard_or_false(a: Any) -> bool:
    """Return whether a condition holds."""
    return bool(a)


guard_or_true = statically_known_true = guard_size_oblivious = definitely_true = guard_or_false


def free_symbols(val: Any) -> set:
    """Return an empty set: sizes are numbers."""
    return set()


free_unbacked_symbols = free_symbols


def is_symbolic(a: Any) -> bool:
    """Return False."""
    return False


def get_proxy_mode() -> None:
    """Return None: nothing is traced by PyTorch."""


class GuardOnDataDependentSymNode(RuntimeError):
    """What PyTorch raises at a size that it does not know."""
