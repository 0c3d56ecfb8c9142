"""Every row of reductions, by brute force."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(0)


def _x(*shape, dtype=np.float32):
    return _RNG.standard_normal(shape).astype(dtype)


@functools.cache
def _reductions():
    cases = []
    for shape in ((8, 4, 2), (5, 3, 7)):
        for function in (jnp.sum, jnp.prod, jnp.max, jnp.min):
            name = function.__name__
            cases.append((name, lambda x, f=function: f(x, axis=1), _x(*shape)))
            cases.append((name + " of two", lambda x, f=function: f(x, axis=(0, 2)), _x(*shape)))
    integers = _RNG.integers(-9, 9, (5, 4, 3))
    for function in (jnp.sum, jnp.max, jnp.min):
        cases.append((f"int {function.__name__}", lambda x, f=function: f(x, axis=(0, 1)), integers))
        cases.append((f"bf16 {function.__name__}", lambda x, f=function: f(x, axis=0), _x(5, 4, dtype=jnp.bfloat16)))
    unsigned = _RNG.integers(1, 9, (5, 4)).astype(np.uint8)
    bits = {"and": lax.reduce_and_p, "or": lax.reduce_or_p, "xor": lax.reduce_xor_p}
    for name, primitive in bits.items():
        for values in (unsigned, integers[0] > 3, integers[:, :, 0] > -8):
            cases.append((name, lambda x, p=primitive: p.bind(x, axes=(0,)), values))
    cases.append(("max of bools", lambda x: lax.reduce_max_p.bind(x, axes=(0,), out_sharding=None), integers[0] > 3))
    cases.append(("nan", lambda x: jnp.max(x, 0), np.array([[1, np.nan], [3, 2], [np.inf, 1]], np.float32)))
    cases.append(("-inf", lambda x: jnp.max(x, 0), np.full((5, 2), -np.inf, np.float32)))
    for function in (jnp.argmax, jnp.argmin):
        name = function.__name__
        cases.append((name, lambda x, f=function: f(x, axis=1), _x(5, 7, 3)))
        cases.append((name + " of ties", lambda x, f=function: f(x, axis=0), _RNG.integers(0, 2, (6, 4))))
        special = np.array([[0.0, -0.0, np.inf, 1], [-0.0, 0.0, np.nan, 1], [-np.inf, 0, np.nan, 2], [0, 0, 0, -1]])
        for values in (special.astype(np.float32), special.astype(jnp.bfloat16), special[:3].astype(np.float16)):
            cases.append((f"{values.dtype} {name} of special values", lambda x, f=function: f(x, axis=0), values))
        infinite = np.full((5, 2), -np.inf if function is jnp.argmax else np.inf, np.float32)
        cases.append((name + " of infinities", lambda x, f=function: f(x, axis=0), infinite))
        extreme = _RNG.choice([np.iinfo(np.int32).min, np.iinfo(np.int32).max, 0], (5, 3)).astype(np.int32)
        cases.append((name + " of extremes", lambda x, f=function: f(x, axis=0), extreme))
        cases.append((name + " of bools", lambda x, f=function: f(x, axis=0), extreme > 0))
        cases.append((name + " of doubles", lambda x, f=function: f(x, axis=0), _x(5, 3, dtype=np.float64)))

    def general(x, y):
        both = lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1]))  # noqa: E731
        return lax.reduce((x, y), (np.float32(0), np.int64(0)), both, (1,))

    cases.append(("any function", general, _x(4, 3, 5), _RNG.integers(0, 5, (4, 3, 5))))
    names = [f"reduce_{n}" for n in "sum prod max min and or xor".split()] + ["argmax", "argmin", "reduce"]
    return [f for case in cases for f in equations(*case, only=names)]


@pytest.mark.parametrize("mesh", MESHES)
def test_reductions(mesh):
    assert check(_reductions(), mesh) > 100
