"""`Transform`, an invertible function between two sets, for `TransformedDistribution` and `biject_to`.

    t = ExpTransform()                       domain real, codomain positive
    y = t(x); x = t.inv(y)                   t.inv.inv is t
    t.log_abs_det_jacobian(x, y)             log |dy/dx|, summed over the event's dims

A subclass has `_call` and, where it has an inverse, `_inverse` and `log_abs_det_jacobian`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sbpjax import Tensor
from sbpjax.errors import DistributionError

from .. import constraints
from ..utils import missing_property


class Transform:
    """An invertible function.

    Args:
        cache_size: 1 keeps the last pair, so that the inverse of what was just computed is what it was computed of; 0
            keeps none.

    Attributes:
        domain: the constraint of its arguments.
        codomain: the constraint of its values.
        bijective: whether it is one-to-one.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise DistributionError("Transform(...)", f"cache_size={cache_size}", "must be 0 or 1", "1")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        if cache_size == 1:
            self._cached_x_y: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """How many dims of a value are one event, where arguments and values have as many."""
        if self.domain.event_dim != self.codomain.event_dim:
            rule = "Please use either .domain.event_dim or .codomain.event_dim"
            seen = f"{self.domain.event_dim} and {self.codomain.event_dim}"
            raise DistributionError(f"{type(self).__name__}.event_dim", seen, rule, ".domain.event_dim")
        return self.domain.event_dim

    sign: Any = missing_property("sign", "+1 if it is increasing, -1 if it is decreasing.")

    @property
    def inv(self) -> Any:
        """The inverse function."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        """Return the same function with another cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __call__(self, x: Any) -> Any:
        """Return the y of an x."""
        if self._cache_size == 0:
            return self._call(x)
        old_x, old_y = self._cached_x_y
        if x is old_x:
            return old_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Any) -> Any:
        """Return the x of a y."""
        if self._cache_size == 0:
            return self._inverse(y)
        old_x, old_y = self._cached_x_y
        if y is old_y:
            return old_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of how much the function stretches at x, whose value is y."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of the values of arguments of a shape."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of the arguments of values of a shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """A function the other way round; it is made by `Transform.inv`."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    domain = constraints.dependent_property(lambda self: self._inv.codomain, is_discrete=False)
    codomain = constraints.dependent_property(lambda self: self._inv.domain, is_discrete=False)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


def reject_too_few_dims(transform: str, shape: Sequence[int], needed: int) -> None:
    """Raise a ValueError if a shape has fewer dims than an event."""
    if len(shape) < needed:
        rule = f"Too few dimensions on input: at least {needed}"
        raise DistributionError(transform, f"{tuple(shape)}", rule, "add dims")
