"""Plans as files: written, read, edited."""

import json

import numpy as np
import pytest

from sbpjax._core.inspect.auto.sensitivity import layouts_of
from sbpjax._core.planner.boundaries import codes_of
from sbpjax.errors import SbpError
from sbpjax.graph.auto.plan_file import Sharding, load, sharding_of
from tests import models_jax
from tests.graph.auto.cases import grid, line, on_a_line, problem, reported

_SAME = 1e-6  # two solutions of one linear program


@pytest.mark.parametrize("ending", [".py", ".json"])
@pytest.mark.parametrize("model", ["mlp", "deep"])
def test_round_trip(model, ending, tmp_path):
    case, plan = on_a_line(model), reported(model).plan
    path = sharding_of(case, plan).save(tmp_path / f"sharding{ending}")
    found = load(path)
    assert found == sharding_of(case, plan)
    again = found.plan(case)
    assert again.in_codes == plan.in_codes and again.bytes == plan.bytes
    assert again.modelled_us == pytest.approx(plan.modelled_us, rel=_SAME)
    assert layouts_of(case, again) == layouts_of(case, plan)


def test_every_tensor_has_its_layout_from_the_file():
    case, plan = on_a_line("deep"), reported("deep").plan
    pins, marks = sharding_of(case, plan).pins(case)
    assert pins == {i: c for i, c in enumerate(plan.in_codes) if case.inputs[i].shape}
    assert marks == {a: codes_of(plan, a) for a in case.activations().values()}


def test_equal_layers_are_one_entry():
    text = sharding_of(on_a_line("deep"), reported("deep").plan).python()
    assert '    "p.*.w": "B",  # 4 × [32, 32] float32' in text and "p.0.w" not in text


def test_two_axes_round_trip(tmp_path):
    case = problem(models_jax.mlp(64, 32, 64), grid())
    plan = case.plan()
    found = load(sharding_of(case, plan).save(tmp_path / "sharding.py"))
    assert found.hierarchy == (2, 4) and found.plan(case).in_codes == plan.in_codes


def test_an_edit_changes_its_own_entry_alone(tmp_path):
    case, plan = on_a_line("deep"), reported("deep").plan
    path = sharding_of(case, plan).save(tmp_path / "sharding.py")
    before = layouts_of(case, plan)
    text = path.read_text()
    path.write_text(text.replace('"p.*.w": "B"', '"p.*.w": "S1", "p.3.w": "B"'))
    edited = load(path).plan(case)
    after = layouts_of(case, edited)
    assert {n: after[n] for n in before if before[n] != after[n]} == dict.fromkeys(("p.0.w", "p.1.w", "p.2.w"), (1,))
    assert edited.modelled_us > plan.modelled_us


def test_an_exact_name_wins_over_a_pattern(tmp_path):
    path = tmp_path / "sharding.py"
    path.write_text('HIERARCHY = (8,)\nPARAMETERS = {"p.*.b": "B", "p.1.b": "S0"}\n')
    case = on_a_line("deep")
    pins, marks = load(path).pins(case)
    assert pins == {i: ((0,) if case.inputs[i].name == "p.1.b" else (-1,)) for i in case.positions("p.*.b")}
    assert len(pins) == 4 and not marks
    plan = load(path).plan(case)
    assert all(plan.in_codes[i] == codes for i, codes in pins.items())


def test_a_file_may_compute_its_entries(tmp_path):
    path = tmp_path / "sharding.py"
    path.write_text('HIERARCHY = (8,)\nPARAMETERS = {f"p.{i}.w": "S1" for i in range(2)}\n')
    assert load(path).entries == {"parameter": {"p.0.w": (1,), "p.1.w": (1,)}}


def test_what_the_file_leaves_out_is_the_planners():
    case, plan = on_a_line("mlp"), reported("mlp").plan
    assert Sharding((8,), {}).plan(case).in_codes == plan.in_codes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PARAMETERS = {}\n", "the names ['PARAMETERS']"),
        ('HIERARCHY = (8,)\nPARAMETERS = {"p.9.w": "B"}\n', "no tensor of the step is called 'p.9.w'"),
        ('HIERARCHY = (8,)\nPARAMETERS = {"p.0.ww": "B"}\n', "fix:  'p.0.w'"),
        ('HIERARCHY = (8,)\nPARAMETERS = {"p.0.w": "S2"}\n', "split(d) needs d < 2"),
        ('HIERARCHY = (8,)\nPARAMETERS = {"p.0.w": "X"}\n', "string forms are"),
        ('HIERARCHY = (8,)\nPARAMETERS = {"p.0.w": "B,B"}\n', "2 entries for a placement of hierarchy (8,)"),
        ('HIERARCHY = (2, 4)\nPARAMETERS = {"p.0.w": "B,B"}\n', "hierarchy (2, 4) in the file, (8,) of the step"),
    ],
)
def test_files_that_do_not_fit_are_explained(text, expected, tmp_path):
    path = tmp_path / "sharding.py"
    path.write_text(text)
    with pytest.raises(SbpError) as error:
        load(path).plan(on_a_line("mlp"))
    assert expected in str(error.value)


def test_json_that_is_none(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text("{")
    with pytest.raises(SbpError, match="text that is no JSON"):
        load(path)
    path.write_text(json.dumps({"format": 9, "hierarchy": [8], "parameters": {}}))
    with pytest.raises(SbpError, match="format 9, this version reads 1"):
        load(path)
    with pytest.raises(SbpError, match=r"the ending '\.yaml'"):
        load(tmp_path / "plan.yaml")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[" * 30_000, "text that is no JSON"),
        ({"hierarchy": "ab", "parameters": {}}, "HIERARCHY ab"),
        ({"hierarchy": [8, -1], "parameters": {}}, "not the sizes of a placement"),
        ({"hierarchy": [2**80], "parameters": {}}, "not the sizes of a placement"),
        ({"hierarchy": None, "parameters": {}}, "HIERARCHY None"),
        ({"hierarchy": [8], "parameters": ["a"]}, "PARAMETERS of type list"),
        ({"hierarchy": [8], "state": {"a": 3}}, "a layout in STATE that cannot be read"),
        ({"hierarchy": [8], "state": {"a": {"b": []}}}, "seen: axis 'b'"),
    ],
)
def test_json_of_other_types(content, expected, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(SbpError) as error:
        load(path)
    assert expected in str(error.value) and "\n  fix:  " in str(error.value)


def test_a_model_is_laid_out_by_a_file():
    import sbpjax as flow

    model = flow.nn.Linear(16, 8)
    before = model.weight.numpy().copy()
    sharding = Sharding((8,), {"parameter": {"net.weight": (1,), "net.bias": (0,)}})
    sharding.lay_out(model, line(), prefix="net")
    assert model.weight.sbp == (flow.sbp.split(1),) and model.bias.sbp == (flow.sbp.split(0),)
    np.testing.assert_array_equal(model.weight.numpy(), before)


def test_missing_plan_file_is_named(tmp_path):
    with pytest.raises(SbpError, match="seen: no such file"):
        load(tmp_path / "sharding.py")
