"""The time of a plan by some prices: those it was chosen by give what the planner says, half the speed the double."""

from dataclasses import replace

import pytest

import sbpjax as flow
from benchmarks import auto
from sbpjax._core.planner.prices.cost import DEFAULT, PRESETS
from sbpjax._core.planner.prices.step_time import computing_us, moving_us, plan_us
from tests import models_jax


@pytest.fixture(scope="module")
def plan():
    """Return the plan of a small GPT's step on four devices."""
    where = flow.placement("cpu", [[0, 1], [2, 3]])
    return auto.problem(models_jax.gpt(2, 8, 16, 32, 8, 64), where, DEFAULT, "gpt").plan(None)


def test_by_its_own_prices_it_takes_what_the_planner_says(plan):
    assert plan_us(plan, DEFAULT) == pytest.approx(plan.modelled_us, rel=0.05)  # what is sliced is read, in the planner


def test_by_a_slower_machine_it_takes_longer(plan):
    slow = replace(DEFAULT, flops_f32=DEFAULT.flops_f32 / 2, memory_bytes_per_s=DEFAULT.memory_bytes_per_s / 2)
    assert computing_us(plan, slow) == pytest.approx(2 * computing_us(plan, DEFAULT))
    assert moving_us(plan, slow) == moving_us(plan, DEFAULT) > 0
    assert moving_us(plan, PRESETS["v5e"]) > moving_us(plan, PRESETS["v5p"])


def test_equations_of_all_ranks_together_are_the_program(plan):
    whole = sum(DEFAULT.equation_us(eqn) for eqn in plan.program.eqns)
    assert whole / 4 <= computing_us(plan, DEFAULT) <= whole
