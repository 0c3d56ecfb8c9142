"""What the package calls itself when it prints a name: ``oneflow.float32`` to a script that imports it as oneflow."""

from __future__ import annotations

VERSION = "0.1.0"
_names = ["sbpjax"]


def package() -> str:
    """Return the name that was answered to last, of those that are answered to now."""
    return _names[-1]


def is_oneflow() -> bool:
    """Return whether the program has imported the package as oneflow, whose behaviour then holds where both differ."""
    return _names[-1] == "oneflow"


def is_torch() -> bool:
    """Return whether the program has imported the package as torch, whose behaviour then holds where the two differ."""
    return _names[-1] == "torch"


def push_name(name: str) -> None:
    """Begin to answer to another package's name."""
    _names.append(name)


def remove_name(name: str) -> None:
    """Stop answering to a name."""
    _names.reverse()
    _names.remove(name)
    _names.reverse()
