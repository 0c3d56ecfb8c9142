"""Reports: the plans side by side, and how every tensor lies."""

import dataclasses
import json
import math

import numpy as np
import pytest

from sbpjax._core.inspect.auto.baseline import hand_pins
from sbpjax._core.inspect.auto.report import Report, report
from sbpjax._core.inspect.traffic import planned_launches
from sbpjax._core.planner.boundaries import codes_of
from sbpjax.errors import SbpError
from sbpjax.graph.auto import plan_file
from sbpjax.sbp import algebra
from sbpjax.sbp.layout import local_shape
from tests import models_jax
from tests.graph.auto.cases import grid, line, on_a_line, problem, reported

UNEXPLAINED = 0.01  # of the time, what is neither an equation nor a collective


def test_the_found_plan_is_no_dearer_than_any_other():
    found, *others = reported("mlp").totals
    assert [t.name for t in others] == ["data parallel", "tensor parallel", "your own"]
    assert all(found.time_us <= t.time_us * (1 + 1e-9) for t in others)
    assert found.time_us < 0.9 * reported("mlp")["data parallel"].time_us


def test_figures_are_those_of_the_plans():
    made = reported("mlp")
    for name, plan in made.plans.items():
        figures = made[name]
        assert (figures.bytes, figures.time_us, figures.gap) == (plan.bytes, plan.modelled_us, plan.gap)
        standing = sum(
            math.prod(local_shape(x.shape, c, (8,))) * x.dtype.itemsize
            for x, c in zip(made.problem.inputs, plan.in_codes)
        ) - sum(x.dtype.itemsize for x in made.problem.inputs if not x.shape)
        assert figures.standing_bytes == standing < figures.memory_bytes
        parts_us = figures.equations_us + figures.interconnect_us
        assert 0 <= figures.interconnect_us <= figures.time_us <= (1 + UNEXPLAINED) * parts_us
        assert figures.collectives == sum(planned_launches(plan, made.problem.placement).values())
    replicated = sum(math.prod(x.shape) * 4 for x in made.problem.inputs if x.shape)
    assert made["your own"].standing_bytes == replicated


def test_every_parameter_and_argument_is_listed_once():
    made = reported("mlp")
    names = [n for r in made.rows if r.kind in ("parameter", "batch") for n in r.names]
    wanted = [x.name for x in made.problem.inputs if x.kind in ("parameter", "batch")]
    assert sorted(names) == sorted(wanted)
    for i, x in enumerate(made.problem.inputs):
        if x.name in names:
            assert made.sbp(x.name) == algebra.to_sbp(made.plan.in_codes[i])


def test_equal_layers_are_one_row():
    row = next(r for r in reported("deep").rows if "p.1.w" in r.names)
    assert row.name == "p.*.w" and row.names == ("p.0.w", "p.1.w", "p.2.w", "p.3.w")
    assert any(line.startswith("p.*.w ") and " 4  [32, 32]" in line for line in str(reported("deep")).splitlines())


def test_layers_that_lie_apart_are_rows_of_their_own():
    case = on_a_line("deep")
    (i,) = case.positions("p.1.w")
    made = report(case, case.plan({i: (0,)}), against=[])
    rows = {r.name: r for r in made.rows}
    assert "p.*.w" not in rows and rows["p.1.w"].codes == (0,) and rows["p.2.w"].codes == (-1,)
    assert "p.*.b" in rows


def test_activations_lie_as_the_plan_makes_them():
    case = on_a_line("mlp")
    made = reported("mlp")
    assert list(case.activations()) == ["dot_general", "dot_general.1", "dot_general.2", "dot_general.3"]
    for name, a in case.activations().items():
        codes = codes_of(made.plan, a)
        assert made.sbp(name) == algebra.to_sbp(codes)
        assert a.shape == ((64, 64) if name in ("dot_general", "dot_general.2") else (64, 32))
        assert "models_jax.py" in a.line


def test_two_axes():
    case = problem(models_jax.mlp(64, 32, 64), grid())
    made = report(case, against=["dp", "dp+tp"])
    assert [t.name for t in made.totals] == ["found", "data parallel", "data parallel × tensor parallel"]
    assert made.head().startswith(
        "step on 2 × 4 ranks by the prices of h100 with 0.005 µs latency: 14 of 15 layouts chosen"
    )
    assert "S" in algebra.nd_name(made.rows[0].codes) and len(made.rows[0].codes) == 2


