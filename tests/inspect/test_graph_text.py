"""What a graph says of itself: modules with what goes in and out, their sbps, and what is printed while it is made."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax._core.inspect.graph_text import module_of
from sbpjax._core.programs.normalise import is_backward
from sbpjax.nn import functional as F

PLACE = flow.placement("cpu", [[0, 1], [2, 3]])


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(8, 256), nn.GELU(), nn.Linear(256, 8)

    def forward(self, x, *, scale=1.0):
        return x + self.down(self.act(self.up(x))) * scale


class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
        self.add_optimizer(optimizer, lr_sch=flow.optim.lr_scheduler.StepLR(optimizer, 1))
        self.config.allow_fuse_cast_scale(True)

    def build(self, x, y, weight=2.0):
        out = self.model[1](self.model[0](x), scale=weight)
        loss = F.cross_entropy(out, y)
        loss.backward()
        return {"loss": loss, "out": (out,)}


def made(place=PLACE, rows=8):
    flow.manual_seed(0)
    model = nn.Sequential(MLP(), MLP())
    x, y = flow.randn(rows, 8), flow.tensor(np.zeros(rows, np.int64))
    if place is not None:
        model.to_global(place, ["B", "B"])
        for block in model:
            block.up.weight.data = block.up.weight.data.to_global(sbp=["B", "S0"])
            block.down.weight.data = block.down.weight.data.to_global(sbp=["B", "S1"])
        x, y = x.to_global(place, ["S0", "B"]), y.to_global(place, ["S0", "B"])
    return Train(model), (x, y)


def test_before_it_was_built_a_graph_shows_its_parts():
    graph, _ = made()
    where = "placement=p0"
    assert repr(graph).count(repr(PLACE)) == 1
    expected = [
        f"(GRAPH:{graph.name}:Train): (",
        f"(PLACEMENT:p0:{PLACE!r})",
        "(MODULE:model:Sequential()): (",
        "(MODULE:model.0.up:Linear(in_features=8, out_features=256, bias=True)): (",
        f"(PARAMETER:model.0.up.weight:tensor(size=(256, 8), dtype=sbpjax.float32, {where}, sbp=(B, S0), "
        "requires_grad=True))",
        f"(PARAMETER:model.0.up.bias:tensor(size=(256,), dtype=sbpjax.float32, {where}, sbp=(B, B), "
        "requires_grad=True))",
        "(MODULE:model.1.act:GELU(approximate='none')): ()",
        "(OPTIMIZER:optimizer[0]:SGD(lr=0.1, lr_sch=StepLR))",
    ]
    lines = [line.strip() for line in repr(graph).split("\n")]
    places = [lines.index(line) for line in expected]
    assert places == sorted(places)
    assert "training=True" in lines[1] and "allow_fuse_cast_scale(True)=XLA does this on its own" in lines[1]
    assert "INPUT" not in repr(graph) and "OUTPUT" not in repr(graph)


@pytest.mark.parametrize("scan", [False, True])
def test_after_it_was_built_it_shows_what_goes_in_and_out_with_sbps(scan):
    graph, (x, y) = made(rows=32)
    graph.config.enable_block_scan(scan)
    graph.build_graph(x, y, weight=3.0)
    text = repr(graph).replace("placement=p0, ", "")
    for line in (
        "(INPUT:x:tensor(size=(32, 8), dtype=sbpjax.float32, sbp=(S0, B)))",
        "(INPUT:y:tensor(size=(32,), dtype=sbpjax.int64, sbp=(S0, B)))",
        "    (MODULE:model.0:MLP()): (\n      (INPUT:x:tensor(size=(32, 8), dtype=sbpjax.float32, sbp=",
        "        (OUTPUT:output:tensor(size=(32, 256), dtype=sbpjax.float32, sbp=",
        "(OUTPUT:output['loss']:tensor(size=(), dtype=sbpjax.float32, sbp=",
        "(OUTPUT:output['out'][0]:tensor(size=(32, 8), dtype=sbpjax.float32, sbp=",
    ):
        assert line in text
    assert "sbp=?" not in text
    calls = [line for line in text.split("\n") if "INPUT:input:" in line]
    assert len(calls) == 6  # three layers in each of two blocks
    sharded = [line for line in text.split("\n") if "OUTPUT:output:tensor(size=(32, 256)" in line]
    assert len(sharded) == 4 and all("sbp=(S0, S1)" in line or "sbp=(B, S1)" in line for line in sharded)


def test_a_graph_on_one_device_has_no_sbps():
    graph, batch = made(None)
    graph(*batch)
    assert "sbp=" not in repr(graph) and "(OUTPUT:output['loss']:tensor(size=(), dtype=sbpjax.float32))" in repr(graph)


def test_options_of_modules_are_shown():
    graph, _ = made()
    graph.model[0].to(nn.graph.GraphModule).activation_checkpointing = True
    graph.model[1].to(nn.graph.GraphModule).set_stage(1)
    assert "(MODULE:model.0:MLP(), activation_checkpointing=True): (" in repr(graph)
    assert "(MODULE:model.1:MLP(), stage_id=1): (" in repr(graph)


@pytest.mark.parametrize("scan", [False, True])
def test_every_equation_names_its_module(scan):
    graph, batch = made()
    graph.config.enable_block_scan(scan)
    graph.build_graph(*batch)
    eqns = graph.program.plan.program.eqns
    products = [(module_of(e), is_backward(e)) for e in eqns if e.primitive.name == "dot_general"]
    layers = [f"model.{i}.{name}" for i in range(2) for name in ("up", "down")]
    assert {p for p in products if not p[1]} == {(name, False) for name in layers}
    assert {p for p in products if p[1]} == {(name, True) for name in layers}
    assert {module_of(e) for e in eqns} >= {"SGD", "model.0.act", "model.1"}


def test_debug_prints_phases_modules_ops_and_boxings(capsys):
    graph, batch = made()
    for level, kinds in ((0, 0), (1, 1), (2, 2), (3, 3)):
        graph._g.programs.clear()
        graph._g.last = None
        graph.debug(level, op_repr_with_py_stack=True)
        graph(*batch)
        out = capsys.readouterr().out
        assert f"[{graph.name}] traced in " in out and "planned in " in out and "compiled in " in out
        assert ("(MODULE:model.0.up) tensor(" in out) == (kinds >= 1)
        assert ("(OP:model.0.up:dot_general) float32[8, 256] " in out) == (kinds >= 2)
        assert ("(BOXING) " in out) == (kinds >= 3)
    assert "test_graph_text.py:" in out


def test_debug_of_one_module_and_of_no_rank(capsys):
    graph, batch = made()
    graph.model[1].to(nn.graph.GraphModule).debug(1)
    graph(*batch)
    out = capsys.readouterr().out
    assert "(MODULE:model.1.up)" in out and "model.0" not in out
    other, batch = made()
    other.debug(3, ranks=[5])
    other(*batch)
    assert capsys.readouterr().out == ""
