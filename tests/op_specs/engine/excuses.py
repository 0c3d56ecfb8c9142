"""Cases that differ from PyTorch on purpose, each with its reason.

An entry excuses an op (or several) in one form when a function of the call and the error says so.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Excuse:
    """A class of cases that differ.

    Attributes:
        names: the ops, separated by blanks; ``*`` for all.
        form: the form of testing, or ``*``.
        when: whether a ``(call, error)`` is of this class.
        reason: why it is so.
        witness: a case of it: name, form, seed, number.
    """

    names: str
    form: str
    when: Callable
    reason: str
    witness: tuple[str, str, int, int]


EXCUSES: dict[tuple[str, str, int, int], Excuse] = {}  # by witness
FINITE_CORNERS: dict[str, str] = {}  # patterns of ops whose inputs are finite in the form "corners", and why


def excuse(*entries: Excuse) -> None:
    """Add entries."""
    EXCUSES.update({entry.witness: entry for entry in entries})


def finite_corners(name: str) -> bool:
    """Return whether an op is not tested at NaN and infinities, see `FINITE_CORNERS`."""
    return any(fnmatch.fnmatch(name, pattern) for patterns in FINITE_CORNERS for pattern in patterns.split())


def excused(name: str, form: str, call, error) -> Excuse | None:
    """Return the entry that a failing case belongs to, if there is one."""
    for entry in EXCUSES.values():
        if entry.form in ("*", form) and (entry.names == "*" or name in entry.names.split()):
            if entry.when(call, error):
                return entry
    return None
