"""The pages of the API reference: one per public module, with every public name, read from the live package.

    write(folder)      # api/index.rst, api/sbpjax.rst, api/sbpjax.nn.functional.rst, …; conf.py calls it

An object is described once, in the first module of `MODULES` that shows it; other modules name the place. So cross
references have one target.
"""

from __future__ import annotations

import importlib
import inspect
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# In this order objects are described.
MODULES = """
    errors nn.functional nn.init nn.utils nn.parallel nn nn.graph optim.lr_scheduler optim linalg fft special
    autograd.functional autograd func amp distributions distributed.functional distributed comm utils.data checkpoint
    utils.checkpoint sbp auto pipeline graph profiler cuda one_embedding mock_torch mock_oneflow hub env testing
""".split()
PACKAGE = "sbpjax"
# These are files of code, which import more than they offer: theirs is what they define.
FILES = {"errors", "nn.init", "distributed.functional"}
LATE = {"nn": ["Graph"], "utils.data": ["GlobalLoader"]}  # loaded when first asked for; `dir` does not show them


@dataclass
class Room:
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
    short = path.partition(".")[2]
    found = {}
    for name in [*dir(module), *LATE.get(short, [])]:
        value = None if name.startswith("_") else getattr(module, name)
        if name.startswith("_") or isinstance(value, types.ModuleType) or name == "annotations":
            continue
        if short in FILES and getattr(value, "__module__", path) != path:
            continue
        found[name] = value
    return found


def rooms() -> list[Room]:
    """Return all public modules; every public name is in one or more of them."""
    described: dict[int, str] = {}
    found = []
    for path in [*(f"{PACKAGE}.{name}" for name in MODULES), PACKAGE]:
        room = Room(path)
        for name, value in public(path).items():
            full = f"{path}.{name}"
            if not callable(value) or (not inspect.isclass(value) and not inspect.isroutine(value)):
                room.values.append(name)
            elif id(value) in described:
                room.elsewhere[name] = described[id(value)]
            else:
                described[id(value)] = full
                (room.classes if inspect.isclass(value) else room.functions).append(name)
        found.append(room)
    return found


def page(room: Room) -> str:
    """Return the page of a module, as reStructuredText."""
    lines = [room.path, "=" * len(room.path), "", f".. currentmodule:: {room.path}", ""]
    if room.values:
        lines += ["Values: " + ", ".join(f"``{name}``" for name in room.values) + ".", ""]
    if room.elsewhere:
        lines += ["Described elsewhere:", ""]
        lines += [f"* ``{name}``: :py:obj:`{full}`" for name, full in sorted(room.elsewhere.items())] + [""]
    for title, names, directive in (
        ("Classes", room.classes, "autoclass"),
        ("Functions", room.functions, "autofunction"),
    ):
        if names:
            lines += [title, "-" * len(title), ""]
        for name in names:
            lines += [f".. {directive}:: {room.path}.{name}"]
            lines += ["   :members:", "   :show-inheritance:"] if directive == "autoclass" else []
            lines += [""]
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Write all pages and their index; pages that are as before keep their time, so that they are not built again."""
    folder.mkdir(exist_ok=True)
    found = sorted(rooms(), key=lambda room: room.path)
    pages = {f"{room.path}.rst": page(room) for room in found}
    names = [f"   {room.path}" for room in found]
    pages["index.rst"] = "\n".join(["API", "===", "", "Every public name.", "", ".. toctree::", *["", *names], ""])
    for name, text in pages.items():
        target = folder / name
        if not target.exists() or target.read_text() != text:
            target.write_text(text)
    for old in {path.name for path in folder.glob("*.rst")} - pages.keys():
        (folder / old).unlink()
