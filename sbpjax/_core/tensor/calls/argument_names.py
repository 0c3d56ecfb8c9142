"""Other names of arguments, as PyTorch takes them: NumPy's ``axis``, and sizes that are given by name.

x.sum(axis=1, keepdims=True)        # x.sum(dim=1, keepdim=True)
zeros(size=(2, 3))                  # zeros(2, 3)
reshape(input=x, shape=(6,))        # x.reshape(6)
"""

from __future__ import annotations

from typing import Any

NUMPY = {"axis": "dim", "keepdims": "keepdim"}
REST = "*"
# What an argument means that is taken and ignored.
NOTHING = ""


def renamed(first: str, names: dict[str, str], args: tuple, options: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments of a call under a function's own names.

    Args:
        first: the function's first parameter.
        names: other name to parameter, `REST` or `NOTHING`.
        args: the arguments in order.
        options: those by name.
    """
    rest: tuple = ()
    found = {}
    for name, value in options.items():
        target = names.get(name, name)
        if target == REST:
            rest = (value,)
        elif target != NOTHING:
            found[target] = value
    # What is given by name cannot stand behind positional arguments.
    if rest and first in found:
        args = (found.pop(first), *args)
    return (*args, *rest), found
