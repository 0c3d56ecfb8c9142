"""Pickling by value for workers: lambdas, nested functions and classes of a notebook.

Code is sent as bytes, with the values of its closure and the globals that it names; a class as its bases and members.
Both sides run the same Python, since a worker is started with the training process's own.

Functions and classes are first made empty and then filled, so that they may refer to themselves and each other.
"""

from __future__ import annotations

import abc
import importlib
import marshal
import os
import sys
import types
from typing import Any

_HOME = "__sbpjax_worker__"  # the ``__module__`` of functions and classes in a worker
# Attributes that Python creates for every class.
_MADE_ANEW = {"__dict__", "__weakref__", "__module__", "__abstractmethods__", "_abc_impl"}


def reduce_object(obj: Any) -> Any:
    """Return how to pickle by value an object that a worker cannot import, or a module by name; else NotImplemented."""
    if isinstance(obj, types.ModuleType):
        return importlib.import_module, (obj.__name__,)
    if isinstance(obj, types.FunctionType):
        return NotImplemented if _importable(obj) else _function(obj)
    # Classes of other metaclasses, such as enumerations, are not their members alone; pickle names them by module.
    if type(obj) in (type, abc.ABCMeta):
        return _class(obj) if _is_of_session(obj) else NotImplemented
    if isinstance(obj, (classmethod, staticmethod)):
        return type(obj), (obj.__func__,)
    if isinstance(obj, property):
        return property, (obj.fget, obj.fset, obj.fdel, obj.__doc__)
    return NotImplemented


def main_file() -> str | None:
    """Return the file of the main module; None in a notebook, at a prompt and for a program from standard input."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    return os.path.abspath(path) if path is not None and os.path.isfile(path) else None


def _is_of_session(obj: Any) -> bool:
    """Return whether a function or class is of a main module that no worker can import."""
    return obj.__module__ == "__main__" and main_file() is None


def _importable(function: types.FunctionType) -> bool:
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function and not _is_of_session(function)


def _function(obj: types.FunctionType) -> tuple:
    names = _collect_names(obj.__code__)
    used = {name: obj.__globals__[name] for name in sorted(names & obj.__globals__.keys())}
    cells = () if obj.__closure__ is None else tuple(cell.cell_contents for cell in obj.__closure__)
    made = marshal.dumps(obj.__code__), obj.__name__, len(cells)
    return _empty_function, made, (used, cells, obj.__defaults__, obj.__kwdefaults__), None, None, _fill_function


def _class(obj: type) -> tuple:
    slots = vars(obj).get("__slots__", ())
    left_out = _MADE_ANEW | ({slots} if isinstance(slots, str) else set(slots))
    members = {name: value for name, value in vars(obj).items() if name not in left_out}
    made = type(obj), obj.__name__, obj.__bases__, vars(obj).get("__slots__")
    return _empty_class, made, members, None, None, _fill_class


def _collect_names(code: types.CodeType) -> set[str]:
    """Return the names that a function's code and the functions in it look up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _collect_names(constant)
    return names


def _empty_function(code: bytes, name: str, cells: int) -> types.FunctionType:
    space = {"__builtins__": __builtins__, "__name__": _HOME}
    closure = tuple(types.CellType() for _ in range(cells)) or None
    return types.FunctionType(marshal.loads(code), space, name, None, closure)


def _fill_function(function: types.FunctionType, state: tuple) -> None:
    used, cells, function.__defaults__, function.__kwdefaults__ = state
    function.__globals__.update(used)
    for cell, value in zip(function.__closure__ or (), cells, strict=True):
        cell.cell_contents = value


def _empty_class(meta: Any, name: str, bases: tuple, slots: Any) -> type:
    return meta(name, bases, {"__module__": _HOME, **({} if slots is None else {"__slots__": slots})})


def _fill_class(made: type, members: dict[str, Any]) -> None:
    for name, value in members.items():
        if name not in ("__slots__", "__qualname__"):
            setattr(made, name, value)
    abc.update_abstractmethods(made)
