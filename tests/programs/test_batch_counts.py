"""Counts of the whole batch in programs of one micro-batch; `tests/graph/test_masked_losses.py` has the graphs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.jax_private import jaxpr_as_fun
from sbpjax._core.programs.batch_counts import with_batch_counts

PARTS, ROWS = 4, 2
X = np.random.default_rng(0).normal(size=(PARTS * ROWS, 3)).astype(np.float32)
MASK = np.array([1, 0, 0, 0, 1, 1, 1, 0], bool)
WEIGHT = np.float32([0.5, -1.0, 2.0])


def losses(weight, x, mask):
    return jnp.square(x @ weight), mask.astype(jnp.float32)


def masked(weight, x, mask):
    each, counts = losses(weight, x, mask)
    return (each * counts).sum() / counts.sum()


def parts_of(loss, **options):
    """Return the replaced program of loss and gradient, and its results for all micro-batches."""

    def step(weight, x, mask):
        value, back = jax.vjp(lambda w: loss(w, x, mask), weight)
        return back(jnp.float32(1))[0], value

    micros = X.reshape(PARTS, ROWS, 3), MASK.reshape(PARTS, ROWS)
    closed = jax.make_jaxpr(step)(WEIGHT, micros[0][0], micros[1][0])
    options = {"losses": [1], "rows": [1, 2], "drawn": [], "changing": [0], "count": PARTS} | options
    made = with_batch_counts(closed, **options)
    more = [] if made.values is None else made.values(WEIGHT, *micros)
    run = jaxpr_as_fun(made.closed)
    return made, [run(WEIGHT, micros[0][i], micros[1][i], *more) for i in range(PARTS)]


def test_the_mean_of_the_parts_is_the_batch():
    made, results = parts_of(masked)
    value, grad = jax.value_and_grad(masked)(WEIGHT, X, MASK)
    assert not made.unknown and len(made.closed.jaxpr.invars) == 4
    np.testing.assert_allclose(np.mean([r[1] for r in results]), value, rtol=1e-6)
    np.testing.assert_allclose(np.mean([r[0] for r in results], 0), grad, rtol=1e-5)
    assert results[1][1] == 0  # without a target: no NaN


def test_a_mean_over_rows_is_left_alone():
    made, _ = parts_of(lambda w, x, mask: jnp.square(x @ w).mean())
    assert made.values is None and not made.unknown


@pytest.mark.parametrize(
    ("loss", "cause"),
    [
        (lambda w, x, mask: jnp.sqrt(jnp.square(x @ w).mean()), "sqrt"),
        (lambda w, x, mask: (x @ w).sum() / jnp.square(x @ w).sum(), "depends on the model"),
        (lambda w, x, mask: (x @ w).sum() / jnp.sort(mask.astype(jnp.float32)).cumsum()[0], "across the rows"),
        (lambda w, x, mask: (x @ w / mask.sum()).sum() * mask.sum() + jnp.tanh(x @ w * mask.sum()).sum(), "reads"),
    ],
    ids=["root", "ratio", "across", "read"],
)
def test_what_is_no_part_of_the_batch_is_named(loss, cause):
    made, _ = parts_of(loss)
    assert made.values is None and any(cause in reason for reason in made.unknown), made.unknown


def test_what_parts_write_is_no_count_of_the_batch():
    made, _ = parts_of(masked, changing=[0, 2])
    assert made.values is None and any("depends on the model" in reason for reason in made.unknown)


def test_counts_of_sixteen_bits_are_added_in_float32():
    def loss(w, x, mask):
        counts = jnp.broadcast_to(mask[:, None], (ROWS, 300)).astype(jnp.bfloat16)
        return (jnp.square(x @ w) * mask).sum() / counts.sum().astype(jnp.float32)

    _, results = parts_of(loss)
    each, counts = losses(WEIGHT, X, MASK)
    np.testing.assert_allclose(np.mean([r[1] for r in results]), (each * counts).sum() / 1200, rtol=1e-6)
