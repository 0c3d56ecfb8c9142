"""Optional packages: `LazyModule` imports them on first use; `pip_install` is the command that installs them.

    optax = LazyModule("optax")  # at the head of a module, among the imports
    optax.trace(0.9)             # imports optax

An error names the packages themselves, not ``sbpjax[train]``, which an index need not have:

    >>> pip_install("iree")
    'pip install "iree-base-compiler>=3.13" "iree-base-runtime>=3.13"'
"""

from __future__ import annotations

import importlib
import re
from importlib import metadata
from typing import Any

_REQUIREMENT = re.compile(r"""([^;]+?)\s*;.*\bextra\s*==\s*["']([^"']+)["']""")
_OWN_EXTRA = re.compile(r"sbpjax\[([\w,-]+)\]")


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


def pip_install(extra: str) -> str:
    """Return the command that installs an extra's packages.

    Args:
        extra: a name of ``[project.optional-dependencies]`` in `pyproject.toml`.
    """
    return f"pip install {' '.join(_quote(text) for text in packages_of(extra))}"


def packages_of(extra: str) -> list[str]:
    """Return an extra's requirements, as the installed package states them; the extra itself if it states none."""
    try:
        stated = metadata.requires("sbpjax") or []
    except metadata.PackageNotFoundError:  # run from a folder on the path
        stated = []
    found: list[str] = []
    for text in stated:
        match = _REQUIREMENT.match(text)
        if match is None or match[2] != extra:
            continue
        own = _OWN_EXTRA.fullmatch(match[1].strip())
        found += [p for name in own[1].split(",") for p in packages_of(name)] if own else [match[1].strip()]
    return list(dict.fromkeys(found)) or [f".[{extra}]"]


def _quote(text: str) -> str:
    return text if re.fullmatch(r"[\w.-]+", text) else f'"{text}"'
