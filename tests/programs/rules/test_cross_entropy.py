"""Every strategy of cross entropy, with and without its linear layer, by brute force."""

import functools

import jax
import numpy as np
import pytest

from sbpjax._core.ops.losses.cross_entropy_primitive import cross_entropy, linear_cross_entropy
from sbpjax._core.programs.primitives import LOSSES
from tests.programs.rules.strategy_checker import MESHES, check, equations

_RNG = np.random.default_rng(11)
_TANGENTS = {"cross_entropy_tangent", "linear_cross_entropy_tangent"}


@functools.cache
def _cases():
    x, w, b = (_RNG.standard_normal(s) for s in ((5, 3, 4), (7, 4), (7,)))
    logits, target = _RNG.standard_normal((5, 7)), _RNG.integers(0, 7, (5, 3))
    target[0, 0] = -100
    found = []
    for label, how in (("plain", {}), ("smoothed", {"smoothing": 0.2})):
        run = functools.partial(linear_cross_entropy, target=target, **how, z_loss=0.1)
        of_linear = lambda x, w, b, run=run: run(x, w, b).sum()  # noqa: E731
        of_logits = lambda x, how=how: cross_entropy(x, target[:, 0], **how).sum()  # noqa: E731
        only = LOSSES - _TANGENTS
        found += equations(label, jax.grad(of_linear, (0, 1, 2)), x, w, b, only=only)
        found += equations(label, jax.grad(of_logits), logits, only=only)
    found += equations("no bias, frozen weights", jax.grad(lambda x: of_linear(x, w, None)), x, only=only)
    tangent = lambda *x: jax.jvp(lambda x, w: run(x, w, None), x, x)[1]  # noqa: E731
    found += equations("tangent", tangent, x, w, only=_TANGENTS)
    return found + equations("tangent", lambda x: jax.jvp(of_logits, (x,), (x,))[1], logits, only=_TANGENTS)


@pytest.mark.parametrize("mesh", MESHES)
def test_strategies(mesh):
    assert check(_cases(), mesh) > 30
