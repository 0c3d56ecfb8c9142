"""Graphs whose state the planner lays out: the same curve as one device, what is kept, what is chosen once."""

import functools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn, sbp
from sbpjax.errors import GraphConfigError
from sbpjax.graph.auto import graph as auto
from tests.support import graphs

STEPS, BATCH, WIDTH, HIDDEN = 3, 32, 16, 256
LINE = flow.placement("cpu", range(8))
GRID = flow.placement("cpu", np.arange(8).reshape(2, 4))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return x + self.down(flow.nn.functional.gelu(self.up(self.norm(x))))


class Scaled(Block):
    """A layer with a constant that knows no placement."""

    def forward(self, x):
        return super().forward(x) * (1 + flow.arange(WIDTH) / WIDTH)


class Train(nn.Graph):
    def __init__(self, place=None, lay=None, pin=False, layers=2, kind=Block, **options):
        super().__init__()
        flow.manual_seed(0)
        self.net = nn.Sequential(*[kind() for _ in range(layers)])
        self.pin = pin
        if lay is not None:
            lay(self.net)
        self.add_optimizer(flow.optim.Adam(self.net.parameters(), lr=0.01))
        if place is not None:
            self.config.enable_auto_parallel(True, placement=None if lay else place)
        for name, value in options.items():
            getattr(self.config, name)(*value if isinstance(value, tuple) else (value,))

    def build(self, x, y):
        out = self.net(x)
        if self.pin:
            out = out.to_global(LINE, sbp.split(1))
        loss = ((out - y) ** 2).mean()
        loss.backward()
        return loss

    def curve(self, place=None, rows=BATCH):
        rng = np.random.default_rng(1)
        found = []
        for _ in range(STEPS):
            x, y = (flow.tensor(rng.normal(size=(rows, WIDTH)).astype(np.float32)) for _ in range(2))
            if place is not None:
                x, y = (t.to_global(place, [sbp.split(0), sbp.broadcast][: len(place.hierarchy)]) for t in (x, y))
            found.append(np.mean(self(x, y).numpy()))
        return np.array(found)

    def laid(self):
        return {name: p._layout.codes for name, p in self.net.named_parameters()}


@functools.cache
def one_device():
    return Train(kind=Scaled).curve()


@functools.cache
def chosen():
    """Return a trained graph of a local model on eight devices, and its curve."""
    graph = Train(LINE, kind=Scaled)
    return graph, graph.curve()


def broadcast(place):
    return lambda net: net.to_global(place, [sbp.broadcast] * len(place.hierarchy))


def test_a_local_model_trains_as_on_one_device():
    graph, curve = chosen()
    np.testing.assert_allclose(curve, one_device(), rtol=1e-5)
    assert abs(curve[0] - one_device()[0]) <= 2e-6 * abs(one_device()[0])
    assert len(graph._g.programs) == 1 and graph.program.plan.gap <= 1e-4
    assert any(c != (-1,) for c in graph.laid().values())
    moments = [t for t in graph._g.optimizers[0].optimizer.state_tensors() if t.ndim]
    assert all(t._layout.placement == LINE for t in moments)


def test_results_of_local_arguments_are_local():
    graph, _ = chosen()
    x = flow.ones(BATCH, WIDTH)
    assert graph(x, x)._layout is None


@pytest.mark.parametrize("place", [LINE, GRID], ids=["1-D", "2-D"])
def test_a_broadcast_model_is_laid_out(place):
    graph = Train(place, broadcast(place), layers=1)
    curve = graph.curve(place)
    np.testing.assert_allclose(curve, Train(layers=1).curve(), rtol=1e-5)
    layouts = [graph.program.in_layouts[1 + i] for i in graph.program.free_slots]
    assert {p._layout for p in graph.net.parameters()} <= set(layouts)
    pinned = Train(None, broadcast(place), layers=1)
    x = flow.ones(BATCH, WIDTH).to_global(place, [sbp.split(0), sbp.broadcast][: len(place.hierarchy)])
    pinned.build_graph(x, x)
    assert graph.program.plan.modelled_us < pinned.program.plan.modelled_us


def test_plans_are_deterministic():
    again = Train(LINE, kind=Scaled)
    again.build_graph(flow.ones(BATCH, WIDTH), flow.ones(BATCH, WIDTH))
    assert again.program.plan.in_codes == chosen()[0].program.plan.in_codes
    assert again.program.plan.out_codes == chosen()[0].program.plan.out_codes


