"""Install command of an optional dependency, for error messages.

An error names the packages themselves, not ``sbpjax[train]``, which an index need not have:

    >>> pip_install("iree")
    'pip install "iree-base-compiler>=3.13" "iree-base-runtime>=3.13"'
"""

from __future__ import annotations

import re
from importlib import metadata

_REQUIREMENT = re.compile(r"""([^;]+?)\s*;.*\bextra\s*==\s*["']([^"']+)["']""")
_OWN_EXTRA = re.compile(r"sbpjax\[([\w,-]+)\]")


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
