"""What it costs to lay a tensor otherwise."""

import pytest

from sbpjax._core.inspect.auto.sensitivity import sensitivity
from sbpjax._core.planner.boundaries import codes_of
from sbpjax.errors import SbpError
from sbpjax.sbp import algebra
from tests.graph.auto.cases import on_a_line, reported

_CLOSE = 1e-6  # two solutions of one linear program


def test_a_forced_parameter_lies_as_asked_and_costs_what_the_plans_differ_by():
    case, plan = on_a_line("deep"), reported("deep").plan
    found = sensitivity(case, plan, "p.*.w", "S1")
    assert found.names == ("p.0.w", "p.1.w", "p.2.w", "p.3.w")
    for i in case.positions("p.*.w"):
        assert found.plan.in_codes[i] == (1,) and plan.in_codes[i] == (-1,)
    assert found.time_us == found.plan.modelled_us - plan.modelled_us > 0
    assert found.bytes == found.plan.bytes - plan.bytes
    assert found.memory_bytes < 0  # parameters and their states are divided


def test_what_it_lies_in_already_costs_nothing():
    case, plan = on_a_line("deep"), reported("deep").plan
    (i,) = case.positions("p.2.w")
    found = sensitivity(case, plan, "p.2.w", algebra.nd_name(plan.in_codes[i]))
    assert found.time_us == pytest.approx(0, abs=_CLOSE * plan.modelled_us) and found.bytes == 0
    assert not found.more and not found.less


def test_one_layer_of_several():
    case, plan = on_a_line("deep"), reported("deep").plan
    one, all_of_them = sensitivity(case, plan, "p.1.w", "S1"), sensitivity(case, plan, "p.*.w", "S1")
    assert 0 < one.time_us < all_of_them.time_us
    assert one.plan.in_codes[case.positions("p.2.w")[0]] == (-1,)


def test_a_forced_activation_lies_as_asked():
    case, plan = on_a_line("mlp"), reported("mlp").plan
    activation = case.activations()["dot_general"]
    other = "S0" if codes_of(plan, activation) != (0,) else "S1"
    found = sensitivity(case, plan, "dot_general", other)
    assert codes_of(found.plan, activation) == (int(other[1]),)
    assert found.time_us > 0 and found.before == (codes_of(plan, activation),)


def test_conversions_that_come_and_go_are_told():
    case, plan = on_a_line("mlp"), reported("mlp").plan
    found = sensitivity(case, plan, "p.0.w", "S0")
    assert found.more and all("float32" in text and "→" in text for text, _ in found.more)
    moved = {text for text, _ in found.more}
    assert moved & {str(b).partition(" at ")[0] for b in found.plan.boxings}
    text = str(found)
    assert text.splitlines()[0] == "p.0.w: S1 → S0"
    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["time", "bytes", "memory"]
    assert "also moved: float32[32, 64] S0 → S1 (all_to_all" in text


def test_names_and_layouts_that_do_not_fit():
    case, plan = on_a_line("mlp"), reported("mlp").plan
    with pytest.raises(SbpError, match="no tensor of the step is called 'p.9.w'"):
        sensitivity(case, plan, "p.9.w", "B")
    with pytest.raises(SbpError, match=r"split\(2\) of a tensor with 2 dims"):
        sensitivity(case, plan, "p.0.w", "S2")
