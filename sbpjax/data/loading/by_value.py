"""Sending a function to a worker that cannot be imported there: a lambda, or one defined inside another.

Its code goes as bytes, with the values of what it closes over and the globals that it names. Both sides run the same
Python, since a worker is started with the training process's own.
"""

from __future__ import annotations

import importlib
import marshal
import sys
import types
from typing import Any


def reduced(obj: Any) -> Any:
    """Return how to pickle a function by value, or a module by name; NotImplemented for everything else."""
    if isinstance(obj, types.ModuleType):
        return importlib.import_module, (obj.__name__,)
    if not isinstance(obj, types.FunctionType) or _importable(obj):
        return NotImplemented
    names = _named(obj.__code__)
    used = {name: obj.__globals__[name] for name in sorted(names & obj.__globals__.keys())}
    cells = None if obj.__closure__ is None else tuple(cell.cell_contents for cell in obj.__closure__)
    return _made, (marshal.dumps(obj.__code__), used, obj.__name__, obj.__defaults__, obj.__kwdefaults__, cells)


def _importable(function: types.FunctionType) -> bool:
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


def _named(code: types.CodeType) -> set[str]:
    """Return the names that a function's code and the functions in it look up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _named(constant)
    return names


def _made(code: bytes, used: dict, name: str, defaults: Any, keywords: Any, cells: tuple | None) -> types.FunctionType:
    closure = None if cells is None else tuple(types.CellType(value) for value in cells)
    used = {"__builtins__": __builtins__, "__name__": "__sbpjax_worker__", **used}
    function = types.FunctionType(marshal.loads(code), used, name, defaults, closure)
    function.__kwdefaults__ = keywords
    return function
