"""Loops under `jax.vmap` whose rows end at different times: split in every way, and nested."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, sbp
from sbpjax._core.programs.batched_while import with_one_condition

FOUR = flow.placement("cpu", [0, 1, 2, 3])


def doubled(row):
    """Double a row as often as its sum says."""
    turns = jnp.floor(row.sum())
    return jax.lax.while_loop(lambda c: c[0] < turns, lambda c: (c[0] + 1, c[1] * 2), (0.0, row))[1]


ROWS, NESTED = jax.vmap(doubled), jax.vmap(jax.vmap(doubled))
VALUES = np.random.default_rng(0).random((8, 6, 4), np.float32) * 2


class Once(nn.Graph):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def build(self, x):
        return self.op(x)


@pytest.mark.parametrize("by", [sbp.split(0), sbp.split(1), sbp.broadcast])
@pytest.mark.parametrize("function, x", [(ROWS, VALUES[:, 0]), (NESTED, VALUES)])
def test_values_in_every_layout(function, x, by):
    want = np.array(VALUES.reshape(-1, 4)[: x.size // 4] if function is NESTED else x)
    want = (want * 2 ** np.floor(want.sum(-1, keepdims=True))).reshape(x.shape)
    op = flow.wrap_jax(function)
    placed = flow.tensor(x).to_global(FOUR, by)
    for got in (op(placed), Once(op)(placed)):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    assert op(placed).sbp == (by,)


def test_a_loop_of_one_condition_stays_as_it_is():
    plain, batched = (
        next(e for e in jax.make_jaxpr(f)(x).eqns if e.primitive.name == "while")
        for f, x in ((doubled, VALUES[0, 0]), (ROWS, VALUES[0]))
    )
    assert with_one_condition(plain) is plain
    changed = with_one_condition(batched)
    assert changed.params["cond_jaxpr"].out_avals[0].shape == ()
    assert [v.aval for v in changed.params["body_jaxpr"].jaxpr.outvars] == [v.aval for v in batched.outvars]
