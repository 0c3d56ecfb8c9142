"""From an annotation as a module writes it to one that stands in any stub.

    "dtypes.dtype | None" of sbpjax/_core/tensor/creation/like.py   →   _dtype | None    and the import of _dtype

In a stub of sbpjax ``float``, ``int`` and ``dtype`` are names of its own: methods, functions and dtypes. So every type
stands there under a name that nothing public has: ``builtins.int``, ``typing.Callable``, ``_types.IntOrInts``, and a
class of the package with an underscore.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import importlib
import inspect
import sys
import types
import typing

import sbpjax
from sbpjax._core.tensor.handle import types as aliases
from tests.support.stubs.vocabulary import RESULT_CLASSES

RESULTS_MODULE = "sbpjax._core.tensor.handle.attached"  # a stub without a module
ALIASES = {name for name, value in vars(aliases).items() if name in aliases.__annotations__}

PUBLIC = {  # what `vocabulary` may name
    **vars(aliases),
    **{name: getattr(typing, name) for name in ("Any", "Literal", "Callable", "Iterator")},
    **{name: getattr(sbpjax, name) for name in ("placement", "Generator", "memory_format", "layout", "Size")},
    "AbstractContextManager": contextlib.AbstractContextManager,
    "Compiled": importlib.import_module("sbpjax.graph.program.compile").Compiled,
    "EllipsisType": types.EllipsisType,
    "RemovableHandle": importlib.import_module("sbpjax._core.tensor.nodes.node").RemovableHandle,
}


class Unresolved(Exception):
    """An annotation names something that cannot be found."""


class Types:
    """The types that a stub uses, and their imports."""

    def __init__(self) -> None:
        self.modules: set[str] = {"builtins"}
        self.names: dict[str, str] = {}  # name here: "module name"

    def render(self, annotation: object, space: dict) -> str:
        """Return an annotation, a text or an object, of a module's namespace as a stub writes it."""
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        return ast.unparse(_Names(self, space).visit(ast.parse(text, mode="eval")).body)

    def imports(self) -> list[str]:
        """Return the lines that import what `render` used."""
        lines = [f"import {module}" for module in sorted(self.modules - {"_types"})]
        if "_types" in self.modules:
            lines.append(f"import {aliases.__name__} as _types")
        for name, where in sorted(self.names.items()):
            module, own = where.split()
            lines.append(f"from {module} import {own} as {name}")
        return lines

    def of_object(self, found: object, text: str) -> str:
        """Return how a stub writes a class, or a special form of `typing`."""
        if found is None or found is type(None):
            return "None"
        name = getattr(found, "__name__", None) or getattr(found, "_name", "")
        module = getattr(found, "__module__", "")
        if module == "builtins" and hasattr(builtins, name):
            return f"builtins.{name}"
        if module in ("typing", "collections.abc", "types", "collections", "contextlib") and name:
            self.modules.add(module)
            return f"{module}.{name}"
        if isinstance(found, type):
            if not module.startswith("sbpjax"):
                top, last = module.partition(".")[0], name.rpartition(".")[2]  # jax.Array says it is of jaxlib
                own = last if getattr(sys.modules[top], last, None) is found else ""
                self.modules.add(top if own else module)
                return f"{top}.{own}" if own else f"{module}.{found.__qualname__}"
            own = found.__qualname__.partition(".")[0]
            self.names[f"_{own}"] = f"{module} {own}"
            return f"_{found.__qualname__}"
        raise Unresolved(text)


class _Names(ast.NodeTransformer):
    """Puts in place of every name the one that a stub has for it."""

    def __init__(self, stub: Types, space: dict) -> None:
        self.stub = stub
        self.space = space

    def _found(self, node: ast.expr) -> ast.expr:
        text = ast.unparse(node)
        last = text.rpartition(".")[2]
        if text in RESULT_CLASSES:
            self.stub.names[f"_{text}"] = f"{RESULTS_MODULE} {text}"
            return ast.Name(f"_{text}")
        found = _look_up(text, self.space)
        if last in ALIASES and (found is getattr(aliases, last) or found == getattr(aliases, last)):
            self.stub.modules.add("_types")
            return ast.parse(f"_types.{last}", mode="eval").body
        return ast.parse(self.stub.of_object(found, text), mode="eval").body

    visit_Name = _found
    visit_Attribute = _found

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if ast.unparse(node.value).endswith("Literal"):
            self.stub.modules.add("typing")
            node.value = ast.parse("typing.Literal", mode="eval").body
            return node
        return self.generic_visit(node)


def _look_up(text: str, space: dict) -> object:
    for names in (space, _only_for_checkers(space.get("__name__", "")), PUBLIC, vars(typing), sys.modules):
        try:
            return eval(text, dict(vars(builtins)) | dict(names))
        except (NameError, AttributeError):
            continue
    raise Unresolved(text)


@functools.cache
def _only_for_checkers(module: str) -> dict:
    """Return what a module imports under ``TYPE_CHECKING``."""
    try:
        loaded = importlib.import_module(module)
        tree = ast.parse(inspect.getsource(loaded))
    except (ImportError, OSError, TypeError, ValueError):
        return {}
    found: dict = {"__package__": loaded.__package__, "__name__": module}
    for node in tree.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for line in node.body:
                if isinstance(line, (ast.Import, ast.ImportFrom)):
                    try:
                        exec(compile(ast.Module([line], []), module, "exec"), found)
                    except ImportError:
                        continue
    return found


def default(value: object) -> str:
    """Return a default as a stub shows it; ``...`` if it says nothing."""
    if isinstance(value, float) and value - value != 0:  # inf and nan have no literal
        return "..."
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if type(value) is tuple and all(type(v) in (bool, int, float, str) for v in value):
        return repr(value)
    return "..."