def test_what_the_user_has_split_is_kept():
    def lay(net):
        broadcast(LINE)(net)
        net[0].up.weight.data = net[0].up.weight.data.to_global(LINE, sbp.split(1))

    graph = Train(LINE, lay)
    x = flow.ones(BATCH, WIDTH).to_global(LINE, sbp.broadcast)
    graph.build_graph(x, x)
    assert graph.laid()["0.up.weight"] == (1,)
    free = Train(LINE, broadcast(LINE))
    free.build_graph(x, x)
    differs = {n for n, c in graph.laid().items() if c != free.laid()[n]}
    assert "0.up.weight" in differs
    assert not any(
        name.startswith(("1.up", "1.down")) for name in differs
    )  # the other layer's matrices are as they were
    ignored = Train(LINE, lay, enable_auto_parallel_ignore_user_sbp_config=True)
    ignored.build_graph(x, x)
    assert ignored.laid() == free.laid()


def test_to_global_in_build_is_kept_unless_users_are_ignored():
    x = flow.ones(BATCH, WIDTH)

    def pins(**options):
        graph = Train(LINE, pin=True, **options)
        graph.build_graph(x, x)
        return sum(e.primitive.name == "to_sbp" for e in graph.program.plan.program.eqns)

    assert pins() and not pins(enable_auto_parallel_ignore_user_sbp_config=True)


def test_a_layout_is_chosen_once():
    """Another batch, an evaluation: both take the model as it lies, and nothing is converted back and forth."""
    graph = Train(LINE, layers=1)
    graph.curve()
    before = graph.laid()
    graph.curve(rows=8)
    assert graph.laid() == before and len(graph._g.programs) == 2

    evaluation = graphs.graph_of(lambda net, x: net(x), graph.net)
    evaluation.config.enable_auto_parallel(True, placement=LINE)
    x = flow.randn(4, WIDTH)
    got = evaluation(x)
    assert graph.laid() == before and got._layout is None
    alone = Train(layers=1)
    alone.net.load_state_dict({k: v.to_local() for k, v in graph.net.state_dict().items()})
    np.testing.assert_allclose(got.numpy(), alone.net(x).numpy(), rtol=2e-5, atol=2e-5)
    auto.release(graph.net.parameters())
    assert all(auto.Auto().is_free(p) for p in graph.net.parameters())
    auto.keep(graph.net.parameters())
    assert not any(auto.Auto(ignore_user=True).is_free(p) for p in graph.net.parameters())


@pytest.mark.parametrize(
    "options",
    [{"set_gradient_accumulation_steps": 2, "enable_block_scan": True, "layers": 4}, {"enable_zero": True}],
    ids=["accumulated in loops", "ZeRO"],
)
def test_other_options_go_along(options):
    graph = Train(LINE, **options)
    expected = Train(**{k: v for k, v in options.items() if k != "enable_zero"}).curve()
    np.testing.assert_allclose(graph.curve(), expected, rtol=1e-5)
    stacks = [graph.program.slots[i] for i in graph.program.free_slots if len(graph.program.slots[i].places) > 1]
    assert bool(stacks) == ("enable_block_scan" in options)
    assert all(0 not in slot.layout.codes for slot in stacks)  # no layer lies on one rank alone


def test_a_failed_trace_leaves_the_model_as_it_was():
    graph = Train(LINE)
    with pytest.raises(Exception, match=r"\(3,\)|broadcast|shape"):
        graph(flow.ones(BATCH, WIDTH), flow.ones(BATCH, 3))
    assert all(p._layout is None for p in graph.net.parameters())
    np.testing.assert_array_equal(graph.net[0].up.weight.numpy(), Train().net[0].up.weight.numpy())


def test_stages_of_a_pipeline_are_not_planned_as_one():
    half = flow.placement("cpu", range(4)), flow.placement("cpu", range(4, 8))

    def lay(net):
        for layer, place in zip(net, half, strict=True):
            layer.to_global(place, sbp.broadcast)

    x = flow.ones(BATCH, WIDTH).to_global(half[0], sbp.broadcast)
    with pytest.raises(GraphConfigError, match=r"(?s)tensors on .*one placement are planned as a whole.*fix: "):
        Train(LINE, lay)(x, x)


def test_an_argument_that_is_state_too_comes_as_it_lies():
    graph = graphs.Plain(lambda graph, x: (x * graph.x).sum(), x=flow.ones(8, 8))
    graph.config.enable_auto_parallel(True, placement=LINE)
    assert float(graph(graph.x).numpy()) == 64.0 == float(graph(graph.x).numpy())
