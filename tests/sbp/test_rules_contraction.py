"""Every row of contractions and reductions, by brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from row_checker import MESHES, check, equations

_RNG = np.random.default_rng(0)


def _x(*shape, dtype=np.float32):
    return _RNG.standard_normal(shape).astype(dtype)


@functools.cache
def _contractions():
    cases = []
    for m, k, n in ((8, 12, 4), (5, 7, 3), (4, 3, 1)):
        cases.append(("matmul", jnp.matmul, _x(m, k), _x(k, n)))
    cases.append(("batched", lambda x, y: jnp.einsum("bmk,bkn->bmn", x, y), _x(3, 4, 5), _x(3, 5, 2)))
    cases.append(("two contracted", lambda x, y: jnp.einsum("abk,kab->k", x, y), _x(4, 3, 2), _x(2, 4, 3)))
    cases.append(
        (
            "bf16",
            lambda x, y: lax.dot(x, y, preferred_element_type=jnp.float32),
            _x(4, 7, dtype=jnp.bfloat16),
            _x(7, 4, dtype=jnp.bfloat16),
        )
    )
    cases.append(("int", jnp.matmul, np.arange(15).reshape(3, 5), np.arange(20).reshape(5, 4)))
    cases.append(("complex", jnp.matmul, _x(3, 5, dtype=np.complex64), _x(5, 4, dtype=np.complex64)))
    cases.append(("empty", jnp.matmul, _x(4, 0), _x(0, 4)))
    return [f for case in cases for f in equations(*case, only=("dot_general",))]


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
    general = lambda x, y: lax.reduce(
        (x, y), (np.float32(0), np.int64(0)), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (1,)
    )
    cases.append(("any function", general, _x(4, 3, 5), _RNG.integers(0, 5, (4, 3, 5))))
    names = tuple(p.name for p in (lax.reduce_sum_p, lax.reduce_prod_p, lax.reduce_max_p, lax.reduce_min_p)) + (
        "reduce_and",
        "reduce_or",
        "reduce_xor",
        "argmax",
        "argmin",
        "reduce",
    )
    return [f for case in cases for f in equations(*case, only=names)]


@functools.cache
def _ragged():
    counts = np.array([2, 0, 3])
    found = equations("groups of rows", lax.ragged_dot, _x(5, 7), _x(3, 7, 4), counts)
    found += equations("even", lax.ragged_dot, _x(5, 8), _x(3, 8, 3), counts)

    def gradients(x, y):
        out, back = jax.vjp(lambda x, y: lax.ragged_dot(x, y, counts), x, y)
        return back(out)

    found += equations("gradients", gradients, _x(5, 4), _x(3, 4, 3))
    return [f for f in found if f.eqn.primitive.name == "ragged_dot_general"]


@pytest.mark.parametrize("mesh", MESHES)
def test_ragged_contractions(mesh):
    assert check(_ragged(), mesh) > 20


@pytest.mark.parametrize("mesh", MESHES)
def test_contractions(mesh):
    assert check(_contractions(), mesh) > 50


@pytest.mark.parametrize("mesh", MESHES)
def test_reductions(mesh):
    assert check(_reductions(), mesh) > 100
