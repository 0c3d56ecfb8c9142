"""Slack: what is on the longest path has none, what is read at the end has much, and latency is hidden by it."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from sbpjax._core.planner import plan_program
from sbpjax._core.planner.prices.cost import CostModel
from sbpjax._core.planner.prices.slack import slack_us
from sbpjax._core.programs.normalise import normalise

MODEL = CostModel("flat", 1e9, 1e9, 1e12, 1e9, 1e9, alpha_us=100.0)


def two_branches(x, w, v):
    """A long chain of products beside one sum that is read at the end."""
    y = x @ w
    for _ in range(3):
        y = y @ w
    return y + v.sum()


def _program(fn, *shapes):
    return normalise(jax.make_jaxpr(fn)(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes)))


def test_the_longest_path_has_none():
    program = _program(two_branches, (64, 64), (64, 64), (8,))
    slack = slack_us(program, MODEL.equation_us)
    products = [e for e in program.eqns if e.primitive.name == "dot_general"]
    (total,) = [e for e in program.eqns if e.primitive.name == "reduce_sum"]
    one = MODEL.equation_us(products[0])
    assert [slack[e.outvars[0]] for e in products] == pytest.approx([0.0] * 4, abs=1e-9)
    assert slack[total.outvars[0]] == pytest.approx(4 * one - MODEL.equation_us(total))
    assert slack[program.invars[1]] == 0.0  # the first product reads it at once


def test_a_result_that_nobody_waits_for_has_all_the_time_there_is():
    program = _program(lambda x, v: (x @ x, v * 2), (64, 64), (8,))
    slack = slack_us(program, MODEL.equation_us)
    assert slack[program.eqns[1].outvars[0]] == pytest.approx(MODEL.equation_us(program.eqns[0]), rel=1e-3)


def test_latency_that_work_covers_changes_the_plan():
    """The sum is needed behind four products: hidden, a reduction of its own (4 bytes) costs next to nothing.

    Otherwise it waits as a partial sum for the reduction of the whole result, which then moves twice the bytes.
    """
    program = _program(two_branches, (64, 64), (64, 64), (8,))
    codes, pins = [(-1,), (-1,), (0,)], [(-1,)]
    waits, hides = (
        plan_program(program, (2,), codes, pins, cost=dataclasses.replace(MODEL, hides=h)) for h in (False, True)
    )
    assert (waits.bytes, hides.bytes) == (64 * 64 * 4, 64 * 64 * 4 // 2 + 4)
    assert hides.modelled_us < waits.modelled_us


def test_readers_pay_one_by_one_if_nothing_is_shared():
    def three_readers(x):
        return x.sum(0), jnp.sin(x).sum(0), jnp.cos(x).sum(0)

    program = _program(three_readers, (64, 64))
    pins = [(-1,)] * 3
    free, alone = (
        plan_program(program, (2,), [(0,)], pins, cost=dataclasses.replace(MODEL, shares=s)) for s in (True, False)
    )
    assert free.modelled_us <= alone.modelled_us
