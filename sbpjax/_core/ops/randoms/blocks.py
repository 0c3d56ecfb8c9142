"""Block-wise random numbers: one program draws any stretch of a stream, for tensors of all shapes.

Compiling a draw takes 0.2 to 2 s of CPU time, and a model has tens of shapes of weights. Element i of a draw depends on
the key and i alone, so the numbers of a ``(64, 16, 1, 1)`` weight are the first 1,024 of the same key's flat stream.
A *block key* is a key and a start: under it every function of `_core.ops.randoms.random` that draws element by element
gives the stretch from there.

    normal(key, 0.0, 1.0, shape=(96, 64))                     # 6,144 numbers: a program of this shape
    normal(block_key(words, 0), 0.0, 1.0, shape=(4096,))      # their first 4,096, and
    normal(block_key(words, 4096), 0.0, 1.0, shape=(4096,))   # the others and 2,048 more: one program for all shapes
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import numpy as np
from jax import lax

from sbpjax._core.jax_private import define_prng_impl, threefry_prng_impl

from ..promote import broadcast_to, cast, compute_dtype

# Threefry-2x32 of Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011): 20 rounds in five groups.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def _threefry(key, high, low):
    """Return the two words that Threefry makes of each pair of words.

    JAX's own primitive is a loop on CPU, whose turns go through memory: 14 to 25 ns a number. Written out it is one
    vectorised loop over the numbers, 4 ns.
    """
    words = (key[0], key[1], lax.bitwise_xor(lax.bitwise_xor(key[0], key[1]), np.uint32(_PARITY)))
    x, y = (lax.add(half, broadcast_to(word, half.shape)) for half, word in ((high, words[0]), (low, words[1])))
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x = lax.add(x, y)
            left, right = (broadcast_to(np.uint32(n), y.shape) for n in (bits, 32 - bits))
            y = lax.bitwise_or(lax.shift_left(y, left), lax.shift_right_logical(y, right))
            y = lax.bitwise_xor(x, y)
        first, second = words[(group + 1) % 3], lax.add(words[(group + 2) % 3], np.uint32(group + 1))
        x, y = lax.add(x, broadcast_to(first, x.shape)), lax.add(y, broadcast_to(second, y.shape))
    return x, y


def _bits(key, width: int, shape: tuple[int, ...]):
    """Return bits of the stretch: those of JAX's threefry for elements ``start + i``, `i` from 0 on."""
    size = (math.prod(shape),)
    high, low = (broadcast_to(word, size) for word in key[2:])
    index = lax.add(low, lax.iota(np.uint32, *size))
    carry = lax.convert_element_type(lax.lt(index, low), np.uint32)
    first, second = _threefry(key, lax.add(high, carry), index)
    dtype = np.dtype(f"uint{width}")
    if width == 64:
        wide = lax.convert_element_type(first, dtype), lax.convert_element_type(second, dtype)
        bits = lax.bitwise_or(lax.shift_left(wide[0], np.full(size, 32, dtype)), wide[1])
    else:
        bits = lax.convert_element_type(lax.bitwise_xor(first, second), dtype)
    return lax.reshape(bits, shape)


def _split(key, shape: tuple[int, ...]):
    keys = threefry_prng_impl.split(key[:2], shape)
    return lax.concatenate([keys, lax.broadcast(key[2:], shape)], len(shape))


def _fold_in(key, data):
    return lax.concatenate([threefry_prng_impl.fold_in(key[:2], data), key[2:]], 0)


def _seed(seed):
    raise NotImplementedError("a block key is made of a key and a start, by block_key")


@functools.cache
def _impl() -> Any:
    return define_prng_impl(
        key_shape=(4,), seed=_seed, split=_split, random_bits=_bits, fold_in=_fold_in, name="threefry_block", tag="blk"
    )


def block_key(words, start: int):
    """Return the key of the stretch of a stream from an element on.

    Args:
        words: the data of a threefry key, ``uint32[2]``.
        start: the first element.
    """
    data = np.array([*words, start >> 32, start & 0xFFFF_FFFF], np.uint32)
    return jax.random.wrap_key_data(jax.device_put(data), impl=_impl())


def uniform_between(key, scale, low, top, under, /, shape, dtype):
    """Return `random.uniform` with its bounds as inputs, so that there is one program for all: see `bounds_of`."""
    shape = tuple(shape)
    unit = jax.random.uniform(key, shape, compute_dtype(dtype))
    x = cast(lax.add(lax.mul(unit, broadcast_to(scale, shape)), broadcast_to(low, shape)), dtype)
    return lax.select_n(lax.lt(x, broadcast_to(top, shape)), broadcast_to(under, shape), x)


def bounds_of(low: float, high: float, dtype) -> tuple[np.ndarray, ...]:
    """Return the four numbers that `uniform_between` takes for [low, high): width, low, high, and the next below."""
    top = np.asarray(high, dtype)
    wide = compute_dtype(dtype)
    return np.asarray(high - low, wide), np.asarray(low, wide), top, np.nextafter(top, np.asarray(-np.inf, dtype))


def inverse_of_erf(x, std, least, most, /):
    """Return the inverse of erf, scaled and limited: of uniform numbers it makes normal ones between two limits."""
    x = lax.mul(lax.erf_inv(x), broadcast_to(std, x.shape))
    return lax.clamp(broadcast_to(least, x.shape), x, broadcast_to(most, x.shape))
