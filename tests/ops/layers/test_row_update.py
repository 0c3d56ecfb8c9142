"""Updates of named rows: the sums of equal ids, ids that name no row, tables in one array, numbers of both sorts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sbpjax._core.ops.layers.row_update import NOWHERE, dense_rows, merged_rows, named_rows, row_update, sum_duplicates

RNG = np.random.default_rng(5)


def descend(numbers, grad, table):
    return [table - numbers[0] * grad]


@pytest.mark.parametrize("packed", [False, True], ids=["two keys", "packed"])
def test_equal_ids_become_one_with_the_sum_of_their_gradients(packed):
    ids = np.array([7, 2, 7, -1, 9, 2, 10, 7])  # of 10 rows
    rows = RNG.standard_normal((8, 3))
    named, sums = jax.jit(lambda i, r: sum_duplicates(i, r, 10, packed))(ids, rows)
    assert named[:3].tolist() == [2, 7, 9] and (named[3:] >= 10).all() and len(set(named.tolist())) == 8
    for place, number in enumerate((2, 7, 9)):
        np.testing.assert_allclose(sums[place], rows[ids == number].sum(0), rtol=1e-12)


def test_sums_of_low_precision_are_made_in_float32():
    rows = jnp.ones((512, 1), jnp.bfloat16)
    _, sums = sum_duplicates(np.zeros(512, np.int32), rows, 4)
    assert sums.dtype == jnp.bfloat16 and sums[0, 0] == 512  # bfloat16 alone stays at 256


@pytest.mark.parametrize("shape", [(10, 3), (4, 10, 3)], ids=["one table", "four tables"])
def test_an_update_of_rows_is_that_of_the_dense_gradient(shape):
    lead = shape[:-2]
    ids = RNG.integers(-1, 11, (20, *lead))
    rows, table = RNG.standard_normal((20, *lead, 3)), RNG.standard_normal(shape)
    (found,) = jax.jit(lambda *x: row_update(x[0], x[1], x[2:3], x[3:], descend))(ids, rows, 0.5, table)
    np.testing.assert_allclose(found, table - 0.5 * dense_rows(ids, rows, shape), rtol=1e-12)
    again = merged_rows(ids, rows, shape)
    np.testing.assert_allclose(dense_rows(*again, shape), dense_rows(ids, rows, shape), rtol=1e-12)


def test_padding_and_empty_batches_name_no_row():
    ids, rows = named_rows(np.array([[3, 1], [1, 0]]), np.ones((2, 2, 3)), (10, 3), np.float32, padding_idx=1)
    assert ids.tolist() == [3, NOWHERE, NOWHERE, 0] and rows.shape == (4, 3) and rows.dtype == np.float32
    table = np.ones((10, 3))
    (same,) = row_update(np.zeros(0, np.int32), np.zeros((0, 3)), (0.5,), (table,), descend)
    assert (same == table).all()
    assert sum_duplicates(np.zeros(0, np.int64), np.zeros((0, 3)), 10)[0].shape == (0,)


def test_a_step_touches_no_array_of_the_tables_shape():
    size = 12_345
    tables = [jax.ShapeDtypeStruct((size, 4), np.float32)] * 2
    ids, rows = jax.ShapeDtypeStruct((6,), np.int32), jax.ShapeDtypeStruct((6, 4), np.float32)

    def step(ids, rows, a, b):
        return row_update(ids, rows, (0.5,), (a, b), lambda numbers, g, a, b: [a - g, b + g])

    compiled = jax.jit(step, donate_argnums=(2, 3)).lower(ids, rows, *tables).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < size
