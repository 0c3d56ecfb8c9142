"""Every strategy of the kinds of a convolution, by brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.ops.conv.conv import conv
from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(5)


def _equations(label, x, w, dtype=np.float32, **how):
    def both(x, w):
        out, back = jax.vjp(functools.partial(conv, **how), x, w)
        return out, back(jnp.ones_like(out))

    x, w = (jnp.asarray(_RNG.integers(-5, 6, shape), dtype) for shape in (x, w))
    found = equations(label, both, x, w, only={"convolution"})
    assert sorted(f.eqn.params["kind"] for f in found) == ["input", "kernel", "output"]
    return found


@functools.cache
def _cases():
    found = []
    found += _equations("depthwise", (2, 8, 5, 4), (8, 1, 3, 3), groups=8, padding=1)
    found += _equations("depthwise, strided", (5, 8, 5, 4), (16, 1, 3, 3), groups=8, stride=2)
    found += _equations("2 groups, dilated", (3, 8, 5, 5), (4, 4, 2, 2), groups=2, dilation=2)
    found += _equations("3 groups", (2, 6, 4), (3, 2, 3), groups=3)
    found += _equations("one pixel", (3, 5, 5, 4), (6, 5, 1, 1))
    found += _equations("one pixel, strided", (4, 5, 5, 4), (6, 5, 1, 1), stride=2)
    found += _equations("bf16", (4, 4, 3, 3), (4, 1, 3, 3), jnp.bfloat16, groups=4)
    return found


@pytest.mark.parametrize("mesh", MESHES)
def test_strategies(mesh):
    assert check(_cases(), mesh) > 40
