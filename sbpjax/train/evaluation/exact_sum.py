"""`ExactSum`: float summation without rounding, independent of order and number of ranks.

A float is a whole number times a power of two, so a sum of floats is one whole number in units of the smallest power of
two that is needed, 2 to the -1,126: Python's numbers are as long as that needs. Many values are added at once:
those of equal exponent as int64 in NumPy, in two halves that cannot overflow.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

_UNIT = 1126  # the smallest exponent of `frexp` is -1,073, and a fraction has 53 places
_HALF = 27


class ExactSum:
    """Sum of floats, rounded once, when it is read.

    Example:
        >>> total = ExactSum()
        >>> for part in ([1e16, 1.0], [-1e16, 1.0]):
        ...     total.add(part)
        >>> float(total.value())
        2.0
    """

    def __init__(self, units: int = 0, other: float = 0.0) -> None:
        self._units = units
        self._other = other  # the sum of infinities and NaNs

    def add(self, values: Any) -> None:
        """Add an array of floats."""
        array = np.asarray(values, np.float64).reshape(-1)
        finite = np.isfinite(array)
        if not finite.all():
            self._other += float(array[~finite].sum())
            array = array[finite]
        fractions, exponents = np.frexp(array)
        whole = np.ldexp(fractions, 53).astype(np.int64)
        for exponent in np.unique(exponents):
            of = whole[exponents == exponent]
            total = (int((of >> _HALF).sum()) << _HALF) + int((of & ((1 << _HALF) - 1)).sum())
            self._units += total << int(exponent) - 53 + _UNIT

    def merge(self, other: ExactSum) -> None:
        """Add another sum."""
        self._units, self._other = self._units + other._units, self._other + other._other

    def value(self) -> Fraction | float:
        """Return the sum: exact, or that of the infinities and NaNs."""
        return self._other if self._other != 0 else Fraction(self._units, 1 << _UNIT)

    def mean(self, count: int) -> float:
        """Return the sum over a count, rounded once; NaN for a count of 0."""
        return float(self.value() / count) if count else float("nan")

    def encode(self) -> list[Any]:
        """Return the sum as plain values."""
        return [hex(self._units), self._other]

    @classmethod
    def decode(cls, values: list[Any]) -> ExactSum:
        """Return the sum from the result of `encode`."""
        return cls(int(values[0], 16), values[1])
