"""Random numbers drawn in blocks are, bit for bit, those that a program of their shape draws."""

import math

import jax
import numpy as np
import pytest

from sbpjax._core.ops.randoms import blocks as random_blocks
from sbpjax._core.ops.randoms import random

F32, F64, I64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
BF16, C64 = np.dtype(jax.numpy.bfloat16), np.dtype(np.complex64)
BLOCK, SHAPE = 256, (7, 3, 31)  # 651 numbers: two blocks and a part of a third
KEY = jax.random.key(11)


def of_the_shape(fn, inputs, static):
    return np.asarray(jax.jit(lambda key, *rest: fn(key, *rest, shape=SHAPE, **static))(KEY, *inputs))


def in_blocks(fn, inputs, static):
    size = math.prod(SHAPE)
    words = np.asarray(jax.random.key_data(KEY))
    block = jax.jit(lambda key, *rest: fn(key, *rest, shape=(BLOCK,), **static))
    parts = [block(random_blocks.block_key(words, start), *inputs) for start in range(0, size, BLOCK)]
    return np.concatenate(parts)[:size].reshape(SHAPE)


def assert_same_bits(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    np.testing.assert_array_equal(np.ascontiguousarray(a).view(np.uint8), np.ascontiguousarray(b).view(np.uint8))


@pytest.mark.parametrize(
    ("fn", "inputs", "static"),
    [
        (random.rand, (), {"dtype": F32}),
        (random.rand, (), {"dtype": C64}),
        (random.randn, (), {"dtype": F32}),
        (random.randn, (), {"dtype": F64}),
        (random.randn, (), {"dtype": BF16}),
        (random.randn, (), {"dtype": C64}),
        (random.normal, (0.3, 1.7), {"dtype": F32}),
        (random.randint, (), {"low": -3, "high": 1000, "dtype": I64}),
        (random.randint, (), {"low": 0, "high": 7, "dtype": np.dtype(np.int8)}),
        (random.exponential, (), {"lambd": 1.7, "dtype": F32}),
        (random.cauchy, (), {"dtype": F32}),
        (random.trunc_normal, (), {"mean": 0.1, "std": 0.7, "dtype": F32}),
    ],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
def test_a_draw_in_blocks_has_the_bits_of_one_draw(fn, inputs, static):
    assert_same_bits(in_blocks(fn, inputs, static), of_the_shape(fn, inputs, static))


@pytest.mark.parametrize("dtype", [F32, F64, BF16], ids=str)
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1 / math.sqrt(27), 1 / math.sqrt(27)), (2.0, 3.0)])
def test_bounds_may_be_inputs(low, high, dtype):
    blocks = in_blocks(random_blocks.uniform_between, random_blocks.bounds_of(low, high, dtype), {"dtype": dtype})
    assert_same_bits(blocks, of_the_shape(random.uniform, (), {"low": low, "high": high, "dtype": dtype}))


def test_a_block_may_start_beyond_32_bits():
    words = np.asarray(jax.random.key_data(KEY))
    first, second = (random_blocks.block_key(words, (1 << 32) + start) for start in (0, 100))
    a, b = (np.asarray(jax.random.bits(key, (200,))) for key in (first, second))
    np.testing.assert_array_equal(a[100:], b[:100])
    low = np.asarray(jax.random.bits(random_blocks.block_key(words, 0), (200,)))
    assert not np.any(a == low)
