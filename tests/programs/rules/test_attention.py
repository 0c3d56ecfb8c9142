"""Every strategy of attention and its derivatives, by brute force."""

import functools

import jax
import numpy as np
import pytest

from sbpjax.ops.attention_primitive import attention
from sbpjax.programs.primitives import ATTENTION
from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(7)


def _x(*shape):
    return _RNG.standard_normal(shape)


@functools.cache
def _cases():
    found = []
    run = functools.partial(attention, scale=0.3)
    q, k, v = _x(5, 4, 3, 7, 2), _x(5, 4, 6, 2), _x(5, 4, 6, 3)
    only = ATTENTION - {"attention_tangent"}
    for label, mask, causal in (
        ("causal", None, True),
        ("bias per head", _x(1, 4, 1, 7, 6), False),
        ("keys", _RNG.random((5, 1, 1, 1, 6)) < 0.7, False),
    ):
        wanted = (0, 1, 2, 3) if label.startswith("bias") else (0, 1, 2)
        operands = (q, k, v) if mask is None else (q, k, v, mask)
        grad = jax.grad(lambda *x, causal=causal: run(*x, causal=causal).sum(), wanted)
        found += equations(label, grad, *operands, only=only)

    def tangent(*x):
        return jax.jvp(functools.partial(run, causal=True), x, x)[1]

    return found + equations("tangent", tangent, q, k, v, only={"attention_tangent"})


@pytest.mark.parametrize("mesh", MESHES)
def test_strategies(mesh):
    assert check(_cases(), mesh) > 30
