"""Every row of random keys and bits: the same stream, bit by bit, under every layout."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.programs.rules.strategy_checker import MESHES, check, equations

_KEY = jax.random.key(3)


@functools.cache
def _cases():
    keys = jax.random.split(_KEY, (5, 4))
    found = []
    for width in (8, 16, 32, 64):
        dtype = jnp.dtype(f"uint{width}")
        found += equations(f"{width} bits", lambda k, t=dtype: jax.random.bits(k, (4, 5), t), _KEY)
    found += equations("bits of many keys", lambda k: jax.vmap(lambda k: jax.random.bits(k, (3, 4)))(k), keys[0])
    found += equations("uniform", lambda k: jax.random.uniform(k, (7, 4), np.float32), _KEY)
    found += equations("normal", lambda k: jax.random.normal(k, (5, 4), np.float32), _KEY)
    found += equations("split", lambda k: jax.random.split(k, (5, 4)), _KEY)
    found += equations("split many", lambda k: jax.vmap(lambda k: jax.random.split(k, 3))(k), keys[0])
    found += equations("seed", jax.vmap(jax.random.key), np.arange(5))
    found += equations("fold in", jax.vmap(jax.random.fold_in), keys[0], np.arange(4, dtype=np.uint32))
    found += equations("wrap and unwrap", lambda k: jax.random.wrap_key_data(jax.random.key_data(k)), keys)
    found += equations("clone", jax.random.clone, keys)
    found += equations("old keys", lambda k: jax.random.bits(k, (5, 4)), np.array([0, 7], np.uint32))
    other = jax.random.key(0, impl="rbg")
    found += equations("other kinds", lambda k: jax.random.bits(k, (5, 4)), other)
    found += equations("one element", lambda k: jax.random.bits(k, ()), _KEY)
    return found


@pytest.mark.parametrize("mesh", MESHES)
def test_random(mesh):
    assert check(_cases(), mesh) > 55


@pytest.mark.parametrize("mesh", MESHES)
def test_words_of_the_hash(mesh):
    from jax._src.random import prng, threefry2x32  # no public names

    def hash_of(one, two):
        return threefry2x32.threefry2x32_p.bind(one, two, *prng.iota_2x32_shape((5, 3)))

    ones = np.full((5, 3), 7, np.uint32)
    assert check(equations("hash", hash_of, ones, ones + 1), mesh) > 4


def test_numbers_beyond_32_bits(monkeypatch):
    # 2^32 elements do not fit a test: lower the limit so that the wide path runs on small shapes.
    from sbpjax._core.programs.rules import random

    monkeypatch.setattr(random, "_SMALL", 4)
    assert check(equations("wide", lambda k: jax.random.bits(k, (8, 5)), _KEY), "4") > 1
