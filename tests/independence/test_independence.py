"""Values and gradients never depend on the layout: every op under random layouts, also with a table of five rules."""

import itertools

import pytest

from sbpjax._core.compiler.eager import global_ops
from sbpjax._core.planner import control
from sbpjax._core.programs.rules import table
from tests.independence.checker import all_cases, check, sample

FIVE = ("add", "mul", "dot_general", "reduce_sum", "broadcast_in_dim")


def _id(value):
    return getattr(value, "id", value)


def _clear() -> None:
    """Forget everything that was planned with another table."""
    global_ops._PROGRAMS.clear()
    control.body_plan.cache_clear()


@pytest.fixture
def five_rules():
    _clear()
    with table.only_rules_of(*FIVE):
        yield
    _clear()


@pytest.mark.parametrize("case, mesh", list(zip(sample(1), itertools.cycle(["1d", "2d", "2d"]))), ids=_id)
def test_sample(case, mesh):
    check(case, mesh)


@pytest.mark.parametrize("case", sample(1)[::5], ids=_id)
def test_sample_with_five_rules(case, five_rules):
    check(case, "2d")


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", all_cases(), ids=_id)
@pytest.mark.parametrize("mesh", ["1d", "2d", "2x3"])
def test_every_case(case, mesh):
    check(case, mesh, turn=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", all_cases(), ids=_id)
def test_every_case_with_five_rules(case, five_rules):
    check(case, "2d", turn=2)


def test_surface():
    assert len({case.fn for case in all_cases()}) > 200
