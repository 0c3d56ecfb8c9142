"""Allowlist of classes that a ``.pth`` file may name beyond plain data (``weights_only``).

    add_safe_globals([argparse.Namespace])         # this class, in every file read afterwards
    sbpjax.load("mine.pth", weights_only=False)    # anything in this file: it runs code

`sbpjax.load`, `sbpjax.checkpoint.load_torch` and, under the name torch, `torch.load` read such files.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from .torch_pickle import Names

_safe: list[Any] = []  # allowed names besides tensors, containers and plain values


class UnrestrictedUnpickler(pickle.Unpickler):
    """Unpickler without restrictions, which runs code of the file: for ``weights_only=False`` alone."""

    def __init__(self, text: bytes, names: Names, persistent: Any) -> None:
        super().__init__(io.BytesIO(text))
        self._names, self._persistent = names, persistent

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        return self._names.find(full) if self._names.has(full) else super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        return self._persistent(pid)


def allowed_objects() -> dict[str, Any]:
    """Return the objects that `add_safe_globals` allowed, by full name."""
    return {full: value for value, full in map(_name_entry, _safe)}


def _name_entry(entry: Any) -> tuple[Any, str]:
    """Return an entry of the safe names and its full name: it may be a pair of both."""
    if isinstance(entry, tuple):
        return entry
    return entry, f"{entry.__module__}.{entry.__qualname__}"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow functions and classes in files that are read with `weights_only`.

    Args:
        safe_globals: the functions and classes, or pairs of one and the full name under which files know it.
    """
    _safe.extend(entry for entry in safe_globals if entry not in _safe)


def get_safe_globals() -> list[Any]:
    """Return the objects that `add_safe_globals` allowed."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Clear the allowlist."""
    _safe.clear()


class safe_globals:
    """Within the block, allow functions and classes; see `add_safe_globals`.

    Args:
        safe_globals: the functions and classes.
    """

    def __init__(self, safe_globals: list[Any]) -> None:
        self._entries = list(safe_globals)

    def __enter__(self) -> None:
        self._before = list(_safe)
        add_safe_globals(self._entries)

    def __exit__(self, *exc: Any) -> None:
        _safe[:] = self._before
