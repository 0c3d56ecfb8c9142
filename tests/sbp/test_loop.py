"""The scan that counts in 32 bits is `jax.lax.scan`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax.sbp.loop import counted_scan


def step(state, xs):
    (c, n), (x,) = state, xs
    c = jnp.sin(c) * x.sum() + x
    return (c, n + 1), (c * 2, n)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 5])
def test_same_as_scan(length, reverse):
    xs = (jnp.asarray(np.random.default_rng(0).standard_normal((length, 3)), jnp.float32),)
    state = (jnp.ones(3, jnp.float32), jnp.asarray(0, jnp.int64))
    stacks = [jax.ShapeDtypeStruct((length, 3), jnp.float32), jax.ShapeDtypeStruct((length,), jnp.int64)]
    found = jax.jit(lambda s, x: counted_scan(step, s, x, stacks, length, reverse))(state, xs)
    wanted = jax.lax.scan(step, state, xs, length=length, reverse=reverse)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_the_counter_has_32_bits():
    stacks = [jax.ShapeDtypeStruct((4,), jnp.float32)]
    text = jax.jit(lambda x: counted_scan(lambda s, _: (s, (s[0],)), (x,), (), stacks, 4, False)).lower(1.0).as_text()
    (loop,) = [line for line in text.splitlines() if "stablehlo.while" in line]
    assert "tensor<i32>" in loop and "tensor<i64>" not in loop
