"""KL divergences between distributions of two different classes.

Where q is zero on numbers that p has, the divergence is infinite.
"""

from __future__ import annotations

import math
from typing import Any

import sbpjax
from sbpjax import Tensor

from ..continuous import Exponential, Gumbel, Laplace, Normal, Uniform
from ..continuous_bernoulli import ContinuousBernoulli
from ..discrete import Bernoulli, Binomial, Poisson
from ..distribution import Distribution
from ..gamma import Beta, Gamma
from ..powers import Pareto
from ..utils import euler_constant, where
from .registry import register_kl

_LOG_2PI = math.log(2 * math.pi)


def _infinite(p: Any, q: Any) -> Tensor:
    like = next(getattr(p, n) for n in ("loc", "rate", "scale", "concentration1", "probs") if hasattr(p, n))
    return sbpjax.full_like(like, math.inf)


# the first has numbers where the second is zero
_BEYOND: dict[type[Distribution], tuple[type[Distribution], ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for _p, _others in _BEYOND.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)


# -- minus the mean of log q, by the moments of p ----------------------------------------------------------------------


def _from_exponential(q: Exponential, mean: Tensor) -> Tensor:
    return q.rate * mean - q.rate.log()


def _from_normal(q: Normal, mean: Tensor, square: Tensor) -> Tensor:
    """Take the mean of p and that of its square."""
    apart = square - 2 * q.loc * mean + q.loc.square()
    return 0.5 * (_LOG_2PI + apart / q.variance) + q.scale.log()


def _from_gamma(q: Gamma, mean: Tensor, log: Tensor) -> Tensor:
    """Take the mean of p and that of its logarithm."""
    norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    return norm - (q.concentration - 1) * log + q.rate * mean


def _from_gumbel(q: Gumbel, mean: Tensor, exponential: Tensor) -> Tensor:
    """Take the mean of p and that of ``exp(-x / q.scale)``."""
    return q.scale.log() + (mean - q.loc) / q.scale + (q.loc / q.scale).exp() * exponential


def _from_continuous_bernoulli(q: ContinuousBernoulli, mean: Tensor) -> Tensor:
    return -mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _any_normal(p, q: Normal) -> Tensor:
    return _from_normal(q, p.mean, p.variance + p.mean.square()) - p.entropy()


# -- Bernoulli, beta, continuous Bernoulli -----------------------------------------------------------------------------


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return _from_continuous_bernoulli(q, p.mean) - p.entropy()


@register_kl(Beta, Exponential)
def _beta_exponential(p: Beta, q: Exponential) -> Tensor:
    return _from_exponential(q, p.mean) - p.entropy()


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return _from_gamma(q, p.mean, log) - p.entropy()


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    return where((q.low > 0) | (q.high < 1), math.inf, (q.high - q.low).log() - p.entropy())


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p: ContinuousBernoulli, q: Exponential) -> Tensor:
    return _from_exponential(q, p.mean) - p.entropy()


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    return where((q.low > 0) | (q.high < 1), math.inf, (q.high - q.low).log() - p.entropy())


# -- exponential and gamma ---------------------------------------------------------------------------------------------


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _from_gamma(q, p.mean, -p.rate.log() - euler_constant) - p.entropy()


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    return _from_gumbel(q, p.mean, product / (product + 1)) - p.entropy()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Exponential, q: Normal) -> Tensor:
    return _from_normal(q, p.mean, 2 * p.mean.square()) - p.entropy()


@register_kl(Gamma, Exponential)
def _gamma_exponential(p: Gamma, q: Exponential) -> Tensor:
    return _from_exponential(q, p.mean) - p.entropy()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    exponential = (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration)
    return _from_gumbel(q, p.mean, exponential) - p.entropy()


# -- Gumbel, Laplace, normal -------------------------------------------------------------------------------------------


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    exponential = (-p.loc / q.scale + 0.5 * (p.scale / q.scale).square()).exp()
    return _from_gumbel(q, p.mean, exponential) - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    apart = p.loc - q.loc
    z = apart / p.scale
    size = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.square()).exp() + apart * sbpjax.erf(math.sqrt(0.5) * z)
    return (2 * q.scale).log() + size / q.scale - p.entropy()  # size: the mean of |x - q.loc|


# -- Pareto ------------------------------------------------------------------------------------------------------------


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    return where(p.alpha <= 1, math.inf, _from_exponential(q, p.alpha * p.scale / (p.alpha - 1)) - p.entropy())


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    log = p.scale.log() + p.alpha.reciprocal()
    return where(p.alpha <= 1, math.inf, _from_gamma(q, p.alpha * p.scale / (p.alpha - 1), log) - p.entropy())


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    mean, square = p.alpha * p.scale / (p.alpha - 1), p.alpha * p.scale.square() / (p.alpha - 2)
    return where(p.alpha <= 2, math.inf, _from_normal(q, mean, square) - p.entropy())


# -- uniform -----------------------------------------------------------------------------------------------------------


def _mean_of_log(low: Tensor, high: Tensor) -> Tensor:
    """Return the mean of log x over x between two bounds."""
    return (sbpjax.xlogy(high, high) - sbpjax.xlogy(low, low)) / (high - low) - 1


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    logs = (a - 1) * _mean_of_log(p.low, p.high) + (b - 1) * _mean_of_log(1 - p.high, 1 - p.low)
    return where((p.high > 1) | (p.low < 0), math.inf, norm - logs - p.entropy())


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return where((p.high > 1) | (p.low < 0), math.inf, _from_continuous_bernoulli(q, p.mean) - p.entropy())


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return where(p.low < 0, math.inf, _from_exponential(q, p.mean) - p.entropy())


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return where(p.low < 0, math.inf, _from_gamma(q, p.mean, _mean_of_log(p.low, p.high)) - p.entropy())


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    exponential = ((-p.low / q.scale).exp() - (-p.high / q.scale).exp()) * q.scale / (p.high - p.low)
    return _from_gumbel(q, p.mean, exponential) - p.entropy()


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    beyond = (q.alpha + 1) * _mean_of_log(p.low, p.high) - q.alpha.log() - q.alpha * q.scale.log()
    return where(p.low < q.scale, math.inf, beyond - p.entropy())
