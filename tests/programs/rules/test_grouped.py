"""Every strategy of grouped products, by brute force: uneven splits, groups without rows, rows without a group."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.ops.grouped_matmul.primitive import grouped_matmul
from sbpjax._core.programs.primitives import GROUPED
from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(3)


@functools.cache
def _cases():
    found = []
    for label, lead, sizes in (
        ("one sequence", (), [3, 0, 5, 4, 1]),
        ("sequences", (3,), [[3, 0, 2, 1, 2], [0, 0, 8, 0, 0], [1, 1, 1, 1, 1]]),
    ):
        x = _RNG.standard_normal((*lead, 13 if not lead else 8, 3))
        w = _RNG.standard_normal((5, 3, 6))
        sizes = jnp.asarray(sizes)
        loss = lambda x, w, sizes=sizes: jnp.sin(grouped_matmul(x, w, sizes)).sum()  # noqa: E731
        found += equations(label, jax.grad(loss, (0, 1)), x, w, only=GROUPED)
    assert [f.eqn.primitive.name for f in found].count("grouped_outer") == 2 and len(found) == 6
    return found


@pytest.mark.parametrize("mesh", MESHES)
def test_strategies(mesh):
    assert check(_cases(), mesh) > 30
