"""Random bits in NumPy, equal to XLA's: the Threefry-2x32 hash of an element's position, with the key.

A key is an element of `KEY`, so that arrays of keys are sliced and reshaped as others. Only keys of `jax.random.key`
with its default generator come here, and with ``jax_threefry_partitionable``, its default.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from .evaluated import KEY
from .pointwise import rule

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_MOST_KEPT = 1 << 19  # elements of the bits of one key
_BLOCK = 1 << 15  # elements that stay in a core's cache


def _hash(key, count):
    """Return two arrays of 32 bits for the positions 0 to ``count``, in blocks."""
    if key.shape:
        raise NotImplementedError("several keys")
    high, low = np.uint32(key["high"]), np.uint32(key["low"])
    keys = high, low, high ^ low ^ np.uint32(0x1BD11BDA)
    out = np.empty((2, count), np.uint32)
    for start in range(0, count, _BLOCK):
        x, y = out[:, start : start + _BLOCK]
        position = np.arange(start, min(start + _BLOCK, count), dtype=np.uint64)
        np.add((position >> np.uint64(32)).astype(np.uint32), keys[0], out=x)
        np.add(position.astype(np.uint32), keys[1], out=y)
        for turn in range(5):
            for distance in _ROTATIONS[turn % 2]:
                x += y
                top = y << np.uint32(distance)
                y >>= np.uint32(32 - distance)
                y |= top
                y ^= x
            x += keys[(turn + 1) % 3]
            y += keys[(turn + 2) % 3] + np.uint32(turn + 1)
    return out


def bits_of(words, count: int):
    """Return 32 random bits for each position, of a key by its data."""
    return _bits(np.asarray(words, np.uint32).view(KEY)[0], 32, (count,))


def _bits(key, bit_width, shape):
    x, y = _hash(key, math.prod(shape))
    if bit_width == 64:
        bits = x.astype(np.uint64) << np.uint64(32) | y
    else:
        bits = (x ^ y).astype(f"u{bit_width // 8}")
    return bits.reshape(shape)


@functools.lru_cache(maxsize=16)
def _recent_bits(key: bytes, bit_width: int, shape: tuple[int, ...]):
    return _bits(np.frombuffer(key, KEY)[0], bit_width, shape)


@rule("random_bits")
def random_bits(key, bit_width, shape):
    # The backward of a dropout draws the mask of the forward again, for 20 ns an element.
    if key.shape or math.prod(shape) > _MOST_KEPT:
        return _bits(key, bit_width, shape)
    return _recent_bits(key.tobytes(), bit_width, tuple(shape)).copy()


@rule("random_split")
def random_split(key, shape):
    parts = np.ascontiguousarray(_hash(key, math.prod(shape)).T)
    return parts.view(KEY).reshape(shape)
