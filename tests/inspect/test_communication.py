"""What a graph says it moves, per boxing with its module and source line, against the compiled program."""

import inspect

import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphError, MixedTensorError
from sbpjax.graph import TensorSpec
from tests.support import graphs

PLACES = {"data": ([0, 1, 2, 3], ["S0"], ["B"]), "tensor": ([0, 1, 2, 3], ["B"], ["S0"]),
          "grid": ([[0, 1], [2, 3]], ["S0", "B"], ["B", "S0"])}  # fmt: skip


class Loss(nn.Module):
    def forward(self, y):
        return (y**2).mean()


class Train(nn.Graph):
    def __init__(self, model, micro=1):
        super().__init__()
        self.model, self.loss = model, Loss()
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=0.01))
        self.config.set_gradient_accumulation_steps(micro)

    def build(self, x):
        loss = self.loss(self.model(x))
        loss.backward()
        return loss


def graph_on(name, micro=1):
    ranks, sbp, of_weights = PLACES[name]
    place = flow.placement("cpu", ranks)
    flow.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.LayerNorm(256), nn.Linear(256, 64)).to_global(place, of_weights)
    return Train(model, micro), TensorSpec((64, 64), placement=place, sbp=sbp)


@pytest.mark.parametrize("micro", [1, 4])
@pytest.mark.parametrize("name", PLACES)
def test_the_table_adds_up_to_the_plan_and_to_the_compiled_program(name, micro):
    graph, spec = graph_on(name, micro)
    found = graph.explain(spec)
    plan = graph.program.plan
    assert plan.bytes > 0 and sum(move.bytes for move in found.moves) == plan.bytes == found.bytes
    assert sum(found.by_module().values()) == plan.bytes
    assert abs(found.traffic.difference()) <= 0.01
    launch_text = ", ".join(f"{n} {kind}" for kind, n in sorted(found.launches.items()))
    table = str(graph.explain(level=2, check=False))
    assert launch_text and table.splitlines()[0].endswith(f"; collectives: {launch_text}")
    assert all(found.traffic.compiled.get(kind) for kind in found.traffic.planned)


def test_modules_lines_and_turns_of_loops():
    graph, spec = graph_on("data", 4)
    found = graph.explain(spec, check=False)
    assert found.traffic is None and not graph.is_compiled
    modules = {move.module for move in found.moves if move.bytes}
    assert "Adam" in modules and modules & {"model.0", "model.1", "model.2", "loss"}
    known = {name for name, _ in graph.model.to(nn.Module).named_modules(prefix="model")} | {"Adam", "loss", ""}
    assert {move.module for move in found.moves} <= known
    inside = [move for move in found.moves if move.module.startswith("model")]
    assert inside and {move.times for move in inside} <= {1, 4} and 4 in {move.times for move in inside}
    first = inspect.getsourcelines(Train.build)[1]
    lines = [move.line for move in inside]
    assert all(line.startswith(__file__) for line in lines)
    assert {int(line.rsplit(":", 1)[1]) for line in lines} <= {first + 1, first + 2, *_forward_lines()}
    assert any(move.backward for move in inside)


def _forward_lines():
    start = inspect.getsourcelines(Loss.forward)[1]
    return range(start, start + 2)


@pytest.mark.parametrize("stage,micro", [(1, 1), (2, 2), (3, 1)])
def test_what_zero_and_the_optimizer_move_has_the_name_of_a_parameter(stage, micro):
    graph, spec = graph_on("data", micro)
    graph.config.enable_zero(True, stage=stage, shard_min_size=256)
    many_rows = TensorSpec((4096, 64), placement=spec.placement, sbp=spec.sbp)  # moving gradients is cheaper
    moves = [move for move in graph.explain(many_rows, check=False).moves if move.bytes and "[]" not in move.boxing]
    assert all(move.line or move.value for move in moves)
    weights = {"model.0.weight", "model.2.weight"}
    reduced = {move.value: move.times for move in moves if "P → S" in move.boxing}
    assert {f"gradient of {name}" for name in weights} <= set(reduced)
    assert all(reduced[f"gradient of {name}"] == (micro if stage == 2 else 1) for name in weights)
    if stage < 3:
        gathered = {move.value for move in moves if "S0 → B" in move.boxing}
        assert {f"update of {name}" for name in weights} <= gathered


def test_text_and_html():
    graph, spec = graph_on("data")
    text, page = str(graph.explain(spec, level=2)), graph.explain(level=2)._repr_html_()
    assert text.splitlines()[0].startswith(f"{graph.name} on 4 ranks: {graph.program.plan.bytes} B per device")
    for word in ("module", "collective", "times", "Adam", "all_gather(a0)", "planned", "compiled"):
        assert word in text
    rows = [line for line in text.splitlines() if "(a0)" in line]
    assert page.count("<tr>") == 1 + len(rows) and 0 < len(rows) <= len(graph.explain(check=False).moves)


def test_bytes_inside_an_op_are_listed():
    place = flow.placement("cpu", [0, 1])

    found = graphs.graph_of(lambda x: x.argmax(0)).explain(TensorSpec((64, 32), placement=place, sbp="S0"))
    assert sum(move.bytes for move in found.moves) == found.bytes


def test_what_has_no_communication():
    graph = graphs.graph_of(lambda x: x + 1)
    with pytest.raises(MixedTensorError, match=r"(?s)explain.*fix: .*to_global"):
        graph.explain(flow.ones(2))
    with pytest.raises(GraphError, match="not built"):
        graphs.graph_of(lambda x: x + 1).explain()
