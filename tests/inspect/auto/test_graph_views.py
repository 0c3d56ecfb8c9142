"""Auto parallelism seen from a graph: names are the user's."""

import functools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.inspect.auto.graph_views import problem_of_program
from sbpjax._core.inspect.auto.sensitivity import layouts_of
from sbpjax._core.inspect.display import microseconds
from sbpjax._core.planner.boundaries import codes_of
from sbpjax.errors import MixedTensorError, SbpError
from sbpjax.graph.auto import plan_file
from sbpjax.graph.fitting import prepared_or_last
from sbpjax.nn import functional as F

_ONE_STEP = 2e-6


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(8, 256), nn.GELU(), nn.Linear(256, 8)

    def forward(self, x):
        return x + self.down(self.act(self.up(x)))


class Train(nn.Graph):
    def __init__(self, place, auto=True, blocks=2):
        super().__init__()
        flow.manual_seed(0)
        self.model = nn.Sequential(*[Block() for _ in range(blocks)])
        if place is not None and not auto:
            self.model.to_global(place, flow.sbp.broadcast)
        self.add_optimizer(flow.optim.Adam(self.model.parameters(), lr=0.1))
        self.config.enable_auto_parallel(auto, placement=place if auto else None)
        self.config.enable_block_scan(blocks > 2)

    def build(self, x, *, y):
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        return loss


def batch():
    return flow.randn(16, 8), flow.tensor(np.zeros(16, np.int64))


@functools.cache
def trained():
    graph = Train(flow.placement("cpu", list(range(8))))
    x, y = batch()
    graph.build_graph(x, y=y)
    return graph


def test_tensors_have_the_names_of_the_model():
    graph = trained()
    case = problem_of_program(graph, *prepared_or_last(graph, "auto_parallel_report", (), {}))
    names = {x.name: x for x in case.inputs}
    wanted = [f"model.{k}.{layer}.{kind}" for k in (0, 1) for layer in ("up", "down") for kind in ("weight", "bias")]
    assert [n for n, x in names.items() if x.kind == "parameter"] == wanted
    assert {x.name for x in case.inputs if x.kind == "batch"} == {"x", "y"}
    states = [x for x in case.inputs if x.kind == "state" and x.shape]
    assert {x.name.partition(":")[2] for x in states} == {"exp_avg", "exp_avg_sq"}
    assert all(case.inputs[x.parent].name == x.name.partition(":")[0] for x in states)
    assert list(case.activations())[:3] == ["model.0.up.output", "model.0.act.output", "model.0.down.output"]
    assert "model.output" in case.activations() and not any("Adam" in n for n in case.activations())


def test_the_report_speaks_of_the_graphs_own_plan():
    graph = trained()
    made = graph.auto_parallel_report(against=["dp", "own"])
    assert made.plan is graph.program.plan and made.problem.title == graph.name
    for name, p in graph.model.to(nn.Module).named_parameters(prefix="model"):
        assert made.sbp(name) == tuple(p.sbp)
    assert made["found"].time_us < made["data parallel"].time_us
    assert 0 < made["found"].update_us < made["data parallel"].update_us < made["data parallel"].equations_us
    assert made["your own"].standing_bytes > 2 * made["found"].standing_bytes


def test_explain_shows_the_time_and_the_collectives_of_the_report():
    graph = Train(flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]]))
    graph.config.set_auto_parallel_wait_time(0.006)
    x, y = batch()
    graph.build_graph(x, y=y)
    (found,) = graph.auto_parallel_report(against=[]).totals
    made = graph.explain(check=False)
    assert made.prices.alpha_us == 0.006 and sum(made.launches.values()) == found.collectives > 0
    assert made.planned_us == found.time_us < made.time_us
    title = " ".join(line.strip() for line in str(made).splitlines()[1:3])
    assert f"one after the other; {microseconds(found.time_us)} by the planner)" in title


def test_the_price_of_a_layout():
    graph = trained()
    found = graph.sensitivity("model.*.up.weight", "B")
    assert found.names == ("model.0.up.weight", "model.1.up.weight") and found.time_us > 0
    assert graph.sensitivity("model.0.act.output", "B").time_us > 0


