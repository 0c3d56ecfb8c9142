"""Every row of primitives that move elements, by brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from sbpjax._core.programs.rules.shape import reshape_groups
from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(2)


def _x(*shape, dtype=np.float32):
    return _RNG.integers(-9, 9, shape).astype(dtype)


@functools.cache
def _reshapes():
    shapes = [
        ((8, 3), (24,)),
        ((8, 12), (8, 3, 4)),
        ((24,), (4, 6)),
        ((3, 8), (24,)),
        ((7, 1, 3), (7, 3)),
        ((5, 4, 6), (5, 24)),
        ((6, 4), (4, 6)),
        ((4, 8, 12), (32, 3, 4)),
        ((1, 5), (5, 1, 1)),
        ((0, 4), (2, 0)),
    ]
    found = []
    for source, target in shapes:
        found += equations(f"{source} to {target}", lambda x, t=target: lax.reshape(x, t), _x(*source))
    return found


@functools.cache
def _moves():
    x = _x(4, 5, 3)
    key = jax.random.split(jax.random.key(0), (5, 4))
    cases = [
        ("transpose", lambda x: lax.transpose(x, (2, 0, 1)), x),
        ("transpose of bools", lambda x: lax.transpose(x, (2, 0, 1)), x > 0),
        ("transpose of keys", lambda x: lax.transpose(x, (1, 0)), key),
        ("broadcast", lambda x: lax.broadcast_in_dim(x, (7, 4, 5, 3), (1, 2, 3)), x),
        ("broadcast of size 1", lambda x: lax.broadcast_in_dim(x, (5, 4, 6), (0, 2)), _x(1, 6)),
        ("broadcast of a scalar", lambda x: lax.broadcast_in_dim(x, (5, 4), ()), np.float32(3)),
        ("broadcast of keys", lambda x: lax.broadcast_in_dim(x, (3, 5, 4), (1, 2)), key),
        ("squeeze", lambda x: lax.squeeze(x, (1,)), _x(5, 1, 4)),
        ("expand", lambda x: lax.expand_dims(x, (1,)), x),
        ("reverse", lambda x: lax.rev(x, (1,)), x),
        ("concatenate", lambda x, y: lax.concatenate([x, y, x], 1), x, _x(4, 2, 3)),
        ("stack", lambda x, y: jnp.stack([x, y], 1), x, _x(4, 5, 3)),
        ("unstack", lambda x: jnp.unstack(x, axis=2), x),
        ("tile", lambda x: jnp.tile(x, (1, 2, 3)), x),
        ("tile with new dims", lambda x: jnp.tile(x, (2, 1, 1, 3)), x),
        ("split", lambda x: lax.split(x, [1, 4], axis=1), x),
        ("pad", lambda x: lax.pad(x, np.float32(1), ((0, 0, 0), (1, 2, 1), (0, 0, 0))), x),
        ("pad negative", lambda x: lax.pad(x, np.float32(1), ((0, 0, 0), (-1, -1, 0), (0, 0, 0))), x),
        ("slice", lambda x: lax.slice(x, (0, 1, 0), (4, 4, 3)), x),
        ("slice of two", lambda x: lax.slice(x, (1, 0, 0), (3, 5, 2)), x),
        ("strided slice", lambda x: lax.slice(x, (0, 1, 0), (4, 5, 3), (1, 3, 1)), x),
        ("slice of bools", lambda x: lax.slice(x, (0, 1, 0), (4, 4, 3)), x > 0),
        ("slice of keys", lambda x: lax.slice(x, (0, 1), (5, 3)), key),
        ("empty slice", lambda x: lax.slice(x, (0, 1, 0), (4, 1, 3)), x),
        ("flip by strides", lambda x: lax.slice(x, (0, 0, 0), (4, 5, 3), (3, 2, 2)), x),
        ("iota", lambda: lax.iota(np.int32, 7)),
        ("iota of floats", lambda: lax.broadcasted_iota(np.float32, (4, 5), 1)),
        ("iota of bytes", lambda: lax.broadcasted_iota(np.int8, (3, 5), 0)),
        ("empty", lambda: lax.empty((4, 3), np.float32) * 0),
    ]
    return [f for case in cases for f in equations(*case)]


@pytest.mark.parametrize("mesh", MESHES)
def test_reshapes(mesh):
    assert check(_reshapes(), mesh) > 25


@pytest.mark.parametrize("mesh", MESHES)
def test_moves(mesh):
    assert check(_moves(), mesh) > 90


def test_reshape_groups():
    assert reshape_groups((4, 8, 12), (32, 3, 4)) == [([0, 1], [0]), ([2], [1, 2])]
    assert reshape_groups((1, 6), (2, 1, 3)) == [([1], [0, 2])]
    assert reshape_groups((5,), (5, 1)) == [([0], [0])]
