"""Argument aliases of PyTorch: NumPy's ``axis``, and sizes given by name.

x.sum(axis=1, keepdims=True)        # x.sum(dim=1, keepdim=True)
zeros(size=(2, 3))                  # zeros(2, 3)
reshape(input=x, shape=(6,))        # x.reshape(6)
"""

from __future__ import annotations

from typing import Any

NUMPY = {"axis": "dim", "keepdims": "keepdim"}
REST = "*"
# The target of an argument that is accepted and ignored.
NOTHING = ""


def rename_arguments(
    first: str, names: dict[str, str], args: tuple, options: dict[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments of a call under a function's own names."""
    rest: tuple = ()
    found = {}
    for name, value in options.items():
        target = names.get(name, name)
        if target == REST:
            rest = (value,)
        elif target != NOTHING:
            found[target] = value
    # A parameter given by name would come after the rest, which is positional.
    if rest and first in found:
        args = (found.pop(first), *args)
    return (*args, *rest), found