def test_text():
    text = str(reported("mlp"))
    blocks = text.split("\n\n")
    assert blocks[0].startswith(
        "mlp on 8 ranks by the prices of h100 with 0.005 µs latency: 26 of 27 layouts chosen, gap 0.00 %"
    )
    columns = ["plan", "time", "computing", "updating", "moving", "bytes", "collectives", "memory"]
    assert blocks[1].splitlines()[0].split() == columns
    assert [b.split()[0] for b in blocks[1:]] == ["plan", "parameter", "batch", "activation"]


def test_names_that_are_not_there():
    with pytest.raises(SbpError, match="no tensor of the step is called 'p.0.q'"):
        reported("mlp").sbp("p.0.q")


@pytest.mark.parametrize("ending", [".txt", ".html", ".svg", ".json", ".py"])
def test_it_is_saved_by_the_ending_of_the_name(ending, tmp_path):
    path = reported("mlp").save(tmp_path / f"plan{ending}")
    text = path.read_text()
    if ending == ".txt":
        assert text == f"{reported('mlp')}\n"
    elif ending in (".json", ".py"):
        assert plan_file.load(path) == plan_file.sharding_of(on_a_line("mlp"), reported("mlp").plan)
    else:
        assert text.startswith("<!doctype html>" if ending == ".html" else "<svg ")


def test_a_faster_strategy_is_noted_and_its_plan_saved(tmp_path):
    assert not reported("mlp").notes()
    case = on_a_line("mlp")
    made = report(case, case.plan(hand_pins(case, "dp")), against=["tp"])
    share = 100 * (1 - made["tensor parallel"].time_us / made["found"].time_us)
    assert share > 10
    (note,) = made.notes()
    assert note.startswith(f"tensor parallel is {share:.1f} % faster: the search finds a local optimum.")
    assert note in str(made) and "tensor parallel is" in made.save(tmp_path / "plan.html").read_text()
    path = made.save(tmp_path / "plan.py", plan="tensor parallel")
    assert plan_file.load(path).plan(case).modelled_us == pytest.approx(made["tensor parallel"].time_us)
    with pytest.raises(SbpError, match="the plan 'FSDP'"):
        made.save(tmp_path / "plan.py", plan="FSDP")


@pytest.mark.parametrize("rule", ["given layouts", "memory", "price of memory"])
def test_a_faster_strategy_that_is_not_allowed_is_not_noted(rule):
    case = on_a_line("mlp")
    plans = {"tensor parallel": case.plan(hand_pins(case, "tp"))}
    slow = case.plan(hand_pins(case, "dp"))
    changed = {
        "given layouts": {"inputs": tuple(dataclasses.replace(x, is_free=False) for x in case.inputs)},
        "memory": {"memory_bytes": 1.0},
        "price of memory": {"cost": dataclasses.replace(case.cost, memory_us_per_byte=1e-9)},
    }[rule]
    assert Report(case, slow, plans).notes() and not Report(dataclasses.replace(case, **changed), slow, plans).notes()


def test_on_several_axes_a_faster_strategy_is_not_covered_by_the_gap():
    case = problem(models_jax.mlp(64, 32, 64), grid())
    made = report(case, case.plan(hand_pins(case, "dp")), against=["dp+tp"])
    (note,) = made.notes()
    assert "× tensor parallel" in note and "the gap covers plans that differ on one axis, not on several" in note


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(SbpError, match=r"the ending '\.pdf'"):
        reported("mlp").save(tmp_path / "plan.pdf")


def test_as_dict_is_json():
    found = json.loads(json.dumps(reported("mlp").as_dict()))
    assert found["totals"]["found"]["bytes"] == reported("mlp").plan.bytes
    assert found["sharding"]["parameters"]["p.0.w"] == algebra.nd_name(reported("mlp").plan.in_codes[1])


def test_leaves_need_one_name_each():
    with pytest.raises(SbpError, match="2 names for 3 leaves"):
        from sbpjax.graph.auto.planning_problem import planning_problem_of

        aval = np.zeros((4, 4), np.float32)
        planning_problem_of(lambda a, b, c: a, [aval] * 3, line(), names=["a", "b"], returned=1)
