"""Balanced splits: the rows of a dim on each rank when sizes do not divide evenly.

A dim of 7 over 4 ranks is held as 2, 2, 2, 1: the first ``7 mod 4`` ranks get one more. Nested splits apply the rule
again to each part: 6 over ``[[0, 1], [2, 3]]`` as (S0, S0) is 3 | 3 and then 2, 1, 2, 1. Physically every rank's shard
has the same number of rows, ``ceil(n / k)``; `parts` gives those that count.

`part` works on Python ints and on traced scalars alike, so that the same rule serves layouts and compiled programs.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax.numpy as jnp


def part(n, size: int, index):
    """Return ``(offset, count)`` of part ``index`` of ``n`` rows over ``size`` ranks; both may be traced."""
    quotient = n // size
    rest = n - quotient * size
    if isinstance(n, int) and isinstance(index, int):
        return index * quotient + min(index, rest), quotient + (index < rest)
    return index * quotient + jnp.minimum(index, rest), quotient + (index < rest).astype(jnp.int32)


def nested_part(n: int, sizes: tuple[int, ...], indices) -> tuple:
    """Return ``(offset, count)`` of the part at ``indices`` under nested splits over ``sizes``, outer first."""
    offset, count = 0, n
    for size, index in zip(sizes, indices, strict=True):
        inner, count = part(count, size, index)
        offset = offset + inner
    return offset, count


def shard_size(n: int, sizes: tuple[int, ...]) -> int:
    """Return the rows of every rank's physical shard: the largest count."""
    return -(-n // math.prod(sizes))


def even(n: int, sizes: tuple[int, ...]) -> bool:
    """Return whether every rank holds the same number of rows, so that nothing is padded."""
    return n % math.prod(sizes) == 0


@functools.lru_cache(maxsize=4096)
def parts(n: int, sizes: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Return ``(offset, count)`` of every rank under nested splits, in row-major order of the axes."""
    result: list[tuple[int, int]] = [(0, n)]
    for size in sizes:
        nested: list[tuple[int, Any]] = [(o, part(count, size, i)) for o, count in result for i in range(size)]
        result = [(o + inner, count) for o, (inner, count) in nested]
    return tuple(result)
