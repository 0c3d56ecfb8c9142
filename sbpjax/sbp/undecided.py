"""Undecided sbp entries: the sbp of a traced value before the plan is made.

    def build(self, x):                           # x came as split(0)
        x.sbp                                     # (sbpjax.sbp.split(dim=0),): arguments keep their layout
        y = x * 2
        y.sbp                                     # (decided by the plan,): the plan is made after the trace
        len(y.sbp), y.sbp == y.sbp                # 1, True
        z = self.other(x).to_global(sbp=y.sbp)    # z is not pinned either: its layout is the plan's choice too
        if y.sbp[0] == split(0): ...              # SbpError
    {(split(0),): 1}[y.sbp]                   # SbpError

An nd-sbp is a tuple of entries as usual; known entries are ordinary ones. Values never depend on layouts, so passing
such an entry on pins nothing on that axis, and the plan chooses the cheapest layouts of both values.
"""

from __future__ import annotations

import weakref
from typing import Any

from sbpjax.errors import SbpError

from .algebra import FREE, from_code, sbp


class Undecided(sbp):
    """An entry that the plan decides.

    Args:
        value: the traced array whose sbp it is; entries of one array and axis are equal.
        axis: the placement dimension.
    """

    __slots__ = ("_axis", "_value")

    def __init__(self, value: Any, axis: int) -> None:
        super().__init__(FREE)
        self._value = weakref.ref(value)  # kept by a user, an entry keeps no trace alive
        self._axis = axis

    @property
    def is_split(self) -> bool:
        """Raise, since it is not known yet."""
        raise self._undecided_error("sbp.is_split")

    def __eq__(self, other) -> bool:
        if not isinstance(other, sbp):
            return False
        if other is self or (isinstance(other, Undecided) and self._is_same_value(other)):
            return True
        raise self._undecided_error(f"sbp == {other!r}")

    def __hash__(self) -> int:
        # A dict compares only keys of equal hash: a lookup among known sbps would miss silently.
        raise self._undecided_error("hash(sbp), as of a key of a dict or set,")

    def __reduce__(self):
        raise self._undecided_error("pickling an sbp")

    def __deepcopy__(self, memo: dict) -> Undecided:
        return self

    def _is_same_value(self, other: Undecided) -> bool:
        value = self._value()
        return self._axis == other._axis and value is not None and value is other._value()

    def _undecided_error(self, operation: str) -> SbpError:
        value = self._value()
        aval = "a value" if value is None else f"{value.dtype.name}{list(value.shape)}"
        return SbpError(
            f"{operation} inside a traced program",
            f"the sbp of {aval} on axis {self._axis} of its placement: {self!r}",
            "the layout of an intermediate value is planned after the trace; until then its sbp can be handed on "
            "(y.to_global(sbp=x.sbp)), and known are those of arguments, parameters and results of to_global",
            "x = x.to_global(sbp=...) before the comparison; or compare that of an argument or a parameter",
        )


class UndecidedSbp(tuple):
    """An nd-sbp with entries that the plan decides."""

    __slots__ = ()

    def __eq__(self, other) -> bool:
        if not isinstance(other, tuple) or len(other) != len(self):
            return False
        pairs = [(a, b) for a, b in zip(self, other, strict=True) if a is not b]
        # An axis that is known to differ answers for all of them.
        pairs.sort(key=lambda pair: isinstance(pair[0], Undecided) or isinstance(pair[1], Undecided))
        return all(a == b for a, b in pairs)

    def __ne__(self, other) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


def sbp_of(codes: tuple[int, ...], value: Any) -> tuple:
    """Return the nd-sbp of a traced array of which some codes are `FREE`."""
    entries = (Undecided(value, axis) if code == FREE else from_code(code) for axis, code in enumerate(codes))
    return UndecidedSbp(entries) if FREE in codes else tuple(entries)
