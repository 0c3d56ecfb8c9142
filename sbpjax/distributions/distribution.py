"""`Distribution`: parameters of a batch shape, values of an event shape.

Normal(loc of (3, 1), scale of (1, 4))         batch (3, 4), event ()
Dirichlet(concentration of (5, 6))             batch (5,), event (6,)
.sample((2,))                                  (2,) + batch + event
.log_prob(value)                               (2,) + batch
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import sbpjax
from sbpjax.autograd import no_grad
from sbpjax.errors import DistributionError, message
from sbpjax.tensor import Tensor
from sbpjax.tensor.size import Size

from .constraints import Constraint
from .utils import is_known


class Distribution:
    """Base of the distributions.

    Args:
        batch_shape: the shape of independent distributions.
        event_shape: the shape of one value.
        validate_args: whether parameters and values are checked; they are, unless `set_default_validate_args` says no.
            Inside a traced program nothing can be checked.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    support: Constraint
    has_rsample: ClassVar[bool] = False
    has_enumerate_support: ClassVar[bool] = False
    _validate_default: ClassVar[bool] = True

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        self._validate_args = Distribution._validate_default if validate_args is None else validate_args
        if not self._validate_args:
            return
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)  # what is derived lazily is not looked at
            if isinstance(value, Tensor) and is_known(value) and not constraint.check(value.detach()).all().item():
                asked = f"{type(self).__name__}({name}=...)"
                seen = f"{value.dtype.name}{list(value.shape)}"
                rule = f"Expected parameter {name} of distribution to satisfy the constraint {constraint!r}, "
                rule += "but found invalid values"
                raise DistributionError(message(asked, seen, rule, "validate_args=False does not look"))

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions made from now on check their arguments."""
        if value not in (True, False):
            raise DistributionError(message("set_default_validate_args", repr(value), "a bool", "True"))
        Distribution._validate_default = value

    @property
    def batch_shape(self) -> Size:
        """The shape of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    def _lacks(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {what}")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Distribution:
        """Return the distribution with parameters expanded to a batch shape."""
        new = copy.copy(self) if _instance is None else _instance
        shape = Size(batch_shape)
        for name, value in list(self.__dict__.items()):
            if isinstance(value, Tensor):
                event = value.ndim - len(self._batch_shape)
                new.__dict__[name] = value.expand(*shape, *value.shape[value.ndim - event :])
            elif isinstance(value, Distribution):
                new.__dict__[name] = value.expand(Size([*shape, *value.batch_shape[len(self._batch_shape) :]]))
        new._batch_shape = shape
        return new

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

    def _extended(self, sample_shape: Sequence[int] = ()) -> tuple[int, ...]:
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*shape, *self._batch_shape, *self._event_shape)

    _extended_shape = _extended

    def _checked(self, value: Any) -> Any:
        """Return a value, or raise a ValueError if it is outside the support."""
        if not self._validate_args:
            return value
        if not isinstance(value, Tensor):
            raise DistributionError(_VALUE % type(value).__name__)
        support = self.support
        if is_known(value) and not support.check(value.detach()).all().item():
            asked = f"{type(self).__name__}.log_prob(value)"
            rule = f"Expected value argument to be within the support ({support!r}) of the distribution, "
            rule += "but found invalid values"
            seen = f"{value.dtype.name}{list(value.shape)}"
            raise DistributionError(message(asked, seen, rule, "validate_args=False does not look"))
        return value

    _validate_sample = _checked

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if isinstance(self.__dict__.get(name), Tensor)]
        found = [(name, self.__dict__[name]) for name in names]
        text = [f"{n}: {v.item() if v.numel() == 1 and is_known(v) else tuple(v.shape)}" for n, v in found]
        return f"{type(self).__name__}({', '.join(text)})"


class ExponentialFamily(Distribution):
    """Base of the exponential families; a name here, as every entropy is written down."""


_VALUE = "The value argument to log_prob must be a Tensor, not a %s"


def noise(shape: Sequence[int], like: Tensor, draw: str = "randn_like") -> Tensor:
    """Return random numbers of a shape, of a parameter's dtype and where it lies."""
    return getattr(sbpjax, draw)(like.detach().expand(shape) if tuple(like.shape) != tuple(shape) else like.detach())
