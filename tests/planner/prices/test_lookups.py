"""Lookups in bfloat16: which they are, and what it costs that a part of the table is cut from their copy."""

import jax
import jax.numpy as jnp
import pytest

from sbpjax.planner.graph import build
from sbpjax.planner.prices.lookups import copied_whole, rounded_lookups, tables_of
from sbpjax.programs.normalise import normalise

B, S0 = (-1,), (0,)


def graph_of(fn, rows=4000, width=64):
    table, ids = jax.ShapeDtypeStruct((rows, width), jnp.float32), jax.ShapeDtypeStruct((32, 26), jnp.int32)
    weight = jax.ShapeDtypeStruct((26 * width, 16), jnp.float32)
    program = normalise(jax.make_jaxpr(fn)(table, ids, weight))
    outs = [None] * len(program.outvars)
    return build(program, (B, S0, B), outs, (), B)


def rows(table, ids):
    return table[ids].reshape(32, -1)


@pytest.mark.parametrize(
    "fn, is_rounded",
    [
        (lambda t, i, w: rows(t, i) @ w, True),
        (lambda t, i, w: jnp.dot(rows(t, i), w, precision="highest"), False),
        (lambda t, i, w: (rows(t, i) @ w, rows(t, i).sum()), False),  # something else reads them
        (lambda t, i, w: rows(t, i), False),
        (lambda t, i, w: (rows(t, i) * 2) @ w, False),
    ],
)
def test_rows_that_only_products_read_are_rounded(fn, is_rounded):
    graph = graph_of(fn)
    found = rounded_lookups(graph)
    assert bool(found) is is_rounded
    tables = tables_of(graph, found)
    assert {v.shape for v in tables} == ({(4000, 64)} if is_rounded else set())


def test_a_part_of_the_table_is_cut_from_its_copy():
    """Where the part is no whole tiles when turned, the copy is float32, not bfloat16: 128 lanes for every row."""
    graph = graph_of(lambda t, i, w: rows(t, i) @ w)
    (table,) = tables_of(graph, rounded_lookups(graph))
    assert copied_whole(table, (8,), B, S0) == 4000 * 128 * 2
    (even,) = tables_of(other := graph_of(lambda t, i, w: rows(t, i) @ w, 8192), rounded_lookups(other))
    assert copied_whole(even, (8,), B, S0) == 0
    (wide,) = tables_of(other := graph_of(lambda t, i, w: rows(t, i) @ w, width=128), rounded_lookups(other))
    assert copied_whole(wide, (8,), B, S0) == 0
