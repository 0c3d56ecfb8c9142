"""Random legal layouts, and arrays laid out so that a missed or doubled reduction shows.

The summands of a partial sum are the value's leading bits on one rank and the rest on another: they add up exactly in
any order, so that ``floor`` of the sum cannot differ by rounding, yet ``floor`` of the summands does.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from sbpjax.sbp import algebra, placement
from sbpjax.sbp.layout import layout_of
from tests.support.assemble import from_local_shards

MESHES = {"2": [0, 1], "4": [0, 1, 2, 3], "2x2": [[0, 1], [2, 3]], "2x3": [[0, 1, 2], [3, 4, 5]]}


def random_codes(rng: np.random.Generator, ndim: int, axes: int) -> tuple[int, ...]:
    """Return random codes; every dim, B and P are equally likely, and nested splits occur."""
    choices = [algebra.B, algebra.P, *range(ndim)]
    return tuple(int(rng.choice(choices)) for _ in range(axes))


def terms_of(value: np.ndarray, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return ``count`` summands of ``value`` that add up to it exactly in any order (bool: by or)."""
    if count == 1:
        return [value]
    terms = [np.zeros_like(value) for _ in range(count)]
    first, second = rng.choice(count, 2, replace=False)
    if value.dtype == bool:
        mask = rng.random(value.shape) < 0.5
        terms[first], terms[second] = value & mask, value & ~mask
    elif value.dtype.kind in "iu":
        offset = rng.integers(0, 3, size=value.shape).astype(value.dtype)
        terms[first], terms[second] = value - offset, offset
    else:
        head = _leading_bits(value)
        with np.errstate(invalid="ignore"):
            tail = np.where(np.isfinite(value.astype(np.complex128)), value - head, 0).astype(value.dtype)
        terms[first], terms[second] = head, tail
    return terms


def _leading_bits(value: np.ndarray) -> np.ndarray:
    """Return floats with fewer bits of mantissa, so that the rest is exact."""
    if value.dtype.kind == "c":
        return (_leading_bits(value.real) + 1j * _leading_bits(value.imag)).astype(value.dtype)
    mantissa, exponent = np.frexp(value.astype(np.float64))
    head = np.ldexp(np.trunc(mantissa * 8) / 8, exponent)
    return np.where(np.isfinite(head), head, value.astype(np.float64)).astype(value.dtype)


def lay_out(value: np.ndarray, ranks: list, codes: tuple[int, ...], rng: np.random.Generator):
    """Return ``(array, layout, logical)``: the physical array of ``value`` and the value that it now stands for."""
    where = placement("cpu", ranks)
    sizes = where.hierarchy
    layout = layout_of(where, codes, value.shape, jnp.asarray(value).dtype)
    terms = terms_of(value, math.prod(sizes[a] for a in layout.partial_axes), rng)
    blocks = {}
    for rank, index, part in zip(where.ranks.flat, np.ndindex(*sizes), layout.parts(), strict=True):
        term = 0
        for a in layout.partial_axes:
            term = term * sizes[a] + index[a]
        blocks[int(rank)] = terms[term][tuple(slice(o, o + c) for o, c in part)]
    array, made = from_local_shards(blocks, where, algebra.to_sbp(codes))
    logical = np.logical_or.reduce(terms) if value.dtype == bool else sum(terms[1:], terms[0])
    return array, made, np.asarray(logical, value.dtype)
