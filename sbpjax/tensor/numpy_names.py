"""NumPy's names of arguments: ``x.sum(axis=1, keepdims=True)`` is ``x.sum(dim=1, keepdim=True)``, as in PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .tensor import Tensor

NAMES = {"axis": "dim", "keepdims": "keepdim"}


def take_numpy_names(space: dict, names: str) -> None:
    """Let functions of a module, and the methods of their names, take NumPy's names too.

    Args:
        space: the module's ``globals()``, whose functions are replaced.
        names: the functions' names.
    """
    for name in names.split():
        function, method = space[name], Tensor.__dict__.get(name)
        space[name] = _taking(function)
        if method is not None:
            setattr(Tensor, name, space[name] if method is function else _taking(method))


def _taking(function: Callable) -> Callable:
    @functools.wraps(function)
    def public(*args, **options):
        if options and not NAMES.keys().isdisjoint(options):
            options = {NAMES.get(name, name): value for name, value in options.items()}
        return function(*args, **options)

    return public
