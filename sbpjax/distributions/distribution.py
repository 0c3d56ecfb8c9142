"""`Distribution`: base class, with batch shape, event shape and argument checks.

Normal(loc of (3, 1), scale of (1, 4))         batch (3, 4), event ()
Dirichlet(concentration of (5, 6))             batch (5,), event (6,)
.sample((2,))                                  (2,) + batch + event
.log_prob(value)                               (2,) + batch
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from sbpjax import Size, Tensor
from sbpjax.autograd import no_grad
from sbpjax.errors import DistributionError, warn

from .constraints import is_dependent
from .utils import is_known, lazy_property, missing_property


class Distribution:
    """Base of the distributions.

    Args:
        batch_shape: the shape of independent distributions.
        event_shape: the shape of one value.
        validate_args: whether parameters and values are checked; by default they are, unless
            `set_default_validate_args(False)` was called. Inside a traced program nothing can be checked.

    Attributes:
        arg_constraints: the constraint of each parameter.
        support: the constraint of the values.
        has_rsample: whether `rsample` gives draws through which gradients flow.
        has_enumerate_support: whether `enumerate_support` lists the values.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    _expanded_apart: tuple[str, ...] = ()  # attributes that a class's own `expand` sets

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warn(f"{type(self)} does not define `arg_constraints`; its arguments are not checked")
            return
        for name, constraint in wanted.items():
            lazy = name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property)
            if is_dependent(constraint) or lazy:
                continue
            value = getattr(self, name)
            if not _satisfies_constraint(constraint, value):
                operation = f"{type(self).__name__}({name}=...)"
                rule = f"Expected parameter {name} of distribution to satisfy the constraint {constraint!r}, "
                rule += f"but found invalid values:\n{value}"
                raise DistributionError(operation, _describe_tensor(value), rule, "validate_args=False does not look")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments, except those with their own `validate_args`."""
        if value not in (True, False):
            raise DistributionError("set_default_validate_args", repr(value), "a bool", "True")
        Distribution._validate_args = value

    arg_constraints: Any = missing_property("arg_constraints", "The constraint of each parameter.")
    support: Any = missing_property("support", "The constraint of the values.")

    @property
    def batch_shape(self) -> Size:
        """The shape of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    def _lacks(self, label: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {label}")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Return the distribution with parameters expanded to a batch shape.

        Raises:
            NotImplementedError: a class outside this package has parameters of its own and no `expand`.
        """
        new = self._get_checked_instance(None, _instance)
        shape, given = Size(batch_shape), {*new.__dict__, *self._expanded_apart}
        for name, value in list(self.__dict__.items()):
            if name not in given:
                new.__dict__[name] = _expand_value(value, self._batch_shape, shape)
        new._batch_shape = shape
        return new

    def _get_checked_instance(self, cls: type | None, _instance: Any = None) -> Any:
        """Return the instance to expand into: the given one, or an empty one, if the class makes itself as `cls` does.

        Without `cls` it is asked whether the class that says how to expand is as near as the one that says how to make.
        """
        if _instance is not None:
            return _instance
        if cls is None:
            maker = next(c for c in type(self).__mro__ if "__init__" in c.__dict__)
            known = maker.__module__.startswith(__package__ or "sbpjax") and maker is not Distribution
        else:
            maker, known = type(self), type(self).__init__ is cls.__init__
        if not known:
            rule = (
                f"Subclass {maker.__name__} that defines a custom __init__ method must also define a custom .expand()"
            )
            raise NotImplementedError(rule)
        return type(self).__new__(type(self))

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws of the shape ``sample_shape + batch_shape + event_shape``, without gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Return draws through which gradients flow to the parameters."""
        raise self._lacks("rsample")

    def sample_n(self, n: int) -> Tensor:
        """Return n draws."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Tensor:
        """Return the logarithm of the density or the probability of values."""
        raise self._lacks("log_prob")

    def cdf(self, value: Any) -> Tensor:
        """Return the probability of at most a value."""
        raise self._lacks("cdf")

    def icdf(self, value: Any) -> Tensor:
        """Return the value below which a probability lies."""
        raise self._lacks("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution along a new first dim."""
        raise self._lacks("enumerate_support")

    def entropy(self) -> Tensor:
        """Return the entropy."""
        raise self._lacks("entropy")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        """Return the shape of draws."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return Size((*shape, *self._batch_shape, *self._event_shape))

    def _sample_size(self, sample_shape: Sequence[int] = ()) -> Size:
        return self._extended_shape(sample_shape)

    def _validate_sample(self, value: Any) -> None:
        """Raise a ValueError if a value is none of this distribution's."""
        operation = f"{type(self).__name__}.log_prob(value)"
        if not isinstance(value, Tensor):
            rule = f"The value argument to log_prob must be a Tensor, not a {type(value).__name__}"
            raise DistributionError(operation, type(value).__name__, rule, "sbpjax.tensor(value)")
        shape, event = tuple(value.shape), tuple(self._event_shape)
        if shape[len(shape) - len(event) :] != event:
            rule = f"The right-most size of value must match event_shape: {shape} vs {event}."
            raise DistributionError(operation, _describe_tensor(value), rule, "validate_args=False does not look")
        whole = (*self._batch_shape, *event)
        if any(i not in (1, j) and j != 1 for i, j in zip(reversed(shape), reversed(whole))):
            rule = f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {whole}."
            raise DistributionError(operation, _describe_tensor(value), rule, "validate_args=False does not look")
        try:
            support = self.support
        except NotImplementedError:
            warn(f"{type(self)} does not define `support`; values are not checked")
            return
        if not _satisfies_constraint(support, value):
            rule = f"Expected value argument to be within the support ({support!r}) of the distribution, "
            rule += f"but found invalid values:\n{value}"
            raise DistributionError(operation, _describe_tensor(value), rule, "validate_args=False does not look")

    def _check_value(self, value: Any) -> Any:
        """Return a value, checked if arguments are."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def __repr__(self) -> str:
        found = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        text = [f"{n}: {_summarize(v)}" for n, v in found if isinstance(v, Tensor)]
        return f"{type(self).__name__}({', '.join(text)})"


def _satisfies_constraint(constraint: Any, value: Any) -> bool:
    """Return whether values satisfy a constraint, as far as one can look."""
    if not isinstance(value, Tensor) or not is_known(value):
        return True
    valid = constraint.check(value.detach())
    return not is_known(valid) or bool(valid.all().item())


def _summarize(value: Tensor) -> Any:
    if value.numel() != 1 or not is_known(value):
        return value.shape
    return value if value.ndim else value.item()


def _describe_tensor(value: Tensor) -> str:
    return f"{value.dtype.name}{list(value.shape)}"


def _expand_value(value: Any, old: Size, new: Size) -> Any:
    """Return a tensor or distribution whose shape begins with a batch shape with another one; others as they are."""
    if isinstance(value, Tensor):
        return value.expand(*new, *value.shape[len(old) :])
    if isinstance(value, Distribution):
        return value.expand(Size([*new, *value.batch_shape[len(old) :]]))
    return copy.copy(value) if isinstance(value, list) else value
