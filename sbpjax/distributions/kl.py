"""Kullback-Leibler divergences: `kl_divergence`, and `register_kl` for a pair of classes.

Source of Laplace's: Gil: On Rényi divergence measures for continuous alphabet sources (2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

import sbpjax
from sbpjax import Tensor
from sbpjax.errors import DistributionError, warn
from sbpjax.nn import functional as F

from .categorical import Categorical, OneHotCategorical
from .continuous import Exponential, Gumbel, Laplace, Normal, Uniform
from .derived import Independent, TransformedDistribution
from .discrete import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution
from .gamma import Beta, Dirichlet, Gamma
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis, half_log_det
from .utils import _sum_rightmost, euler_constant, where

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable[[Any, Any], Tensor] | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Return a decorator that makes a function the divergence of two classes and their subclasses.

    Raises:
        TypeError: one of them is no class.

    Example:
        >>> @register_kl(Normal, Normal)
        ... def kl_normal_normal(p, q):
        ...     return (q.scale / p.scale).log() + (p.variance + (p.loc - q.loc) ** 2) / (2 * q.variance) - 0.5
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):  # also one that only mixes with distributions, as Pyro has
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind!r}")

    def register(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence: the mean of ``log p(x) - log q(x)`` over draws x of p.

    Raises:
        NotImplementedError: there is no formula for these two.
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _nearest(*pair)
    function = _KL_MEMOIZE[pair]
    if function is None:
        names = f"{type(p).__name__} and q type {type(q).__name__}"
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {names}")
    return function(p, q)


def _nearest(kind_p: type, kind_q: type) -> Callable[[Any, Any], Tensor] | None:
    """Return the function of the pair nearest to p, then to q; warn if the other order differs."""
    pairs = [pair for pair in _KL_REGISTRY if issubclass(kind_p, pair[0]) and issubclass(kind_q, pair[1])]
    if not pairs:
        return None
    nearest: Any = cmp_to_key(_compare_pairs)
    first = min(pairs, key=nearest)
    its, mine = min([(q, p) for p, q in pairs], key=nearest)
    other = mine, its
    if _KL_REGISTRY[first] is not _KL_REGISTRY[other]:
        text = f"Ambiguous kl_divergence({kind_p.__name__}, {kind_q.__name__}). "
        text += f"Please register_kl({first[0].__name__}, {other[1].__name__})"
        warn(text, RuntimeWarning)
    return _KL_REGISTRY[first]


def _compare_pairs(one: tuple[type, type], other: tuple[type, type]) -> int:
    """Return -1 if the first of one pair is a subclass of the other's, or, of equal firsts, the second is."""
    for mine, its in zip(one, other):
        if mine is not its:
            return -1 if issubclass(mine, its) else 1
    return 0


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of Independent distributions with different numbers of dims")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of distributions transformed by different functions")
    return kl_divergence(p.base_dist, q.base_dist)


# -- discrete ----------------------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    one = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    zero = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    one = where(q.probs == 0, math.inf, one)
    zero = where(q.probs == 1, math.inf, zero)
    return where(p.probs == 0, 0.0, one) + where(p.probs == 1, 0.0, zero)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        rule = "KL between Binomials where q.total_count > p.total_count is not implemented"
        raise NotImplementedError(rule)
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    each = where(q.probs == 0, math.inf, each)
    return where(p.probs == 0, 0.0, each).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


# -- continuous --------------------------------------------------------------------------------------------------------


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + apart / q.scale + ratio * (-apart / p.scale).exp() - 1


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, apart = p.scale / q.scale, (q.loc - p.loc) / q.scale
    rest = (apart + (1 + ratio).lgamma()).exp()
    return -ratio.log() - apart + ratio * euler_constant + rest - (1 + euler_constant)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    inside = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, inside)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    first = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return first + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norm = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return norm + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet(), q._dirichlet())


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    """Return ``log det M - log det L + (|M⁻¹L|² + |M⁻¹(μq - μp)|² - k) / 2`` of p's and q's Cholesky factors L, M."""
    if p.event_shape != q.event_shape:
        rule = "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        seen = f"{tuple(p.event_shape)}, {tuple(q.event_shape)}"
        raise DistributionError("kl_divergence(p, q)", seen, rule, "vectors of one size")
    mine, its = sbpjax.broadcast_tensors(p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril)
    trace = sbpjax.linalg.solve_triangular(its, mine, upper=False).square().sum([-2, -1])
    apart = _batch_mahalanobis(its, q.loc - p.loc)
    return half_log_det(its) - half_log_det(mine) + 0.5 * (trace + apart - p.event_shape[0])
