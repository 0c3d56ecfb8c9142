"""Who pays for inputs that are read and new state that is written, where memory is read in tiles."""

import jax
import jax.numpy as jnp
import pytest

from sbpjax._core.planner import plan_program
from sbpjax._core.planner.prices.cost import PRESETS
from sbpjax._core.programs.normalise import normalise

V5P = PRESETS["v5p"].with_latency(0.0)
BETWEEN = V5P.fused  # what an equation between old and new state touches beside these
RANKS = 8
SIZE = 8192
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
    assert one == pytest.approx(2 * SIZE**3 / RANKS / V5P.flops_f32 * 1e6, rel=0.01)


def test_other_models_do_not_count_them():
    h100 = PRESETS["h100"].with_latency(0.0)
    assert time_us(update, (B, B), (B,), cost=h100) == pytest.approx(h100.memory_us(h100.fused * WHOLE), rel=0.01)
