"""Version counter: one mark per process that changes with every change to modules or optimizers.

A graph checks before every step whether its modules still hold the same tensors in the same modes, and its optimizers
the same state and options. Checking every table costs a step of 20 tensors 80 µs, since the step before has pushed
each object out of the caches. So the tables report their changes themselves:

    mark = changes.now
    ...                       # steps of a program; a schedule sets param_groups[0]["lr"]
    changes.now is mark       # nothing was registered, replaced, frozen or switched since

    model.eval()              # Module.__setattr__ moves the mark: the next step checks every table

`Table`, `Fields`, `States`, `Group` and `Items` are the containers of modules and optimizers; each behaves as its base
and moves the mark with every change. A change without a report, such as a write into ``vars(module)``, is seen when
the mark next moves.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from typing import Any


class Changes:
    """The mark of this process.

    Attributes:
        now: an object that is replaced at every change; holding an old one shows that there was one.
    """

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = object()

    def note(self) -> None:
        """Move the mark."""
        self.now = object()


changes = Changes()


def _mark_changes(cls: type, *names: str) -> None:
    """Add methods to a container that call its base's and move the mark after the change."""
    for name in names:
        method = getattr(cls.__mro__[1], name)

        def noting(self, *args, _method=method, **kwargs):
            # Also where the method raises: `update` may have changed a part by then.
            try:
                return _method(self, *args, **kwargs)
            finally:
                changes.now = object()

        setattr(cls, name, functools.wraps(method)(noting))


_DICT = ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update")


class Table(OrderedDict[str, Any]):
    """The parameters, buffers or children of a module by name."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle as an `OrderedDict`, so that files of modules name no internal class of this package."""
        return OrderedDict, (), None, None, iter(self.items())


class Fields(dict[str, Any]):
    """The state of one parameter by name."""

    def copy(self) -> Fields:
        """Return a container of the same kind with the same content."""
        return Fields(self)


class States(defaultdict[Any, Any]):
    """The state of every parameter."""


class Items(list[Any]):
    """The groups of an optimizer, or the parameters of a group."""


class Group(dict[str, Any]):
    """The options of a group of parameters; a learning rate is read before every step, so a new one moves no mark."""

    def __setitem__(self, key: Any, value: Any) -> None:
        # A learning rate is an input of the program, and schedules set it in every step.
        quiet = key == "lr" and value.__class__ is float and self.get(key).__class__ is float
        super().__setitem__(key, value)
        if not quiet:
            changes.now = object()


_mark_changes(Table, *_DICT, "move_to_end")
_mark_changes(Fields, *_DICT)
_mark_changes(States, *_DICT)
_mark_changes(Group, *_DICT[1:])
_mark_changes(
    Items, "__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop",
    "remove", "reverse", "sort",
)  # fmt: skip
