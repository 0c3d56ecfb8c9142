"""Which programs are compiled quickly, that they compute the same, and that users' own jits take them in."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from jax._src import pjit

import sbpjax as flow
from sbpjax._core.compiler.eager.options import QUICK, options_of
from sbpjax._core.ops.conv import conv
from sbpjax._core.ops.layers import norm
from sbpjax._core.tensor.dispatch.op import Op, call_cached
from tests.xla_flags import USUAL

X = np.random.RandomState(0).randn(2, 8, 12, 12).astype("f")
W = np.random.RandomState(1).randn(8, 8, 3, 3).astype("f")
C = np.random.RandomState(2).rand(8).astype("f")
pytestmark = pytest.mark.usefixtures("compiled_ops")


@pytest.mark.parametrize(
    ("function", "quick"),
    [
        (lambda x: jnp.sinh(x) * 2, True),
        (lambda x: jax.jit(jnp.tanh)(x), True),
        (lambda x: jnp.pad(x, 1), False),
        (lambda x: jax.jit(lambda x: x.transpose(0, 2, 3, 1))(x), False),
        (lambda x: jax.random.normal(jax.random.key(0), x.shape), False),
        (lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.exp(x), x), False),
    ],
)
def test_programs_that_pad_transpose_or_draw_keep_the_usual_options(function, quick):
    assert options_of("f_backward", jax.make_jaxpr(function)(X)) == (QUICK if quick else None)


def test_programs_that_read_no_images_keep_the_usual_options():
    assert options_of("f_backward", jax.make_jaxpr(lambda x, y: x + y)(X, C[:, None, None])) == QUICK
    assert options_of("f_backward", jax.make_jaxpr(jnp.sinh)(C)) is None
    assert options_of("f_backward", jax.make_jaxpr(lambda: jnp.ones(X.shape).sum())()) is None


def test_forwards_of_many_shapes_keep_the_usual_options():
    x = flow.randn(300)
    before = flow.sinh(x).numpy()
    assert options_of("sinh", jax.make_jaxpr(jnp.sinh)(X)) is None
    assert options_of("conv2d", jax.make_jaxpr(jnp.sinh)(X)) == QUICK
    op = Op(jnp.sinh)
    op.call(X)
    np.testing.assert_array_equal(op.call(x.jax()), before)


def test_a_batch_norm_is_compiled_quickly_whatever_its_shape():
    for x in (X, X[:, :, 0, 0]):
        assert options_of("batch_norm", jax.make_jaxpr(_batch_norm)(x, C, C)) == QUICK


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_pointwise_arithmetic_is_compiled_quickly(dtype):
    for x in (X.astype(dtype), C.astype(dtype)):
        assert options_of("f", jax.make_jaxpr(lambda x: jnp.where(x > 0, x * x + 1, -x))(x)) == QUICK


def test_a_sum_of_two_products_keeps_the_usual_options_but_in_a_backward():
    closed = jax.make_jaxpr(lambda x: x * x - 3 * x)(C)
    assert options_of("f", closed) is None
    assert options_of("f_backward", closed) == QUICK


def test_arithmetic_of_half_floats_keeps_the_usual_options():
    assert options_of("f", jax.make_jaxpr(lambda x: x * x + 1)(C.astype("float16"))) is None
    assert options_of("f", jax.make_jaxpr(lambda x: x.astype("bfloat16").astype("float32"))(C)) is None


def test_accelerators_keep_the_usual_options(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert options_of("f_backward", jax.make_jaxpr(jnp.sinh)(X)) is None


def _convolution(x, w):
    return conv.conv2d(x, w, None, padding=(1, 1))


def _batch_norm(x, m, v):
    return norm.batch_norm(x, m, v, m, v, training=True)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (_convolution, (X, W)),
        (lambda g, x, w: jax.vjp(_convolution, x, w)[1](g), (X, X, W)),
        (lambda x: x * jnp.clip(x + 3, 0, 6) / 6, (X,)),
        (lambda x: jnp.where(x > 0, 1 / x, x * x - 3), (X,)),
        *((f, (X,)) for f in (jnp.tanh, lax.logistic, lambda x: jnp.sqrt(abs(x)))),
        (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), (X,)),
    ],
)
def test_quick_programs_without_sums_compute_the_same_bits(function, arrays):
    lowered = jax.jit(function).lower(*arrays)
    usual, quick = lowered.compile(USUAL)(*arrays), lowered.compile(QUICK)(*arrays)
    for a, b in zip(jax.tree.leaves(usual), jax.tree.leaves(quick), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sums_differ_by_rounding_alone():
    lowered = jax.jit(_batch_norm).lower(X, C, C)
    for a, b in zip(lowered.compile()(X, C, C), lowered.compile(QUICK)(X, C, C), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_an_op_takes_its_options_from_its_first_trace():
    op, padding = Op(jnp.tanh, name="tanh_backward"), Op(lambda x: jnp.pad(x, 1), name="pad_backward")
    traced = []
    op.traced = lambda x: traced.append(x.shape) or jnp.tanh(x)
    op.call(X)
    op.call(X)
    op.call(X[:1])
    padding.call(X)
    assert op.misses._options == QUICK and padding.misses._options is None
    assert traced == [X.shape, (1, *X.shape[1:])]
    assert op.misses.jit_function(())._jit_info.compiler_options_kvs == tuple(QUICK.items())


def test_a_jit_of_the_users_takes_in_what_is_compiled_quickly():
    x = flow.tensor(X)
    w = flow.tensor(W)
    y = flow.nn.functional.conv2d(x, w)  # compiled by itself
    inside = jax.jit(lambda a: flow.nn.functional.conv2d(x, w).jax() * a)(2.0)
    np.testing.assert_allclose(inside, 2 * y.numpy(), rtol=1e-5, atol=1e-5)
    op = Op(jnp.tanh, name="tanh_backward")
    op.call(X)
    assert op.misses._options == QUICK

    def call(x):
        return call_cached(op, [x])

    np.testing.assert_allclose(jax.grad(lambda x: call(x).sum())(X), 1 - np.tanh(X) ** 2, atol=1e-6)
    np.testing.assert_allclose(jax.vmap(call)(X), np.tanh(X), rtol=1e-6)
    assert "tanh" in str(jax.make_jaxpr(call)(X))


def test_the_staging_rule_of_jit_is_that_of_jax():
    assert pjit.pe.custom_staging_rules[pjit.jit_p] is pjit.pjit_staging_rule


def _in_a_jit(function):
    return jax.jit(lambda a: function().jax() * a)(2.0) / 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: -x,
        lambda x: x + x,
        lambda x: flow.where(x > 0, x, -x),
        lambda x: flow.full((3,), 2.0) * 3 + x[0, 0, 0, :3],
    ],
)
def test_ops_of_tensors_that_a_jit_of_the_users_does_not_know(function):
    x = flow.tensor(X)
    y = function(x)  # now the programs have options
    np.testing.assert_allclose(_in_a_jit(lambda: function(x)), y.numpy(), rtol=1e-6)


def test_a_backward_in_a_jit_of_the_users():
    def loss():
        x = flow.tensor(X, requires_grad=True)
        return x, (x * x).sum()

    x, y = loss()
    y.backward()
    x, y = loss()

    def gradient():
        y.backward()
        return x.grad

    np.testing.assert_allclose(_in_a_jit(gradient), 2 * X, rtol=1e-6)


def test_an_op_that_fails_in_a_jit_of_the_users_raises_its_own_error():
    x, y = flow.tensor(X), flow.tensor(X[:, :3])
    with pytest.raises(RuntimeError, match="add"):
        _in_a_jit(lambda: x + y)
