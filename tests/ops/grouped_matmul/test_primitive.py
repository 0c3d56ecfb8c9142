"""Grouped products as equations: values, derivatives of all orders, batches, and wrong arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from sbpjax._core.ops.grouped_matmul.primitive import flops, grouped_matmul
from sbpjax.errors import OpError, OpTypeError

RNG = np.random.default_rng(0)
SIZES = [[5, 0, 7, 1], [0, 0, 0, 0], [13, 0, 0, 0], [2, 2, 2, 3]]


def by_hand(x, w, sizes):
    """Return each row times its group's matrix, with zeros behind the last group."""
    flat = np.zeros((*x.shape[:-1], w.shape[-1]))
    for index in np.ndindex(*x.shape[:-2]):
        ends = np.cumsum(sizes[index])
        for e, (end, size) in enumerate(zip(ends, sizes[index], strict=True)):
            flat[index][end - size : end] = x[index][end - size : end] @ w[e]
    return flat


def drawn(lead, rows=13, groups=4, width=3, out=5, dtype="float64"):
    x, w = (RNG.standard_normal(s).astype(dtype) for s in ((*lead, rows, width), (groups, width, out)))
    return jnp.asarray(x), jnp.asarray(w)


@pytest.mark.parametrize("sizes", SIZES)
def test_each_row_meets_the_matrix_of_its_group(sizes):
    x, w = drawn(())
    sizes = np.array(sizes)
    for dtype in (np.int32, np.int64):
        np.testing.assert_allclose(grouped_matmul(x, w, jnp.asarray(sizes, dtype)), by_hand(x, w, sizes), atol=1e-12)


@pytest.mark.parametrize("rows, groups", [(1, 3), (9, 1), (700, 3), (2000, 5), (40, 60)])
def test_tiles_of_any_number_of_rows(rows, groups):
    x, w = drawn((2,), rows, groups)
    sizes = RNG.multinomial(rows, np.ones(groups) / groups, 2)
    np.testing.assert_allclose(grouped_matmul(x, w, jnp.asarray(sizes)), by_hand(x, w, sizes), atol=1e-12)

    def total(x, w):
        return (grouped_matmul(x, w, jnp.asarray(sizes)) ** 2).sum()

    group = np.stack([np.repeat(np.arange(groups), s) for s in sizes])

    def by_matrices(x, w):
        return (jnp.einsum("lmi,lmio->lmo", x, w[group]) ** 2).sum()

    for found, want in zip(jax.grad(total, (0, 1))(x, w), jax.grad(by_matrices, (0, 1))(x, w), strict=True):
        np.testing.assert_allclose(found, want, atol=1e-9)


@pytest.mark.parametrize("lead", [(), (4,), (2, 2)])
def test_derivatives_of_all_orders(lead):
    x, w = drawn(lead)
    sizes = jnp.asarray(np.array(SIZES).reshape(*lead, 4) if lead else SIZES[0])
    check_grads(lambda x, w: jnp.tanh(grouped_matmul(x, w, sizes)), (x, w), order=2, atol=1e-4, rtol=1e-4)


def test_one_matrix_or_one_of_each_batch():
    x, w = drawn((4,))
    sizes = jnp.asarray(SIZES)
    want = by_hand(x, w, np.array(SIZES))
    np.testing.assert_allclose(jax.vmap(grouped_matmul, (0, None, 0))(x, w, sizes), want, atol=1e-12)
    stacked = jnp.stack([w] * 4)
    np.testing.assert_allclose(jax.vmap(grouped_matmul)(x, stacked, sizes), want, atol=1e-12)
    one = jax.vmap(grouped_matmul, (0, None, None))(x, w, sizes[0])
    np.testing.assert_allclose(one, by_hand(x, w, np.array([SIZES[0]] * 4)), atol=1e-12)
    own = jax.vmap(jax.grad(lambda w, x, s: (grouped_matmul(x, w, s) ** 2).sum()), (None, 0, 0))(w, x, sizes)
    both = jax.grad(lambda w: (grouped_matmul(x, w, sizes) ** 2).sum())(w)
    np.testing.assert_allclose(own.sum(0), both, atol=1e-12)


def test_half_precision_sums_in_single():
    x, w = drawn((), 64, 2, 512, 8, "float32")
    sizes = jnp.asarray([30, 34])
    half = grouped_matmul(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), sizes)
    assert half.dtype == jnp.bfloat16
    np.testing.assert_allclose(half.astype(np.float32), by_hand(x, w, np.array([30, 34])), rtol=2e-2, atol=0.5)


def test_nothing_to_do():
    assert grouped_matmul(jnp.zeros((0, 3)), jnp.zeros((2, 3, 4)), jnp.zeros(2, int)).shape == (0, 4)
    assert grouped_matmul(jnp.zeros((3, 3)), jnp.zeros((2, 3, 0)), jnp.zeros(2, int)).shape == (3, 0)


def test_the_work_does_not_grow_with_the_groups():
    x, w = drawn((), 128, 16, 8, 4)
    eqn = jax.make_jaxpr(grouped_matmul)(x, w, jnp.zeros(16, int)).eqns[-1]
    assert eqn.primitive.name == "grouped_matmul" and flops(eqn) == 2 * 128 * 8 * 4
    text = jax.jit(grouped_matmul).lower(x, w, jnp.zeros(16, int)).compile().as_text()
    assert "f64[16,128" not in text  # every row times every matrix


@pytest.mark.parametrize(
    "change, error, seen",
    [
        ({"x": (13, 4)}, OpError, r"input \(13, 4\), weight \(4, 3, 5\)"),
        ({"w": (3, 5)}, OpError, r"weight \(3, 5\)"),
        ({"sizes": (3,)}, OpError, r"group_sizes \(3,\)"),
        ({"x": (2, 13, 3)}, OpError, r"group_sizes \(\*lead, G\)"),
        ({"w_dtype": "float32"}, OpTypeError, "dtypes float64, float32"),
        ({"sizes_dtype": "float32"}, OpTypeError, "group_sizes of dtype float32"),
    ],
)
def test_wrong_arguments(change, error, seen):
    x = jnp.zeros(change.get("x", (13, 3)))
    w = jnp.zeros(change.get("w", (4, 3, 5)), change.get("w_dtype", "float64"))
    with pytest.raises(error, match=seen):
        grouped_matmul(x, w, jnp.zeros(change.get("sizes", (4,)), change.get("sizes_dtype", "int32")))
