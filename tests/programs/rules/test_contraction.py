"""Every row of contractions, by brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.programs.rules.strategy_checker import MESHES, check, equations

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
