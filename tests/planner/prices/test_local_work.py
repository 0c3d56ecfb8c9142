"""The price of an equation's blocks where memory is read in tiles."""

import jax
import jax.numpy as jnp
import pytest

from sbpjax._core.planner import plan_program
from sbpjax._core.planner.prices.cost import PRESETS, products_us
from sbpjax._core.planner.prices.local_work import local_bytes
from sbpjax._core.programs.normalise import normalise

_TILE = 8 * 512  # bytes: eight rows of 128 lanes


def equation(fn, primitive, *shapes):
    avals = [jax.ShapeDtypeStruct(s, jnp.int32 if k == 1 and primitive != "dot_general" else jnp.float32)
             for k, s in enumerate(shapes)]  # fmt: skip
    return next(e for e in normalise(jax.make_jaxpr(fn)(*avals)).eqns if e.primitive.name == primitive)


def lookup(width):
    return equation(lambda t, i: t.at[i].get(mode="fill", fill_value=0), "gather", (4000, width), (1024,))


def test_a_lookup_reads_a_tile_per_row():
    ids_split = local_bytes(lookup(128), ((-1,), (0,)), ((0,),), (8,))
    assert ids_split == 128 * 128 * 4 + 128 * 1.35 * _TILE
    rows_split = local_bytes(lookup(128), ((0,), (-1,)), ((-2,),), (8,))
    assert rows_split == 1024 * 128 * 4 + 1024 * 1.35 * _TILE


def test_a_table_of_half_a_tile_is_looked_up_in_a_copy_that_is_not_transposed():
    found = local_bytes(lookup(64), ((-1,), (0,)), ((0,),), (8,))
    assert found == 128 * 64 * 4 + 128 * 1.35 * _TILE + 4000 * (64 * 4 + 128 * 2)  # the copy is in bfloat16
    masked = local_bytes(lookup(64), ((0,), (-1,)), ((-2,),), (8,))  # rows that are summed over the ranks are not
    assert masked == 1024 * 64 * 4 + 1024 * 1.35 * _TILE + (500 * 64 + 504 * 128) * 4


def test_narrow_rows_lie_across_tiles():
    columns_split = local_bytes(lookup(64), ((1,), (-1,)), ((1,),), (8,))
    assert columns_split == 1024 * 8 * 4 + 1024 * 16 * _TILE
    assert local_bytes(lookup(1024), ((1,), (-1,)), ((1,),), (8,)) == 1024 * 128 * 4 + 1024 * 1.35 * _TILE


def test_a_table_cut_down_to_one_column_is_narrow():
    found = local_bytes(lookup(8), ((1,), (-1,)), ((1,),), (8,))
    assert found == 1024 * 4 + 1024 * 16 * _TILE


def test_single_elements_are_not_narrow_rows():
    eqn = equation(lambda t, i: t.at[i].get(mode="fill", fill_value=0), "gather", (4000,), (1024,))
    assert local_bytes(eqn, ((-1,), (0,)), ((0,),), (8,)) == 128 * 4 + 128 * 1.35 * _TILE


def added(rows, width, count):
    """Return what one device of 8 touches for its share of ``count`` rows added to a table that no one has divided."""
    shapes = ((rows, width), (count,), (count, width))
    eqn = equation(lambda t, i, u: t.at[i].add(u), "scatter-add", *shapes)
    return local_bytes(eqn, ((-1,), (0,), (0,)), ((-2,),), (8,))


def test_a_sum_into_a_wide_table_writes_zeros_and_reads_rows():
    table, row = 4000 * 128 * 4, 128 * 4
    assert added(4000, 128, 8 * 1024) == table + 2 * 1024 * row


def test_rows_of_half_a_tile_are_added_transposed_where_the_table_is_whole_tiles():
    table, rows = 4096 * 64 * 4, 1024 * 64 * 4
    assert added(4096, 64, 8 * 1024) == table + rows + 1024 * 32 * _TILE
    padded = 4000 * 128 * 4
    assert added(4000, 64, 8 * 1024) == 4 * padded + 4000 * 64 * 4 + rows + 1024 * 128 * 4
    assert added(4000, 16, 8 * 1024) == 4000 * 16 * 4 + 1024 * 16 * 4 + 1024 * 32 * _TILE


def test_single_elements_are_added_two_tiles_each():
    eqn = equation(lambda t, i, u: t.at[i].add(u), "scatter-add", (4000,), (8192,), (8192,))
    assert local_bytes(eqn, ((-1,), (0,), (0,)), ((-2,),), (8,)) == 2 * 16000 + 1024 * 4 + 1024 * 2 * _TILE


def test_a_product_whose_contracted_dim_is_split_writes_its_whole_result():
    eqn = equation(jnp.dot, "dot_general", (1024, 512), (512, 256))
    assert local_bytes(eqn, ((1,), (0,)), ((-2,),), (8,)) == 4 * (1024 * 64 + 64 * 256 + 1024 * 256)
    assert local_bytes(eqn, ((0, 1), (-1, 0)), ((0, -2),), (2, 4)) == 4 * (512 * 128 + 128 * 256 + 512 * 256)


def test_pointwise_equations_are_divided_as_ever():
    assert local_bytes(equation(lambda x: x * 2, "mul", (8, 8)), ((0,), (-1,)), ((0,),), (8,)) is None


@pytest.mark.parametrize(("precision", "passes"), [(None, 1), ("high", 3), ("highest", 6)])
def test_products_take_the_passes_that_they_ask_for(precision, passes):
    eqn = equation(lambda a, b: jnp.dot(a, b, precision=precision), "dot_general", (256, 256), (256, 256))
    assert products_us(PRESETS["v5p"], eqn) == pytest.approx(passes * 2 * 256**3 / 459e12 * 1e6)


def test_a_table_is_not_split_into_narrow_columns():
    def step(table, ids):
        return table[ids].sum()

    avals = jax.ShapeDtypeStruct((1_000_000, 64), jnp.float32), jax.ShapeDtypeStruct((65536,), jnp.int32)
    program = normalise(jax.make_jaxpr(step)(*avals))
    plans = {
        n: plan_program(program, (8,), (None, (-1,)), [(-1,)], free_inputs=[0], cost=PRESETS[n])
        for n in ("v5p", "h100")
    }
    assert plans["v5p"].in_codes[0] != (1,)
    assert plans["v5p"].modelled_us > plans["h100"].modelled_us


def test_inputs_are_read_and_results_written_in_every_plan_of_their_pins():
    def step(w, g):
        return w - g

    aval = jax.ShapeDtypeStruct((8192, 8192), jnp.float32)
    program = normalise(jax.make_jaxpr(step)(aval, aval))
    least = 3 * 8192 * 8192 * 4 / PRESETS["v5p"].memory_bytes_per_s * 1e6
    whole = plan_program(program, (8,), ((-1,), (-1,)), [0], cost=PRESETS["v5p"])
    divided = plan_program(program, (8,), ((0,), (0,)), [0], cost=PRESETS["v5p"])
    free = plan_program(program, (8,), (None, None), [0], free_inputs=[0, 1], cost=PRESETS["v5p"])
    assert whole.modelled_us == pytest.approx(8 * divided.modelled_us, rel=0.2) and whole.modelled_us > least
    assert free.modelled_us == pytest.approx(divided.modelled_us)
