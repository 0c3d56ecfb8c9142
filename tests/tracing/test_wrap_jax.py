"""JAX functions as ops: values, gradients, layouts; Pallas kernels with a rule of the user's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

import sbpjax as flow
from sbpjax import errors
from sbpjax._core.compiler.eager import global_ops
from sbpjax.func import wrap_jax

X = np.random.default_rng(0).standard_normal((8, 4)).astype("f")
W = np.random.default_rng(1).standard_normal((4,)).astype("f")


def scale_rows(x, w):
    """Multiply every row by a vector, in a Pallas kernel."""

    def kernel(x_ref, w_ref, o_ref):
        o_ref[...] = x_ref[...] * w_ref[...]

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x, w)


def scale_rows_backward(x, w, g):
    return scale_rows(g, w), (x * g).sum(0)


def test_any_function_local_and_global():
    @wrap_jax
    def mixture(tree, *, temperature=1.0, name="x"):
        y = jax.nn.softmax(tree["x"] / temperature, axis=-1)
        return {name: y @ tree["w"], "entropy": -(y * jnp.log(y)).sum()}

    x, w = flow.tensor(X, requires_grad=True), flow.tensor(W, requires_grad=True)
    out = mixture({"x": x, "w": w}, temperature=2.0, name="out")
    (out["out"].sum() + out["entropy"]).backward()
    grid = flow.placement("cpu", [[0, 1], [2, 3]])
    gx = flow.tensor(X, placement=grid, sbp=["S0", "B"]).requires_grad_()
    gw = flow.tensor(W, placement=grid, sbp=["B", "S0"]).requires_grad_()
    other = mixture({"x": gx, "w": gw}, temperature=2.0, name="out")
    (other["out"].sum() + other["entropy"]).backward()

    def reference(x, w):
        y = jax.nn.softmax(x / 2.0, axis=-1)
        return (y @ w).sum() - (y * jnp.log(y)).sum()

    wanted = jax.grad(reference, argnums=(0, 1))(X, W)
    for mine, theirs in ((x, gx), (w, gw)):
        np.testing.assert_allclose(theirs.grad.numpy(), mine.grad.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), wanted[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(w.grad.numpy(), wanted[1], rtol=1e-5, atol=1e-6)
    assert flow.compile(lambda a, b: mixture({"x": a, "w": b})["x"])(x.detach(), w.detach()).shape == (8,)


RULE = ["S0, B -> S0", "S1, S0 -> S1", "P, B -> P"]


@pytest.mark.parametrize("sbp, wanted", [("S0", "S0"), ("S1", "S1"), ("P", "P"), ("B", "B")])
def test_pallas_kernel_with_a_rule(sbp, wanted):
    scaled = wrap_jax(scale_rows, sbp_rule=RULE)
    line = flow.placement("cpu", [0, 1, 2, 3])
    x = flow.tensor(X, placement=line, sbp=sbp)
    w = flow.tensor(W, placement=line, sbp="S0" if sbp == "S1" else "B")
    y = scaled(x, w)
    np.testing.assert_allclose(y.numpy(), X * W, rtol=1e-6)
    if sbp != "B":
        assert str(y.sbp) == str(x.to_global(sbp=wanted).sbp)
        key = next(k for k in reversed(global_ops._PROGRAMS) if k[0].__name__ == "scale_rows")
        assert not global_ops._PROGRAMS[key].plan.boxings


def test_without_a_rule_a_kernel_runs_whole():
    line = flow.placement("cpu", [0, 1])
    y = wrap_jax(scale_rows)(flow.tensor(X, placement=line, sbp="S0"), flow.tensor(W, placement=line, sbp="B"))
    np.testing.assert_allclose(y.numpy(), X * W, rtol=1e-6)


@pytest.mark.parametrize("where", ["local", "S0,B", "B,S1"])
def test_own_backward_with_a_rule(where):
    scaled = wrap_jax(
        scale_rows,
        sbp_rule=RULE,
        backward=scale_rows_backward,
        backward_rule=["S0, B, S0 -> S0, P", "S1, S0, S1 -> S1, S0"],
    )
    x, w = flow.tensor(X), flow.tensor(W)
    if where != "local":
        grid = flow.placement("cpu", [[0, 1], [2, 3]])
        x, w = x.to_global(grid, where), w.to_global(grid, "B,B" if where == "S0,B" else "B,S0")
    x.requires_grad_(), w.requires_grad_()
    (scaled(x, w) ** 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * X * W * W, rtol=1e-5)
    np.testing.assert_allclose(w.grad.numpy(), (2 * X * X * W).sum(0), rtol=1e-5)
    assert w.grad.is_local or w.grad.sbp == w.sbp


def test_uneven_dims_are_not_given_to_a_kernel_in_parts():
    line = flow.placement("cpu", [0, 1, 2])
    y = wrap_jax(scale_rows, sbp_rule=RULE)(
        flow.tensor(X, placement=line, sbp="S0"), flow.tensor(W, placement=line, sbp="B")
    )
    np.testing.assert_allclose(y.numpy(), X * W, rtol=1e-6)


def test_ruled_functions_transform():
    double = wrap_jax(lambda x: jnp.sin(x) * 2, sbp_rule="S0 -> S0", name="double")
    x = flow.tensor(X)
    np.testing.assert_allclose(flow.func.vmap(double)(x).numpy(), 2 * np.sin(X), rtol=1e-5)
    (_, pushed) = flow.func.jvp(double, (x,), (x,))
    np.testing.assert_allclose(pushed.numpy(), 2 * np.cos(X) * X, rtol=1e-5)
    second = flow.func.grad(flow.func.grad(lambda v: double(v)))(flow.tensor(0.5))
    np.testing.assert_allclose(second.item(), -2 * np.sin(0.5), rtol=1e-5)


@pytest.mark.parametrize("rule", ["S0", "S0 ->", "Q -> S0", ["S0, B -> S0", "B"]])
def test_malformed_rules(rule):
    with pytest.raises(ValueError) as caught:
        wrap_jax(scale_rows, sbp_rule=rule)
    assert "fix:" in str(caught.value)


def test_misfits():
    with pytest.raises(ValueError, match="per input array"):
        wrap_jax(scale_rows, sbp_rule="S0 -> S0")(flow.tensor(X), flow.tensor(W))
    with pytest.raises(TypeError, match="hash"):
        wrap_jax(lambda x, y: x)(flow.tensor(X), {1, 2})


@pytest.mark.parametrize(
    "fn, kind, expected",
    [
        (lambda x: x @ jnp.ones((5, 2)), errors.OpTypeError, r"float32\[2, 3\].*contracting.*look at .*test_wrap_jax"),
        (lambda x: x.reshape(7), errors.OpTypeError, r"reshape.*rule"),
        (lambda x: x if x.sum() > 0 else -x, errors.DataDependentError, r"boolean.*jnp\.where"),
        (lambda x: x.relu(), errors.UnknownNameError, r"no attribute relu.*methods of tensors"),
        (lambda x: "text", errors.OpTypeError, r"not a valid JAX array type.*outputs are arrays"),
    ],
    ids=["shapes", "reshape", "branch", "method", "output"],
)
def test_what_jax_refuses_is_said_in_four_parts(fn, kind, expected):
    with pytest.raises(kind, match=f"(?s){expected}"):
        wrap_jax(fn, name="mine")(flow.ones(2, 3))


def test_the_function_s_own_errors_stay_its_own():
    def own(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="^mine"):
        wrap_jax(own)(flow.ones(2))
