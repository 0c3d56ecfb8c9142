"""`biject_to` and `transform_to`: the transform from all real numbers to a constraint's set.

transform_to(constraints.positive)(x)          0 + exp(x): a scale made of an unconstrained number
biject_to(constraints.simplex)                 stick breaking: one-to-one, for densities
transform_to(constraints.simplex)              softmax: cheaper, but many x give the same y
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms
from .transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from classes of constraints to makers of transforms."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Transform]] = {}

    def register(self, constraint: Any, factory: Callable | None = None) -> Callable:
        """Add a maker of transforms for a class of constraints, or the class of an instance; also as a decorator.

        Raises:
            TypeError: it is no constraint.
        """
        if factory is None:
            return lambda made: self.register(constraint, made)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Transform:
        """Return the transform to a constraint's set.

        Raises:
            NotImplementedError: there is none for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _interval_transform(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, int | float) and isinstance(high, int | float) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _half_line_transform(bound: Any, scale: int) -> Transform:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(bound, scale)])


def _independent(registry: ConstraintRegistry, c: Any) -> Transform:
    return transforms.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims)


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda c: transforms.identity_transform)
    _registry.register(constraints.greater_than, lambda c: _half_line_transform(c.lower_bound, 1))
    _registry.register(constraints.greater_than_eq, lambda c: _half_line_transform(c.lower_bound, 1))
    _registry.register(constraints.less_than, lambda c: _half_line_transform(c.upper_bound, -1))
    _registry.register(constraints.interval, _interval_transform)
    _registry.register(constraints.half_open_interval, _interval_transform)
    _registry.register(constraints.independent, lambda c, registry=_registry: _independent(registry, c))
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