def test_a_stack_of_layers_has_the_names_of_its_members(tmp_path):
    graph = Train(flow.placement("cpu", list(range(8))), blocks=3)
    x, y = batch()
    graph.build_graph(x, y=y)
    made = graph.auto_parallel_report(against=["tp"])
    row = next(r for r in made.rows if r.name == "model.*.up.weight")
    assert row.shape == (256, 8) and row.names == tuple(f"model.{k}.up.weight" for k in range(3))
    assert any(x.members for x in made.problem.inputs)
    assert made.sbp("model.1.up.weight") == tuple(graph.model.to(nn.Module)[1].up.weight.sbp)
    path = made.save(tmp_path / "sharding.py")
    again = plan_file.load(path).plan(made.problem)
    assert again.in_codes == made.plan.in_codes
    assert layouts_of(made.problem, again) == layouts_of(made.problem, made.plan)
    inside = [a for a in made.problem.activations().values() if a.loops]
    assert inside  # a pin in a loop holds in every turn
    for a in inside[:2]:
        other = (0,) if made.sbp(a.name) != (flow.sbp.split(0),) else (1,)
        assert codes_of(made.problem.plan(marks={a: other}), a) == other


@pytest.mark.parametrize("ending", [".py", ".json"])
def test_a_plan_is_loaded_back_into_another_graph(ending, tmp_path):
    made = trained().auto_parallel_report(against=[])
    path = made.save(tmp_path / f"sharding{ending}")
    again = Train(flow.placement("cpu", list(range(8))))
    again.config.set_auto_parallel_plan(path)
    x, y = batch()
    again.build_graph(x, y=y)
    assert again.program.in_layouts == trained().program.in_layouts
    assert again.program.plan.bytes == trained().program.plan.bytes
    assert plan_file.sharding_of(*_planned(again)) == plan_file.sharding_of(*_planned(trained()))


def test_an_edited_plan_is_obeyed_and_trains_as_one_device_does(tmp_path):
    path = trained().auto_parallel_report(against=[]).save(tmp_path / "sharding.py")
    text = path.read_text()
    assert '"model.*.up.weight": "S0"' in text and '"model.*.act.output": "S1"' in text
    text = text.replace('"model.*.up.weight": "S0"', '"model.*.up.weight": "S0", "model.1.up.weight": "B"')
    path.write_text(text.replace('"model.*.act.output": "S1"', '"model.*.act.output": "S0"'))
    edited, alone = Train(flow.placement("cpu", list(range(8)))), Train(None, auto=False)
    edited.config.set_auto_parallel_plan(path)
    x, y = batch()
    losses = [[float(graph(x, y=y)) for _ in range(3)] for graph in (edited, alone)]
    np.testing.assert_allclose(*losses, rtol=_ONE_STEP)
    model = edited.model.to(nn.Module)
    assert model[0].up.weight.sbp == (flow.sbp.split(0),) and model[1].up.weight.sbp == (flow.sbp.broadcast,)
    made = edited.auto_parallel_report(against=["own", "dp"])
    before = trained().auto_parallel_report(against=[])
    differ = {n for r in before.rows for n in r.names if made.sbp(n) != before.sbp(n)}
    assert differ == {"model.1.up.weight", "model.0.act.output", "model.1.act.output"}
    assert made["found"].bytes == made["your own"].bytes > before["found"].bytes


def test_a_plan_of_another_graph_is_refused(tmp_path):
    path = tmp_path / "sharding.py"
    path.write_text('HIERARCHY = (8,)\nPARAMETERS = {"model.7.up.weight": "B"}\n')
    graph = Train(flow.placement("cpu", list(range(8))))
    graph.config.set_auto_parallel_plan(path)
    x, y = batch()
    with pytest.raises(SbpError, match="no tensor of the step is called 'model.7.up.weight'"):
        graph.build_graph(x, y=y)
    assert graph.model.to(nn.Module)[0].up.weight.layout is None  # as before


def _planned(graph):
    return problem_of_program(graph, *prepared_or_last(graph, "auto_parallel_report", (), {})), graph.program.plan


def test_without_auto_parallelism_it_is_about_the_layouts_given():
    place = flow.placement("cpu", list(range(8)))
    graph = Train(place, auto=False)
    x, y = (t.to_global(place, flow.sbp.split(0)) for t in batch())
    made = graph.auto_parallel_report(x, y=y, against=["own"])
    assert made["found"].as_dict() == made["your own"].as_dict()
    assert made.sbp("x") == (flow.sbp.split(0),) and not made.problem.free


def test_one_device_has_no_layouts():
    graph = Train(None, auto=False)
    x, y = batch()
    with pytest.raises(MixedTensorError, match="a program on one device"):
        graph.auto_parallel_report(x, y=y)
