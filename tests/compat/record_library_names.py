"""Writes `library_names.txt`: the names of PyTorch that model libraries import or mention.

    pip install timm==1.0.31 torchvision==0.28.0 transformers==5.23.0
    HF_HUB_OFFLINE=1 PYTHONPATH=. python tests/compat/record_library_names.py

Every module of timm's and torchvision's models, layers and ops and every modeling file of transformers is imported
under the alias. The names that they ask for are noted, and those that are written in the files that they import.
Names that sbpjax does not have (ops in C++, other makers' accelerators) are left out.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from sbpjax import mock_torch
from sbpjax._core.compat.alias import Alias

FILE = Path(__file__).with_name("library_names.txt")
LIBRARIES = ("timm", "torchvision", "transformers")
ROOTS = {"torchvision.models": "", "torchvision.ops": "", "timm.models": "", "timm.layers": ""}
ROOTS["transformers.models"] = "modeling_"  # how the names of its modules begin


def requested() -> set[str]:
    """Import the libraries and return what they ask the alias for."""
    found = set()
    look_up = Alias.__getattr__

    def noted(self: Alias, name: str):
        found.add(f"{self.__name__}.{name}")
        return look_up(self, name)

    Alias.__getattr__ = noted
    for root, start in ROOTS.items():
        for info in pkgutil.walk_packages(importlib.import_module(root).__path__, f"{root}."):
            if info.name.rpartition(".")[2].startswith(start) or info.ispkg:
                try:
                    importlib.import_module(info.name)
                except ImportError as error:  # of a package that is not installed
                    print(error)
    Alias.__getattr__ = look_up
    return {name for name in found if "__" not in name}


def written(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names below torch in a file."""
    places: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for name in node.names:
                full = base + name.name
                if full.partition(".")[0] == "torch":
                    places[name.asname or full.rpartition(".")[2] * bool(base) or "torch"] = (
                        full if base or name.asname else "torch"
                    )
                    yield full

    def dotted(node: ast.AST) -> str | None:
        if isinstance(node, ast.Name):
            return places.get(node.id)
        place = dotted(node.value) if isinstance(node, ast.Attribute) else None
        return place and f"{place}.{node.attr}"

    def outermost(node: ast.AST) -> Iterator[str]:
        name = dotted(node) if isinstance(node, ast.Attribute) else None
        if name:
            yield name
        for inner in () if name else ast.iter_child_nodes(node):
            yield from outermost(inner)

    yield from outermost(tree)


@functools.cache
def places(name: str) -> list:
    """Return what a dotted name leads to: a module, and what lies under its name in another."""
    found = []
    try:
        found.append(importlib.import_module(name))
    except ImportError:
        pass
    parent, _, last = name.rpartition(".")
    return found + [getattr(place, last) for place in (places(parent) if parent else []) if hasattr(place, last)]


def _is_empty(place: object) -> bool:
    """Say whether something is the module that a lazy alias makes for a name that is missing."""
    return isinstance(place, Alias) and not vars(place)["_sources"]


def main() -> None:
    """Write the list."""
    with mock_torch.enable(lazy=True):
        names = requested()
        modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in LIBRARIES]
        files = [file for file in (getattr(module, "__file__", None) for module in modules) if file]
        for file in files:
            names.update(written(ast.parse(Path(file).read_text())))
    with mock_torch.enable():
        there = sorted(name for name in names if any(not _is_empty(place) for place in places(name)))
    groups: dict[str, list[str]] = {}
    for name in there:
        parent, _, last = name.rpartition(".")
        groups.setdefault(parent, []).append(last)
    lines = [textwrap.fill(f"{p}: {' '.join(n)}", 119, subsequent_indent="  ") for p, n in groups.items() if p]
    FILE.write_text("\n".join(lines) + "\n")
    print(f"{len(there)} of {len(names)} names, from {len(files)} files")


if __name__ == "__main__":
    main()
