"""The pages of the API reference: one per public module, with every public name, read from the live package.

    write(folder)      # api/index.rst, api/sbpjax.rst, api/sbpjax.nn.functional.rst, …; conf.py calls it

An object is described once, in the first of `modules()` that shows it; other modules link to it. So cross
references have one target.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = "sbpjax"
# Packages that no other one loads: pages import from them by their full names.
ALSO = tuple(
    f"{PACKAGE}.{name}"
    for name in (
        "train.config",
        "train.data",
        "train.evaluation",
        "train.view",
        "vision.datasets",
        "vision.transforms",
        "vision.training",
        "vision.models.detection",
        "vision.models.segmentation",
    )
)
EXPLICIT = re.compile(r"^from \S+ import \w+ as (\w+)", re.MULTILINE)


def modules() -> list[str]:
    """Return the public modules; objects are described in this order."""
    found = _modules_in(PACKAGE)
    return [*found, *(path for path in ALSO if path not in found)]


def _modules_in(path: str) -> list[str]:
    """Return a module and those that it names in ``from . import name as name``, or loads on first use."""
    module = importlib.import_module(path)
    if not hasattr(module, "__path__"):
        return [path]
    names = EXPLICIT.findall(inspect.getsource(module)) if getattr(module, "__file__", None) else []
    names += getattr(getattr(module, "__getattr__", None), "modules", [])
    own = [name for name in names if name[0] != "_" and isinstance(getattr(module, name), types.ModuleType)]
    own.sort(key=lambda name: name != "nn")  # users write `nn.Graph` for the class of `sbpjax.graph`
    before, behind = [], [path]
    for full in [f"{path}.{name}" for name in own if importlib.util.find_spec(f"{path}.{name}")]:
        # One without a file of its own is another package's place of names that are described here.
        (before if getattr(importlib.import_module(full), "__file__", None) else behind).extend(_modules_in(full))
    return before + behind


@dataclass
class PublicModule:
    """A public module and its names.

    Attributes:
        path: its full name.
        classes: names of classes that are described here.
        functions: names of functions that are described here.
        values: names of constants, dtypes and the like.
        elsewhere: names that are described in another module, with their full names there.
    """

    path: str
    classes: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    elsewhere: dict[str, str] = field(default_factory=dict)

    def all(self) -> set[str]:
        """Return all names that are on the page."""
        return {*self.classes, *self.functions, *self.values, *self.elsewhere}


def public(path: str) -> dict[str, Any]:
    """Return the public names of a module, without modules, with their objects."""
    module = importlib.import_module(path)
    late = getattr(getattr(module, "__getattr__", None), "names", [])
    names = [name for name in [*dir(module), *late] if not name.startswith("_") and name != "annotations"]
    found = {name: value for name in names if not isinstance(value := getattr(module, name), types.ModuleType)}
    if hasattr(module, "__getattr__") or not getattr(module, "__file__", None):
        return found
    # Code imports more than it offers: public are its own definitions, and its explicit re-exports.
    named = EXPLICIT.findall(inspect.getsource(module))
    return {name: v for name, v in found.items() if name in named or getattr(v, "__module__", None) == path}


def namespaces() -> list[PublicModule]:
    """Return all public modules; every public name is in one or more of them."""
    described: dict[int, str] = {}
    found = []
    for path in modules():
        namespace = PublicModule(path)
        for name, value in public(path).items():
            full = f"{path}.{name}"
            if not callable(value) or (not inspect.isclass(value) and not inspect.isroutine(value)):
                namespace.values.append(name)
            elif id(value) in described:
                namespace.elsewhere[name] = described[id(value)]
            else:
                described[id(value)] = full
                (namespace.classes if inspect.isclass(value) else namespace.functions).append(name)
        if namespace.all():
            found.append(namespace)
    return found


def page(namespace: PublicModule) -> str:
    """Return the page of a module, as reStructuredText."""
    lines = [namespace.path, "=" * len(namespace.path), "", f".. currentmodule:: {namespace.path}", ""]
    lines += ["Stage: alpha where a name says no other; :doc:`features and their stages </reference/stages>`.", ""]
    if namespace.values:
        lines += ["Values: " + ", ".join(f"``{name}``" for name in namespace.values) + ".", ""]
    if namespace.elsewhere:
        lines += ["Described elsewhere:", ""]
        lines += [f"* ``{name}``: :py:obj:`{full}`" for name, full in sorted(namespace.elsewhere.items())] + [""]
    for title, names, directive in (
        ("Classes", namespace.classes, "autoclass"),
        ("Functions", namespace.functions, "autofunction"),
    ):
        if names:
            lines += [title, "-" * len(title), ""]
        for name in names:
            lines += [f".. {directive}:: {namespace.path}.{name}"]
            lines += ["   :members:", "   :show-inheritance:"] if directive == "autoclass" else []
            lines += [""]
    return "\n".join(lines)


def summary(path: str) -> str:
    """Return the first line of a module's docstring, without its own name before it."""
    first = (importlib.import_module(path).__doc__ or "").strip().partition("\n")[0]
    return re.sub(rf"^`+{re.escape(path)}`+: ", "", first).replace("|", r"\|")


def write(folder: Path) -> None:
    """Write all pages and their index; pages that are as before keep their time, so that they are not built again."""
    folder.mkdir(exist_ok=True)
    found = sorted(namespaces(), key=lambda namespace: namespace.path)
    pages = {f"{namespace.path}.rst": page(namespace) for namespace in found}
    names = [f"   {namespace.path}" for namespace in found]
    head = ["API", "===", "", "Every public name, by module; the search finds single names.", "", ".. list-table::", ""]
    rows = [
        line for namespace in found for line in (f"   * - :doc:`{namespace.path}`", f"     - {summary(namespace.path)}")
    ]
    pages["index.rst"] = "\n".join([*head, *rows, "", ".. toctree::", "   :hidden:", *["", *names], ""])
    for name, text in pages.items():
        target = folder / name
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    for old in {path.name for path in folder.glob("*.rst")} - pages.keys():
        (folder / old).unlink()
