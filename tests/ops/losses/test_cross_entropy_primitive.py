"""The primitives of cross entropy: values, derivatives of any order, batches, and their price."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.ops.losses import linear_cross_entropy as in_chunks
from sbpjax._core.ops.losses.cross_entropy_primitive import cross_entropy, flops, linear_cross_entropy
from sbpjax._core.programs.normalise import normalise

RNG = np.random.default_rng(5)
X, W, BIAS = (jnp.asarray(RNG.standard_normal(s)) for s in ((3, 50, 6), (20, 6), (20,)))
TARGET = jnp.asarray(RNG.integers(0, 20, (3, 50))).at[1, 3:9].set(-100)
CT = jnp.asarray(RNG.standard_normal((3, 50)))
LOSSES = {"plain": {}, "smoothed": {"smoothing": 0.3}, "z-loss": {"z_loss": 0.01, "smoothing": 0.1, "ignore_index": 4}}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(in_chunks, "_LOGITS", 20 * 64)
    monkeypatch.setattr(in_chunks, "_WEIGHTS", 6 * 8)


def reference(logits, target, smoothing=0.0, z_loss=0.0, ignore_index=-100):
    """The formula of the losses by one-hot vectors."""
    lse = jax.scipy.special.logsumexp(logits, -1)
    wanted = jax.nn.one_hot(target, logits.shape[-1]) * (1 - smoothing) + smoothing / logits.shape[-1]
    return jnp.where(target == ignore_index, 0, lse - (wanted * logits).sum(-1) + z_loss * lse**2)


def expected(x, w, bias, target, **how):
    logits = x @ w.T
    return reference(logits if bias is None else logits + bias, target, **how)


def from_logits(x, w, bias, target, z_loss=0.0, **how):
    assert not z_loss
    return cross_entropy(x @ w.T + bias, target, **how)


def total(run, *operands, **how):
    target = jnp.where(TARGET == -100, how.get("ignore_index", -100), TARGET)
    return (jnp.sin(run(*operands, target, **how)) * CT).sum()


def compare(make, run=linear_cross_entropy, how=None):
    for x, y in zip(
        *(
            jax.tree.leaves(jax.jit(make(functools.partial(total, f, **(how or {}))))(X, W, BIAS))
            for f in (run, expected)
        ),
        strict=True,
    ):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


def gradient(f):
    return jax.value_and_grad(f, (0, 1, 2))


@pytest.mark.parametrize("how", list(LOSSES))
def test_value_and_gradients(how):
    compare(gradient, how=LOSSES[how])
    if how != "z-loss":
        compare(gradient, from_logits, LOSSES[how])


def test_other_derivatives():
    slope = lambda f: lambda *xs: sum((g * g).sum() for g in jax.grad(f, (0, 1, 2))(*xs))  # noqa: E731
    for run in (linear_cross_entropy, from_logits):
        compare(lambda f: lambda *xs: jax.jvp(f, xs, xs), run, LOSSES["smoothed"])
        compare(lambda f: jax.grad(slope(f), (0, 1, 2)), run)
        compare(lambda f: jax.grad(lambda *xs: jax.jvp(f, xs, xs)[1], (0, 1, 2)), run)


def test_batches():
    def frozen(f):
        return lambda x, w, b: jax.vmap(jax.value_and_grad(f), (0, None, None))(jnp.stack([x, 2 * x]), w, b)

    def own(f):
        return lambda x, w, b: jax.vmap(gradient(f), (None, 1, None))(x, jnp.stack([w, 2 * w], 1), b)

    for run in (linear_cross_entropy, from_logits):
        compare(frozen, run)
        compare(own, run)


def test_unwanted_gradients_are_not_computed():
    run = lambda x, w: linear_cross_entropy(x, w, None, TARGET).sum()  # noqa: E731
    for wanted, products in ((0, 2), ((0, 1), 3)):
        eqns = normalise(jax.make_jaxpr(jax.grad(run, wanted))(X, W)).eqns
        (grad,) = (e for e in eqns if e.primitive.name == "linear_cross_entropy_grad")
        assert flops(grad) == products * 2 * X.size * W.shape[0]


def test_narrow_operands_are_summed_in_float32():
    x, w = X.astype("bfloat16"), W.astype("bfloat16")
    run = lambda f: jax.value_and_grad(lambda x, w: (f(x, w, None, TARGET) * CT).sum(), (0, 1))  # noqa: E731
    value, grads = run(linear_cross_entropy)(x, w)
    wide, exact = run(expected)(x.astype("float32"), w.astype("float32"))
    assert [g.dtype for g in grads] == [jnp.bfloat16] * 2
    np.testing.assert_allclose(value, wide, rtol=1e-5)
    for g, e in zip(grads, exact, strict=True):
        np.testing.assert_allclose(g.astype("float32"), e, atol=2**-7 * float(jnp.abs(e).max()))


def test_targets_beyond_the_end_give_nan():
    target = jnp.asarray([0, 20, -1])
    found = linear_cross_entropy(X[0, :3], W, None, target)
    np.testing.assert_array_equal(jnp.isnan(found), [False, True, True])


def test_memory_is_that_of_a_chunk():
    x, w, y = (jax.ShapeDtypeStruct(*s) for s in (((4096, 64), "float32"), ((8192, 64), "float32"), ((4096,), "int32")))
    grad = jax.jit(jax.grad(lambda x, w, y: linear_cross_entropy(x, w, None, y).sum(), (0, 1)))
    assert grad.lower(x, w, y).compile().memory_analysis().temp_size_in_bytes < 0.1 * 4 * 4096 * 8192
