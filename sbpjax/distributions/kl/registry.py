"""KL registry: functions by pair of classes, and the most specific one for two distributions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from sbpjax import Tensor

from ..distribution import Distribution

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
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return _KL_REGISTRY[first]


def _compare_pairs(one: tuple[type, type], other: tuple[type, type]) -> int:
    """Return -1 if the first of one pair is a subclass of the other's, or, of equal firsts, the second is."""
    for mine, its in zip(one, other):
        if mine is not its:
            return -1 if issubclass(mine, its) else 1
    return 0
