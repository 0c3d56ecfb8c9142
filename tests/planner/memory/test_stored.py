"""Who pays for inputs that are read and new state that is written, where memory is read in tiles."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from sbpjax.planner import plan_program
from sbpjax.planner.graph import build
from sbpjax.planner.memory.stored import updates
from sbpjax.planner.prices.cost import PRESETS, Link
from sbpjax.programs.normalise import normalise

V5P = PRESETS["v5p"].with_latency(0.0)
BETWEEN = V5P.fused / 6  # what an equation between old and new state touches beside these
RANKS = 8
SIZE = 8192  # an eighth of a square of float32 is 33.6 MB: more than is fetched ahead
WHOLE = 4 * SIZE * SIZE
B, S0 = (-1,), (0,)


def time_us(step, pins, outs, size: int = SIZE, cost=V5P) -> float:
    aval = jax.ShapeDtypeStruct((size, size), jnp.float32)
    program = normalise(jax.make_jaxpr(step)(*[aval] * len(pins)))
    return plan_program(program, (RANKS,), pins, outs, cost=cost).modelled_us


def update(w, m):
    return w - m


def test_what_is_sliced_where_it_is_read_is_read_in_part():
    """A parameter that lies whole, with state that is divided: an eighth of both is read, an eighth written."""
    found = time_us(update, (B, S0), (S0,))
    assert found == pytest.approx(V5P.memory_us((3 + 1 + BETWEEN) * WHOLE / RANKS), rel=0.01)  # the slice is a pass
    assert time_us(update, (B, B), (B,)) == pytest.approx(V5P.memory_us((3 + BETWEEN) * WHOLE), rel=0.01)


def test_what_only_products_read_is_paid_for_there():
    one = time_us(lambda x, w: x @ w, (S0, B), (S0,))
    assert one == pytest.approx(2 * SIZE**3 / RANKS / (V5P.flops_f32 * V5P.products_reach) * 1e6, rel=0.01)


@pytest.mark.parametrize("written_as_one", [False, True])
def test_new_state_that_is_gathered_is_copied_into_the_place_of_the_old(written_as_one):
    kinds = ("all_gather", "psum_scatter") if written_as_one else ()
    cost = replace(V5P, links=(Link(0.0, V5P.wire_bytes_per_s, kinds),))
    wire = WHOLE * (RANKS - 1) / RANKS / V5P.wire_bytes_per_s * 1e6 * (2 if written_as_one else 1)
    passes = (4 + 1 + BETWEEN) / RANKS + (3 if written_as_one else 1 + 2)
    assert time_us(update, (S0, S0), (B,), cost=cost) == pytest.approx(
        wire + V5P.memory_us((passes - 1 / RANKS) * WHOLE), rel=0.01
    )


def test_small_inputs_are_fetched_ahead_which_counts_four_times():
    size = 2048  # 16 MiB
    whole = 4 * size * size
    assert time_us(update, (B, B), (B,), size) == pytest.approx(V5P.memory_us((3 + 2 * 4 + BETWEEN) * whole), rel=0.01)


@pytest.mark.parametrize(("size", "fetched"), [(2048, 4), (4096, 0)])
def test_what_is_gathered_for_a_product_is_fetched_so_too(size, fetched):
    whole, cost = 4 * size * size, replace(V5P, links=(Link(0.0, V5P.wire_bytes_per_s),))
    avals = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((65536, size), (size, size))]
    program = normalise(jax.make_jaxpr(lambda x, w: x @ w)(*avals))

    def us(codes):
        return plan_program(program, (RANKS,), (S0, codes), [S0], cost=cost).modelled_us

    wire = whole * (RANKS - 1) / RANKS / V5P.wire_bytes_per_s * 1e6
    # what is gathered is read in part, written as a whole and fetched; of the input only a part is
    part = whole / RANKS if size == 2048 else 0
    moved = whole / RANKS + whole + fetched * whole - fetched * (whole - part)
    assert us(S0) - us(B) == pytest.approx(wire + V5P.memory_us(moved), rel=0.01)


def test_other_models_do_not_count_them():
    h100 = PRESETS["h100"].with_latency(0.0)
    assert time_us(update, (B, B), (B,), cost=h100) == pytest.approx(h100.memory_us(h100.fused * WHOLE), rel=0.01)


@pytest.mark.parametrize(
    ("step", "between"),
    [
        (lambda w, m: (w - jnp.tanh(m) * 2, m * 3), 4),  # they lead to new state alone
        (lambda w, m: (w - m, (jnp.tanh(m) @ w) * 1.0), 2),  # not what a product reads
    ],
)
def test_equations_that_lead_to_new_state_alone_are_paid_for_with_it(step, between):
    aval = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    graph = build(normalise(jax.make_jaxpr(step)(aval, aval)), (B, B), (B, B), (), B)
    assert sum(graph.nodes[n].count for n in updates(graph)) == between
