"""Sets of valid values and parameters of distributions: `Constraint.check` tests each element, or each event.

    constraints.positive.check(tensor([1., -1.]))                  [True, False]        event_dim 0
    constraints.simplex.check(tensor([[.5, .5], [.5, .6]]))        [True, False]        event_dim 1
    constraints.independent(constraints.positive, 1)               all of the last dim  event_dim 1

Some are values (`positive`), others are made with bounds (`interval(0, 2)`). `dependent_property` is for a support that
depends on the parameters: on the class it is a constraint of which nothing more is known, on an instance a property.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


class Constraint:
    """A set of values.

    Attributes:
        is_discrete: whether it is countable.
        event_dim: how many dims one value has.
    """

    is_discrete: Any = False
    event_dim: Any = 0
    _shown: tuple[str, ...] = ()  # attributes in the text

    def check(self, value: Tensor) -> Tensor:
        """Return whether each value is in the set."""
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)
        return f"{type(self).__name__.removeprefix('_')}({inside})"


# -- sets that depend on parameters ------------------------------------------------------------------------------------


class _Dependent(Constraint):
    """A set of which is known at most whether it is discrete, and how many dims a value has.

    Args:
        is_discrete: whether it is countable, if that is known.
        event_dim: how many dims one value has, if that is known.
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    is_discrete = property(lambda self: _require_known(self._is_discrete, "is_discrete"))
    event_dim = property(lambda self: _require_known(self._event_dim, "event_dim"))

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """Return the constraint with more facts known."""
        discrete = self._is_discrete if is_discrete is NotImplemented else is_discrete
        return _Dependent(is_discrete=discrete, event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, value: Tensor) -> Tensor:
        rule = "Cannot determine validity of dependent constraint"
        raise DistributionError("dependent.check(value)", "no parameters", rule, "use an instance's support")


def _require_known(value: Any, name: str) -> Any:
    if value is NotImplemented:
        raise NotImplementedError(f".{name} cannot be determined statically")
    return value


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on parameters, so that it cannot be checked by itself."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of instances that is a dependent constraint of the class.

    Example:
        >>> class Uniform(Distribution):
        ...     @constraints.dependent_property(is_discrete=False, event_dim=0)
        ...     def support(self):
        ...         return constraints.interval(self.low, self.high)
    """

    def __init__(
        self, fn: Callable | None = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        """Return the property of a function."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# -- sets made of others -----------------------------------------------------------------------------------------------


class _IndependentConstraint(Constraint):
    """Values of which some dims make one event that is inside if all of it is.

    Args:
        base_constraint: of the parts.
        reinterpreted_batch_ndims: how many dims.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Tensor) -> Tensor:
        each = self.base_constraint.check(value)
        if each.ndim < self.reinterpreted_batch_ndims:
            rule = f"Expected value.dim() >= {self.event_dim} but got {value.ndim}"
            raise DistributionError("independent.check(value)", f"{tuple(value.shape)}", rule, "more dims")
        return _all_of_last(each, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Values that are in the set of each component of a mixture.

    Args:
        base_constraint: the components' support, of which the last batch dim counts the components.
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        each = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all_of_last(each, each.ndim - (value.ndim - self.event_dim))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


def _all_of_last(value: Tensor, dims: int) -> Tensor:
    return value if dims == 0 else value.reshape(*value.shape[: value.ndim - dims], -1).all(-1)


# -- sets of numbers ---------------------------------------------------------------------------------------------------


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value.eq(value)  # all but NaN


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return value.eq(0) | value.eq(1)


class _GreaterThan(Constraint):
    """Numbers above a bound."""

    _shown = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_GreaterThan):
    """Numbers from a bound on."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _IntegerGreaterThan(_GreaterThan):
    """Integers from a bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1).eq(0) & (value >= self.lower_bound)


class _LessThan(Constraint):
    """Numbers below a bound."""

    _shown = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(Constraint):
    """Numbers between two bounds."""

    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """Numbers between two bounds, without the upper one."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    """Integers between two bounds."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1).eq(0) & super().check(value)


# -- sets of vectors and matrices --------------------------------------------------------------------------------------


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value.eq(0) | value.eq(1)).all(-1) & value.sum(-1).eq(1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Counts that sum to at most a number."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all_of_last(value.tril().eq(value), 2) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return sbpjax.full_like(value[..., 0, 0].detach(), False, dtype=sbpjax.bool)
        symmetric = _all_of_last(sbpjax.isclose(value, value.transpose(-2, -1), atol=1e-6), 2)
        return symmetric & sbpjax.linalg.cholesky_ex(value).info.eq(0)


dependent, dependent_property, independent = _Dependent(), _DependentProperty, _IndependentConstraint
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
multinomial = _Multinomial
real, boolean, one_hot, simplex = _Real(), _Boolean(), _OneHot(), _Simplex()
real_vector = independent(real, 1)
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
lower_cholesky, positive_definite = _LowerCholesky(), _PositiveDefinite()
