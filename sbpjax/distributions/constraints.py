"""Which values a distribution and its parameters may have; `Constraint.check` says for each element, or each event."""

from __future__ import annotations

from typing import Any

import sbpjax
from sbpjax.tensor import Tensor


class Constraint:
    """A set of values.

    Attributes:
        is_discrete: whether it is countable.
        event_dim: how many dims one value has.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Return whether each value lies in the set."""
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        return type(self).__name__.strip("_")


class _Real(Constraint):
    def __init__(self, event_dim: int = 0) -> None:
        self.event_dim = event_dim

    def check(self, value: Tensor) -> Tensor:
        return _all(value.eq(value), self.event_dim)


class greater_than(Constraint):
    """Numbers above a bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class greater_than_eq(greater_than):
    """Numbers from a bound on."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class interval(Constraint):
    """Numbers between two bounds."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class half_open_interval(interval):
    """Numbers between two bounds, without the upper one."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class integer_interval(interval):
    """Integers between two bounds."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value % 1 == 0)


class integer_greater_than_eq(greater_than_eq):
    """Integers from a bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value % 1 == 0)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return value.eq(0) | value.eq(1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value.eq(0) | value.eq(1)).all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        lower = value.tril().eq(value).flatten(-2).all(-1)
        return lower & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        same = sbpjax.isclose(value, value.transpose(-2, -1), atol=1e-6).flatten(-2).all(-1)
        return same & (sbpjax.linalg.eigvalsh(value) > 0).all(-1)


class multinomial(Constraint):
    """Counts that sum to a number."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & value.sum(-1).eq(self.upper_bound)


def _all(value: Tensor, dims: int) -> Tensor:
    return value if dims == 0 else value.flatten(-dims).all(-1)


real, real_vector = _Real(), _Real(1)
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean, one_hot, simplex = _Boolean(), _OneHot(), _Simplex()
nonnegative_integer, positive_integer = integer_greater_than_eq(0), integer_greater_than_eq(1)
lower_cholesky, positive_definite = _LowerCholesky(), _PositiveDefinite()
