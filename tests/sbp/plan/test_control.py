"""Control flow under layouts: values, and layouts that survive loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax.sbp import eager, placement

PLACEMENTS = {"1d": [0, 1, 2, 3], "2d": [[0, 1], [2, 3]]}


def scan(x, w):
    def body(carry, row):
        return jnp.tanh(carry @ w) + row, carry.sum(0)

    return jax.lax.scan(body, x, jnp.stack([x, 2 * x, 3 * x]))


def accumulate(x, w):
    """Sum gradients of micro-batches: the carry may stay partial."""

    def body(total, micro):
        return total + micro.T @ (micro @ w), None

    return jax.lax.scan(body, jnp.zeros_like(w), x.reshape(2, -1, x.shape[1]))[0]


def loop(x, w):
    return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.tanh(c[1] @ w)), (0, x))[1]


def branch(x, w):
    return jax.lax.cond(x.sum() > 0, lambda a, b: a @ b, lambda a, b: a * 2 - b.sum(), x, w)


def fori(x, w):
    return jax.lax.fori_loop(0, 4, lambda i, c: c + w * i, x)


def nested(x, w):
    @jax.checkpoint
    def inner(a):
        return jax.jit(jnp.sin)(a) @ w

    return jax.grad(lambda a: jax.nn.relu(inner(a)).sum())(x)


@pytest.mark.parametrize("function", [scan, accumulate, loop, branch, fori, nested], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", PLACEMENTS)
@pytest.mark.parametrize("size", [8, 6], ids=["even", "uneven"])
def test_values_do_not_depend_on_the_layout(function, name, size):
    place = placement("cpu", PLACEMENTS[name])
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=(size, size)).astype(np.float32) for _ in range(2))
    expected = jax.tree.leaves(function(jnp.asarray(x), jnp.asarray(w)))
    layouts = ["S0", "S1", "B", "P"] if name == "1d" else ["S0,S1", "B,S0", "P,S1", "S0,S0"]
    for sbp in layouts:
        (a, la), (b, lb) = (eager.from_logical(v, place, s) for v, s in ((x, sbp), (w, layouts[2])))
        results, out = eager.execute(_flat(function), (), (a, b), (la, lb))
        for value, layout, want in zip(results, out, expected, strict=True):
            np.testing.assert_allclose(eager.to_logical(value, layout), want, rtol=2e-5, atol=2e-5)


_FLAT: dict = {}


def _flat(function):
    return _FLAT.setdefault(function, lambda *a: tuple(jax.tree.leaves(function(*a))))


def test_accumulated_gradients_are_reduced_after_the_loop_not_in_it():
    place = placement("cpu", [0, 1, 2, 3])
    x, lx = eager.from_logical(np.ones((16, 8), np.float32), place, "S0")
    w, lw = eager.from_logical(np.ones((8, 8), np.float32), place, "B")

    def micro_batches(x, w):
        def body(total, micro):
            return total + micro.T @ (micro @ w), None

        return jax.lax.scan(body, jnp.zeros_like(w), jnp.swapaxes(x.reshape(8, 2, 8), 0, 1))[0]

    found = eager.compile_op(micro_batches, (), (x, w), (lx, lw))
    assert found.plan.out_codes == ((-2,),)
    assert found.plan.bytes == 0
