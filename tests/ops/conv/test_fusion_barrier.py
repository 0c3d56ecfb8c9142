"""A piece of a program with loops of its own: its result is computed once, however many loops read it."""

import jax
import jax.numpy as jnp
import numpy as np

from sbpjax._core.ops.conv.cpu import run_isolated


def long_sum(x):
    return sum(x[i : i + 90] * float(i + 1) for i in range(10))


def readers(y):
    return y + 1.0, (y * y).sum(), y[::-1] - y.mean()


def test_values_and_calls():
    x = jnp.asarray(np.random.default_rng(0).standard_normal(100), np.float32)
    ours = jax.jit(lambda x: readers(run_isolated(long_sum, x)))
    for a, b in zip(ours(x), readers(long_sum(x)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    lowered = ours.lower(x)
    assert lowered.as_text().count("inlineable") == 1
    text = lowered.compile().as_text()
    assert sum(" call(" in line for line in text.splitlines()) == 1
