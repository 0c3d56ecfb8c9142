"""Every row of sorting and selection, by brute force."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(6)


@functools.cache
def _cases():
    x = _RNG.permutation(60).reshape(4, 5, 3).astype(np.float32)
    ties = _RNG.integers(0, 3, (4, 5, 3))
    found = equations("sort", functools.partial(lax.sort, dimension=1), x)
    found += equations("two keys", lambda a, b, c: lax.sort((a, b, c), dimension=2, num_keys=2), ties, x, x)
    found += equations("argsort", functools.partial(jnp.argsort, axis=0), ties)
    found += equations("top_k", lambda x: lax.top_k(x, 2), x)
    found += equations("top_k of dim 0", lambda x: lax.top_k(x, 2, axis=0), x)
    found += equations("approximate", lambda x: lax.approx_max_k(x, 2, reduction_dimension=1), x)
    return [f for f in found if f.eqn.primitive.name in ("sort", "top_k", "approx_top_k")]


@pytest.mark.parametrize("mesh", MESHES)
def test_sort(mesh):
    assert check(_cases(), mesh) > 17
