"""Kinds of values by rows: what is said to be summable over parts of a batch is, for every function and split."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from sbpjax._core.programs.normalise import normalise
from sbpjax._core.programs.row_kinds import STEADY, SUM, UNKNOWN, RowKinds

ROWS, WIDTH = 6, 4
TABLE = np.arange(20.0, dtype=np.float32).reshape(10, 2)

BY_ROW = {
    "compare": lambda y: (y != 3).astype(jnp.float32),
    "merged": lambda y: (y != 3).reshape(-1).astype(jnp.float32),
    "merged and split": lambda y: y.reshape(-1).reshape(y.shape[0], 2, -1) * 2,
    "transposed": lambda y: y.T + 1,
    "shifted along": lambda y: y[:, 1:] * y[:, :-1],
    "padded along": lambda y: jnp.pad(y, ((0, 0), (1, 2))) ** 2,
    "running sum": lambda y: jnp.cumsum(y, 1),
    "sorted": lambda y: jnp.sort(y, 1)[:, 0],
    "largest": lambda y: y.max(1) - y.argmax(1),
    "mean of a row": lambda y: y / (1 + y.sum(1, keepdims=True)),
    "looked up": lambda y: jnp.asarray(TABLE)[y],
    "looked up and picked": lambda y: jnp.take_along_axis(y, (y[:, :1] % WIDTH), 1),
    "one hot": lambda y: jax.nn.one_hot(y, 10)[..., 2],
    "projected": lambda y: y.astype(jnp.float32) @ jnp.ones((WIDTH, 3), jnp.float32),
    "chosen": lambda y: jnp.where(y > 2, y, 0) + jnp.broadcast_to(y[:, :1], y.shape),
    "joined": lambda y: jnp.concatenate([y, y + 1], 1),
    "twice": lambda y: jnp.concatenate([y, y], 0),
}
SUMS = {
    "columns": lambda y: y.sum(0),
    "all": lambda y: y.sum(),
    "twice": lambda y: (y.sum(0) * 2).sum(),
    "products": lambda y: lax.dot_general(y, y, (((0, 1), (0, 1)), ((), ()))),
    "of two sums": lambda y: y.sum(0) + (y * y).sum(0),
}
ACROSS = {
    "centred": lambda y: y - y.sum(0),
    "sorted": lambda y: jnp.sort(y, 0),
    "running sum": lambda y: jnp.cumsum(y, 0),
    "first row": lambda y: y[:1],
    "largest": lambda y: y.max(0),
    "of all": lambda y: y * y.sum(),
    "square of a sum": lambda y: jnp.square(y.sum(0)),
    "with ones": lambda y: jnp.concatenate([y, jnp.ones((1, WIDTH), y.dtype)], 0),
    "product with its own": lambda y: y @ y.T,
}


def kind_of(function):
    flat = normalise(jax.make_jaxpr(function)(jax.ShapeDtypeStruct((ROWS, WIDTH), np.int32)))
    makers = {v: eqn for eqn in flat.eqns for v in eqn.outvars}
    return RowKinds(makers, {flat.invars[0]: 0})(flat.outvars[0])


def total(function, y):
    return np.asarray(function(jnp.asarray(y)), np.float64).sum()


@pytest.mark.parametrize("name", BY_ROW)
def test_rows_stay_apart(name):
    assert isinstance(kind_of(BY_ROW[name]), int)
    y = np.random.default_rng(0).integers(0, 10, (ROWS, WIDTH)).astype(np.int32)
    parts = sum(total(BY_ROW[name], part) for part in (y[:2], y[2:3], y[3:]))
    np.testing.assert_allclose(total(BY_ROW[name], y), parts, rtol=1e-6)


@pytest.mark.parametrize("name", SUMS)
def test_sums_over_rows(name):
    assert kind_of(SUMS[name]) == SUM
    y = np.random.default_rng(0).integers(0, 10, (ROWS, WIDTH)).astype(np.int32)
    np.testing.assert_allclose(total(SUMS[name], y), sum(total(SUMS[name], part) for part in (y[:2], y[2:])), rtol=1e-6)


@pytest.mark.parametrize("name", ACROSS)
def test_what_mixes_rows_is_unknown(name):
    assert kind_of(ACROSS[name]) == UNKNOWN


def test_what_reads_no_row_is_steady():
    assert kind_of(lambda y: jnp.arange(3) * 2) == STEADY
