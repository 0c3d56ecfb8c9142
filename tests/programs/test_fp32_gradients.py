"""Gradients of cast weights are summed and reduced in float32."""

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, optim
from sbpjax._core.programs.fp32_gradients import cast_back, widen_gradients
from sbpjax.nn import functional as F
from tests.support import graphs

BF16, F32 = jnp.bfloat16, jnp.float32


def _x(*shape):
    return jnp.asarray(np.random.default_rng(1).normal(size=shape), BF16)


def _pair(x):
    return x.T @ x, (x.T @ x)[::-1]


# what makes a gradient → (function of x: bf16[64, 8], the same in float32)
CASES = {
    "product": lambda x, wide: jax.lax.dot_general(x, x, (((0,), (0,)), ((), ())), preferred_element_type=wide),
    "moved": lambda x, wide: jnp.transpose(
        jax.lax.dot_general(x, x[:, :2], (((0,), (0,)), ((), ())), preferred_element_type=wide)
    ).reshape(4, 4),
    "factors exchanged": lambda x, wide: jnp.transpose(
        jax.lax.dot_general(
            x.reshape(4, 16, 8), x.reshape(4, 16, 8)[..., :2], (((1,), (1,)), ((0,), (0,))), preferred_element_type=wide
        ),
        (0, 2, 1),
    ),
    "sum": lambda x, wide: jax.lax.reduce_sum_p.bind(x.astype(wide or BF16), axes=(0,), out_sharding=None),
    "sum of a sum": lambda x, wide: jax.lax.reduce_sum_p.bind(
        jax.lax.reduce_sum_p.bind(x.astype(wide or BF16), axes=(0,), out_sharding=None).reshape(1, 8),
        axes=(0,),
        out_sharding=None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_float32_from_where_it_is_summed(name):
    x = _x(64, 8)
    closed = widen_gradients(jax.make_jaxpr(lambda x: cast_back(CASES[name](x, None), F32))(x))
    text = str(closed)
    assert "cast_back" not in text
    (got,) = jax.jit(jax.extend.core.jaxpr_as_fun(closed))(x)
    want = CASES[name](x, F32)
    assert got.dtype == F32
    np.testing.assert_array_equal(got, want)
    assert np.any(got != CASES[name](x, None).astype(F32))  # which would be rounded to 8 bits


def test_exchanged_factors_are_one_product():
    x = _x(64, 8)
    closed = widen_gradients(jax.make_jaxpr(lambda x: cast_back(CASES["factors exchanged"](x, None), F32))(x))
    assert "transpose" not in str(closed) and str(closed).count("dot_general") == 1


def test_what_else_reads_a_sum_gets_it_rounded():
    def both(x):
        y = x.T @ x
        return cast_back(y, F32), y

    x = _x(64, 8)
    got, y = jax.extend.core.jaxpr_as_fun(widen_gradients(jax.make_jaxpr(both)(x)))(x)
    assert got.dtype == F32 and y.dtype == BF16
    np.testing.assert_array_equal(got, y.astype(F32))


def test_programs_within_are_changed_once_and_others_are_left():
    inner = jax.jit(lambda x: cast_back(x.T @ x, F32))
    x = _x(64, 8)
    closed = widen_gradients(jax.make_jaxpr(lambda x: (inner(x), inner(x)))(x))
    first, second = closed.jaxpr.eqns
    assert first.params["jaxpr"] is second.params["jaxpr"]
    assert "cast_back" not in str(closed)
    plain = jax.make_jaxpr(lambda x: x.T @ x)(x)
    assert widen_gradients(plain) is plain


def test_a_cast_back_that_nothing_widened_runs():
    assert jax.jit(lambda x: cast_back(x, F32))(_x(3)).dtype == F32


class _Train(graphs.Train):
    loss = staticmethod(lambda model, x, y: F.mse_loss(model(x), y))


@pytest.mark.parametrize("accumulation", [1, 4])
def test_data_parallel_gradients_are_reduced_in_float32(accumulation):
    p = flow.placement("cpu", [0, 1, 2, 3])
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).to_global(p, flow.sbp.broadcast)
    graph = _Train(model, optim.SGD(model.parameters(), lr=0.1), accumulate=accumulation)
    graph.config.enable_amp(True, dtype=flow.bfloat16)
    data = [flow.randn(4096, 64).to_global(p, flow.sbp.split(0)) for _ in range(2)]
    graph(*data)
    reduced = [(b.dtype, tuple(b.shape)) for b in graph.program.plan.boxings if -2 in b.source and -2 not in b.target]
    assert {dtype for dtype, _ in reduced} == {"float32"}
    weights = [shape for _, shape in reduced if len(shape) == 2]
    assert sorted(weights) == [(64, 128), (128, 64)]
