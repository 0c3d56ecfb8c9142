"""`ContinuousBernoulli`: a number between 0 and 1 whose density is Bernoulli's probability, normalised.

Source: Loaiza-Ganem, Cunningham: The continuous Bernoulli (2019), https://arxiv.org/abs/1907.06845.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError

from . import constraints
from .discrete import _Binary, _one
from .distribution import ExponentialFamily, noise
from .utils import broadcast_all, clamp_probs, is_known, lazy_property, logits_to_probs, where


class ContinuousBernoulli(ExponentialFamily):
    """A number x between 0 and 1, of density proportional to ``probs^x (1 - probs)^(1 - x)``.

    Around 1/2 the formulas cancel; between `lims` their Taylor series stand for them.

    Args:
        probs: the parameter.
        logits: its log-odds, instead.
        lims: between which the series is used.
        validate_args: whether arguments are checked.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        _one("ContinuousBernoulli", probs, logits)
        if probs is not None:
            (given,) = broadcast_all(probs)
            inside = constraints.unit_interval.check(given.detach())
            if validate_args and is_known(inside) and not inside.all().item():
                rule = "The parameter probs has invalid values"
                raise DistributionError("ContinuousBernoulli(probs)", f"{probs}", rule, "0 <= probs <= 1")
            given = self.__dict__["probs"] = clamp_probs(given)
        else:
            (given,) = broadcast_all(logits)
            self.__dict__["logits"] = given
        self._lims = lims
        super().__init__(given.shape, validate_args=validate_args)

    logits, _param, param_shape = _Binary.logits, _Binary._param, _Binary.param_shape

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter."""
        return clamp_probs(logits_to_probs(self.logits, True))

    def _far(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        """Return the parameters, those near 1/2 replaced by the lower limit."""
        return where(self._far(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """Return the logarithm of what the density is multiplied by."""
        cut, square = self._cut(), (self.probs - 0.5).square()
        below, above = where(cut <= 0.5, cut, 0.0), where(cut >= 0.5, cut, 1.0)
        apart = where(cut <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log())
        log_norm = ((-cut).log1p() - cut.log()).abs().log() - apart
        return where(self._far(), log_norm, math.log(2.0) + (4 / 3 + 104 / 45 * square) * square)

    @property
    def mean(self) -> Tensor:
        cut, x = self._cut(), self.probs - 0.5
        far = cut / (2.0 * cut - 1.0) + 1.0 / ((-cut).log1p() - cut.log())
        return where(self._far(), far, 0.5 + (1 / 3 + 16 / 45 * x.square()) * x)

    @property
    def variance(self) -> Tensor:
        cut, square = self._cut(), (self.probs - 0.5).square()
        far = cut * (cut - 1.0) / (1.0 - 2.0 * cut).square() + 1.0 / ((-cut).log1p() - cut.log()).square()
        return where(self._far(), far, 1 / 12 - (1 / 15 - 128 / 945 * square) * square)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(noise(self._sample_size(sample_shape), self.probs, "rand_like"))

    def log_prob(self, value: Any) -> Tensor:
        logits, value = broadcast_all(self.logits, self._check_value(value))
        loss = sbpjax.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._cont_bern_log_norm() - loss

    def cdf(self, value: Any) -> Tensor:
        value, cut = self._check_value(value), self._cut()
        far = (cut**value * (1.0 - cut) ** (1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        near = value - self._bent(value)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, where(self._far(), far, near)))

    def icdf(self, value: Any) -> Tensor:
        cut = self._cut()
        none = (-cut).log1p()
        far = ((-cut + value * (2.0 * cut - 1.0)).log1p() - none) / (cut.log() - none)
        return where(self._far(), far, value + self._bent(value))

    def _bent(self, value: Tensor) -> Tensor:
        """Return the linear term around 1/2; PyTorch has none, so that its draws have no gradient there."""
        return 2 * (self.probs - 0.5) * value * (1 - value)

    def entropy(self) -> Tensor:
        zero, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (zero - one) - self._cont_bern_log_norm() - zero

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        far = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = where(far, x, self._lims[0] - 0.5)
        series = 0.5 * x + x.square() / 24 - x.pow(4) / 2880
        return where(far, cut.expm1().abs().log() - cut.abs().log(), series)
