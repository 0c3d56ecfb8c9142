"""How names of another runtime answer: they exist, since libraries mention them, and say what to use instead."""

from __future__ import annotations

from typing import Any

from sbpjax.errors import NotInJaxError, message


def absent(name: str, why: str, instead: str) -> Any:
    """Return a class that cannot be made or called, and says why.

    Args:
        name: the full name in PyTorch.
        why: what it belongs to.
        instead: one line that does what it is for.
    """

    def __new__(cls, *args, **kwargs):
        raise NotInJaxError(message(f"{name}(...)", "a name that stands here to be mentioned only", why, instead))

    last = name.rpartition(".")[2]
    return type(last, (), {"__new__": __new__, "__doc__": f"{name} is not here: {why}.", "__module__": __name__})
