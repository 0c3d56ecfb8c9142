"""LRU cache in two generations, in which a hit costs a plain ``dict.get``.

Eager ops compile a program for each new shape: 25 to 600 ms and 1.5 to 6 MB each, which a loop over ever-changing sizes
would add up without end. A `LRUCache` of 1,024 holds between 512 and 1,024 of them. Its entries are *young* or *older*:
a hit among the young is a plain ``dict.get``, one among the older makes it young again; 512 young ones become the older
ones, and the previous older ones are dropped.
"""

from __future__ import annotations

import os
from typing import Any


def most_programs() -> int:
    """Return the size of a cache of eager programs: ``SBPJAX_EAGER_PROGRAMS``, else 1,024."""
    value = os.environ.get("SBPJAX_EAGER_PROGRAMS", "")
    return max(2, int(value)) if value.isdecimal() else 1024


class LRUCache(dict):
    """A dict of at most `most` values that drops those not used for longest.

    Look up with ``get``; on a miss with `promote_older`, then add with `keep`. Values are not None.

    Args:
        most: the most values that it holds.

    Example:
        >>> table = LRUCache(2)
        >>> found = table.get(key) or table.promote_older(key) or table.keep(key, make())
    """

    __slots__ = ("_older", "_young")

    def __init__(self, most: int) -> None:
        super().__init__()
        self._young = max(1, most // 2)
        self._older: dict = {}

    def promote_older(self, key: Any) -> Any:
        """Return the value of a key that `get` did not find, if it was dropped from the young only; else None."""
        value = self._older.pop(key, None)
        return None if value is None else self.keep(key, value)

    def find(self, key: Any) -> Any:
        """Return a value, or None: ``get`` and `promote_older`, where the call does not matter."""
        return self.get(key) or self.promote_older(key)

    def keep(self, key: Any, value: Any) -> Any:
        """Add a value, and return it."""
        if len(self) >= self._young:
            self._older = dict(self)
            super().clear()
        self[key] = value
        return value

    def clear(self) -> None:
        """Drop all."""
        self._older = {}
        super().clear()

    def everything(self) -> list:
        """Return all values, the last used ones at the end."""
        return [*self._older.values(), *self.values()]
