"""Eager ops with long loops: planned with their bodies, at no more bytes than the exact planner."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.compiler import conversions
from sbpjax._core.compiler.eager import global_ops
from sbpjax._core.ops.layers.rnn import recurrent
from sbpjax._core.planner import loops, plan_exactly, plan_one
from sbpjax._core.programs.normalise import normalise
from sbpjax.sbp import placement

B = -1
STEPS, BATCH, WIDTH, HIDDEN = 5, 4, 6, 8
SHAPES = [(STEPS, BATCH, WIDTH), (4 * HIDDEN, WIDTH), (4 * HIDDEN, HIDDEN), (4 * HIDDEN,), (4 * HIDDEN,)]


def lstm(x, *weights):
    return recurrent(x, None, None, None, None, *weights, mode="LSTM")


def backward(x, *weights):
    out, pullback = jax.vjp(lstm, x, *weights)
    return pullback(tuple(jnp.ones_like(o) for o in out))


def short(x, w):
    def body(carry, row):
        return jnp.tanh(carry @ w) + row, carry.sum(0)

    return tuple(jax.lax.scan(body, x, jnp.stack([x, 2 * x, 3 * x])))


def _program(function, shapes):
    return normalise(jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes)))


@pytest.mark.parametrize("layout", [(0, B), (1, B), (B, 0), (B, 1), (0, 0), (0, 1), (1, 0)])
def test_no_more_bytes_than_the_exact_planner(layout, monkeypatch):
    program = _program(short, [(8, 8), (8, 8)])
    codes = tuple((c,) for c in layout)
    exact = plan_exactly(program, (4,), codes)
    monkeypatch.setattr(loops, "LONG", 0)
    plan = plan_one(program, (4,), codes)
    assert plan.bodies or layout == (B, B)
    assert plan.bytes <= exact.bytes


BATCH_SPLIT = ["S1,B", "B,B", "B,B", "B,B", "B,B"]
BOTH = ["S1,B", "B,S0", "B,S0", "B,S0", "B,S0"]


@pytest.mark.parametrize("function,sbps", [(backward, BATCH_SPLIT), (lstm, BOTH)], ids=["batch", "both"])
def test_values_and_time(function, sbps):
    place = placement("cpu", [[0, 1], [2, 3]])
    rng = np.random.default_rng(0)
    values = [rng.normal(size=s).astype(np.float32) for s in SHAPES]
    laid = [conversions.from_logical(v, place, s) for v, s in zip(values, sbps, strict=True)]
    arrays, layouts = [a for a, _ in laid], [x for _, x in laid]
    start = time.process_time()
    plan, _ = global_ops.plan_op(function, (), arrays, layouts)
    assert time.process_time() - start < 30  # 2 s alone; the exact planner takes minutes
    if sbps is BATCH_SPLIT:
        assert plan.bytes == 0
    results, out = global_ops.execute(function, (), arrays, layouts)
    for array, layout, wanted in zip(results, out, jax.jit(function)(*values), strict=True):
        np.testing.assert_allclose(conversions.to_logical(array, layout), wanted, rtol=2e-5, atol=2e-5)


def test_where_nothing_is_split_everything_stays_broadcast():
    program = _program(lstm, SHAPES)
    plan = plan_one(program, (2, 2), ((B, B),) * 5)
    assert plan.bytes == 0 and set(plan.out_codes) == {(B, B)}
    pinned = plan_one(program, (2, 2), ((B, B),) * 5, (None, (B, 2), None))
    assert pinned.out_codes == ((B, B), (B, 2), (B, B)) and pinned.bytes == 0
    assert all(row.ins == (B,) * len(row.ins) for rows in pinned.strategies for row in rows[:1])
