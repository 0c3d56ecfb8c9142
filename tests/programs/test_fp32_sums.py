"""Sums of 16-bit floats are float32 until they are whole: gradients of what is broadcast, eagerly and in a graph."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import sbpjax as flow
from sbpjax._core.programs.fp32_sums import with_wide_sums

F = flow.nn.functional
SHAPES = {1: (2, 3, 4096), 2: (2, 3, 64, 64), 3: (2, 3, 16, 16, 16)}
LINE = flow.placement("cpu", [0, 1])


def count_of(call, *shape, dtype=flow.bfloat16, put=lambda x: x):
    """Return the gradient of a broadcast parameter by an upstream gradient of ones."""
    param = put(flow.zeros(*shape, dtype=dtype)).requires_grad_()
    y = call(param)
    y.backward(flow.ones_like(y))
    return param.grad.float().numpy().reshape(-1), y.numel()


@pytest.mark.parametrize("dims", SHAPES)
@pytest.mark.parametrize("kind", ["conv", "conv_transpose"])
def test_gradient_of_a_bias_counts_every_place(kind, dims):
    x, weight = (flow.zeros(*s, dtype=flow.bfloat16) for s in (SHAPES[dims], (3, 3, *[1] * dims)))
    grad, size = count_of(lambda b: getattr(F, f"{kind}{dims}d")(x, weight, b), 3)
    np.testing.assert_array_equal(grad, size / 3)


CASES = {
    "add": lambda b, x: x + b,
    "mul": lambda b, x: (x + 1) * b,
    "expand": lambda b, x: b.expand(*x.shape),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [flow.bfloat16, flow.float16], ids=str)
@pytest.mark.parametrize("sbp", [None, flow.sbp.broadcast], ids=["local", "global"])
def test_gradient_of_what_is_broadcast_counts_every_place(name, dtype, sbp):
    def put(x):
        return x if sbp is None else x.to_global(LINE, sbp)

    x = put(flow.zeros(2, 2, 64, 64, dtype=dtype))
    if sbp is not None:
        x = x.to_global(LINE, flow.sbp.split(0))
    grad, size = count_of(lambda b: CASES[name](b, x), 2, 1, 1, dtype=dtype, put=put)
    np.testing.assert_array_equal(grad, size / 2)


def test_gradient_in_a_graph_counts_every_place():
    class Model(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = flow.nn.Parameter(flow.zeros(2, 1, 1, dtype=flow.bfloat16))

        def forward(self, x):
            return x + self.bias

    class Step(flow.nn.Graph):
        def __init__(self, model):
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=1.0))

        def build(self, x):
            loss = self.model(x).float().sum()
            loss.backward()
            return loss

    model = Model()
    Step(model)(flow.zeros(2, 2, 64, 64, dtype=flow.bfloat16))
    assert model.bias.flatten().tolist() == [-8192, -8192]


def test_other_programs_stay_the_same():
    closed = jax.make_jaxpr(lambda x: lax.reduce_sum(x, (0,)) + 1)(np.ones((3, 2), np.float32))
    assert with_wide_sums(closed) is closed


def test_sums_inside_of_loops_and_calls_are_changed_too():
    def f(x):
        total = jax.jit(lambda x: lax.reduce_sum(x, (0, 2, 3)))(x)
        return lax.fori_loop(0, 2, lambda _, t: t + lax.reduce_sum(x, (0, 2, 3)), total)

    x = np.ones((2, 2, 64, 64), jnp.bfloat16)
    (total,) = jax.jit(jax.extend.core.jaxpr_as_fun(with_wide_sums(jax.make_jaxpr(f)(x))))(x)
    assert total.astype(np.float32).tolist() == [3 * 8192] * 2
