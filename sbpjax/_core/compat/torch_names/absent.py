"""Absent names: PyTorch classes that libraries mention; using one raises an error with its replacement.

Reader = absent("torch.distributed.checkpoint.Reader", "files of PyTorch's own shards", "sbpjax.load(path)")
isinstance(x, Reader)        # False
Reader("path")               # NotInJaxError with both texts
Reader.open                  # a name of that name: it can be mentioned, too

A call while a library is imported, such as that of a decorator, gives an absent name instead of the error: the import
succeeds, and the first use of what the library made raises.
"""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

from sbpjax._core.compat.missing import is_importing
from sbpjax.errors import NotInJaxError


class _Absent(ABCMeta):
    """The type of absent names: attributes of one are absent, too. It goes with other bases, abstract ones included."""

    def __getattr__(cls, name: str) -> Any:
        message = cls.__dict__.get("_message")
        if message is None or name.startswith("__"):
            raise AttributeError(name)
        made = make_absent_class(f"{message[0]}.{name}", *message[1:])
        setattr(cls, name, made)
        return made


def is_absent(value: Any) -> bool:
    """Return whether a value is the class of an absent name."""
    return isinstance(value, _Absent)


def make_absent_class(name: str, reason: str, instead: str) -> Any:
    """Return a class that cannot be made or called, and raises an error with the reason.

    Args:
        name: the full name in PyTorch.
        reason: its subject.
        instead: one line that does the same.
    """

    def __new__(cls, *args, **kwargs):
        if is_importing():
            return make_absent_class(f"{name}(...)", reason, instead)
        raise NotInJaxError(f"{name}(...)", "a name that exists for imports and isinstance only", reason, instead)

    last = name.rpartition(".")[2]
    fields = {"__doc__": f"{name} is not here: {reason}.", "__module__": __name__, "_message": (name, reason, instead)}
    return _Absent(last, (), {"__new__": __new__, **fields})


def covers_submodules(getattr_of_module: Any) -> Any:
    """Mark a module's ``__getattr__``: it answers for modules below it, too, as `make_absent_getattr`'s does."""
    getattr_of_module.covers_submodules = True
    return getattr_of_module


def make_absent_getattr(space: str, reason: str, instead: str) -> Any:
    """Return a module's ``__getattr__`` under which every name is absent.

    Args:
        space: the module's name in PyTorch.
        reason: its subject.
        instead: one line that does the same.
    """
    made: dict[str, Any] = {}

    @covers_submodules
    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in made:
            made[name] = make_absent_class(f"{space}.{name}", reason, instead)
        return made[name]

    return __getattr__
