"""Inputs of the recorded ops: seeded values by kind, laid out rank by rank, with random summands per rank."""

from __future__ import annotations

import math

import numpy as np

from sbpjax._core.tensor.handle.tensor import wrap, wrap_any
from sbpjax.sbp.layout import layout_of
from tests.support.assemble import from_local_shards

NAMES = "abcdefgh"


def values(kind: str, shape, seed: int) -> np.ndarray:
    """Return the logical value of an input.

    Kinds: ``f32_normal``, ``f32_pos`` (0.5 to 1.5), ``f32_unit`` (0.1 to 0.9), ``bool``, ``i64_ltN``,
        ``i64_unique_ltN``.
    """
    rng = np.random.default_rng([seed, *shape])
    if kind == "f32_normal":
        return rng.normal(size=shape).astype(np.float32)
    if kind == "f32_pos":
        return rng.uniform(0.5, 1.5, size=shape).astype(np.float32)
    if kind == "f32_unit":
        return rng.uniform(0.1, 0.9, size=shape).astype(np.float32)
    if kind == "bool":
        return rng.random(shape) < 0.5
    if kind.startswith("i64_unique_lt"):
        return rng.permutation(int(kind[13:]))[: math.prod(shape)].reshape(shape).astype(np.int64)
    assert kind.startswith("i64_lt"), kind
    return rng.integers(0, int(kind[6:]), size=shape).astype(np.int64)


def summands(value: np.ndarray, count: int, seed: int) -> list[np.ndarray]:
    """Return ``count`` random terms whose sum (for bool: or) is ``value``, floats up to rounding."""
    if count == 1:
        return [value]
    rng = np.random.default_rng([seed, count])
    if value.dtype == bool:
        terms = [value & (rng.random(value.shape) < 0.5) for _ in range(count - 1)]
        return [*terms, value & ~np.logical_or.reduce(terms)]
    if value.dtype.kind == "i":
        terms = [rng.integers(-9, 10, size=value.shape) for _ in range(count - 1)]
    else:  # multiples of 1/16 keep the sum within an ulp of the value
        terms = [(rng.integers(-32, 33, size=value.shape) / 16).astype(value.dtype) for _ in range(count - 1)]
    return [*terms, (value - sum(terms)).astype(value.dtype)]


def blocks_of(value: np.ndarray, placement, codes, seed: int) -> dict[int, np.ndarray]:
    """Return what each rank holds of ``value``."""
    layout = layout_of(placement, codes, value.shape, value.dtype)
    sizes = placement.hierarchy
    terms = summands(value, math.prod(sizes[a] for a in layout.partial_axes), seed)
    result = {}
    for rank, index, part in zip(placement.ranks.flat, np.ndindex(*sizes), layout.parts(), strict=True):
        term = 0
        for a in layout.partial_axes:
            term = term * sizes[a] + index[a]
        result[int(rank)] = terms[term][tuple(slice(o, o + c) for o, c in part)]
    return result


def global_tensor(value: np.ndarray, placement, codes, seed: int = 0):
    """Return a global tensor of a logical value."""
    return wrap_any(*from_local_shards(blocks_of(value, placement, codes, seed), placement, _sbp(codes)))


def _sbp(codes):
    from sbpjax.sbp import algebra

    return algebra.to_sbp(codes)


def local_tensor(value: np.ndarray):
    """Return a tensor on one device."""
    import jax.numpy as jnp

    return wrap(jnp.asarray(value))
