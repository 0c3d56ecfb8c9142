"""`NegativeBinomial`: how many successes come before a number of failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.autograd import no_grad
from sbpjax.nn import functional as F

from . import constraints
from .discrete import _Binary, _one
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, lazy_property, where


class NegativeBinomial(Distribution):
    """How many successes come before a number of failures.

    Args:
        total_count: the number of failures; it need not be an integer.
        probs: the probability of a success.
        logits: its log-odds, instead.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        _one("NegativeBinomial", probs, logits)
        name = "probs" if probs is not None else "logits"
        count, given = broadcast_all(total_count, probs if probs is not None else logits)
        self.__dict__[name], self.total_count = given, count.to(given.dtype)
        super().__init__(given.shape, validate_args=validate_args)

    probs, logits, _param, param_shape = _Binary.probs, _Binary.logits, _Binary._param, _Binary.param_shape

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)  # a count of 0 is none of its own

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return sbpjax.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Any) -> Tensor:
        value, n = self._check_value(value), self.total_count
        each = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        return each + where(n + value == 0, 0.0, ways)
