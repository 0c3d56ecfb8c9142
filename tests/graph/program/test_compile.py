"""Compiled steps: the numbers of eager execution, state in place, one program per signature."""

import logging
import re

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import MixedTensorError
from tests.support import graphs

LAYOUTS = {
    "local": (None, None),
    "data": ([0, 1, 2, 3], flow.sbp.split(0)),
    "grid": ([[0, 1], [2, 3]], [flow.sbp.split(0), flow.sbp.broadcast]),
}
STEPS = 3
RTOL = 2e-5


def build(name, *, dropout=0.0):
    """Return a model, its optimizer, a batch and a step, laid out as ``name`` says."""
    ranks, batch = LAYOUTS[name]
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 4))
    rng = np.random.default_rng(0)
    x = flow.tensor(rng.normal(size=(16, 8)).astype(np.float32))
    y = flow.tensor(rng.integers(0, 4, 16))
    if ranks is not None:
        place = flow.placement("cpu", ranks)
        model.to_global(place, [flow.sbp.broadcast] * place.ranks.ndim)
        if name == "grid":
            for layer, dim in ((model[0], 0), (model[3], 1)):
                layer.weight.data = layer.weight.data.to_global(sbp=[flow.sbp.broadcast, flow.sbp.split(dim)])
        x, y = x.to_global(place, batch), y.to_global(place, batch)
    optimizer = flow.optim.Adam(model.parameters(), lr=1e-2)

    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, (x, y), step


@pytest.mark.parametrize("lowering", ["spmd", "gspmd"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_compiled_step_does_what_the_eager_one_does(name, lowering):
    model, _, batch, step = build(name)
    eager = [step(*batch).item() for _ in range(STEPS)]
    expected = [p.numpy() for p in model.parameters()]
    model, optimizer, batch, step = build(name)
    compiled = flow.compile(step, state=(model, optimizer), lowering=lowering)
    np.testing.assert_allclose([compiled(*batch).item() for _ in range(STEPS)], eager, rtol=RTOL)
    for p, want in zip(model.parameters(), expected, strict=True):
        np.testing.assert_allclose(p.numpy(), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", LAYOUTS)
def test_state_keeps_its_layout_and_eager_code_sees_it(name):
    model, optimizer, batch, step = build(name)
    layouts = [p.layout for p in model.parameters()]
    compiled = flow.compile(step, state=(model, optimizer))
    first = compiled(*batch).item()
    assert [p.layout for p in model.parameters()] == layouts
    assert [p.grad for p in model.parameters()] == [None] * 4
    assert step(*batch).item() < first  # the same step, eagerly, goes on from there


def test_losses_do_not_depend_on_the_layout_even_with_dropout():
    losses = {}
    for name in LAYOUTS:
        model, optimizer, batch, step = build(name, dropout=0.5)
        compiled = flow.compile(step, state=(model, optimizer))
        losses[name] = [compiled(*batch).item() for _ in range(STEPS)]
    for name in LAYOUTS:
        np.testing.assert_allclose(losses[name], losses["local"], rtol=RTOL)


def test_dropout_draws_anew_on_every_call():
    x = flow.ones(64)
    draw = flow.compile(lambda x: nn.functional.dropout(x, 0.5))
    assert (draw(x).numpy() != draw(x).numpy()).any()


def test_a_new_learning_rate_takes_effect_without_a_new_program():
    model, optimizer, batch, step = build("data")
    compiled = flow.compile(step, state=(model, optimizer))
    compiled(*batch)
    optimizer.param_groups[0]["lr"] = 0.0
    before = model[0].weight.numpy()
    compiled(*batch)
    np.testing.assert_array_equal(model[0].weight.numpy(), before)
    assert len(compiled._programs) == 1


def test_signatures_are_shapes_layouts_modes_and_static_values():
    calls = []

    def scaled(x, factor):
        calls.append(factor)
        return {"out": [x * factor, None], "factor": factor}

    compiled = flow.compile(scaled)
    for x, factor in ((flow.ones(3), 2), (flow.zeros(3), 2), (flow.ones(4), 2), (flow.ones(3), 3)):
        result = compiled(x, factor)
        np.testing.assert_array_equal(result["out"][0].numpy(), x.numpy() * factor)
        assert result["out"][1] is None
        assert result["factor"] == factor
    assert calls == [2, 2, 3]


def test_tensors_read_from_outside_become_inputs():
    place = flow.placement("cpu", [0, 1, 2, 3])
    table = flow.tensor(np.arange(8, dtype=np.float32)).to_global(place, flow.sbp.split(0))
    compiled = flow.compile(lambda x: x + table)
    x = flow.ones(8, placement=place, sbp=flow.sbp.split(0))
    np.testing.assert_array_equal(compiled(x).numpy(), np.arange(8) + 1)
    table.mul_(2.0)
    np.testing.assert_array_equal(compiled(x).numpy(), 2 * np.arange(8) + 1)


def test_batch_norm_statistics_advance():
    model = nn.BatchNorm1d(4)
    x = flow.randn(8, 4)
    compiled = flow.compile(lambda x: model(x), state=model)
    compiled(x)
    compiled(x)
    assert int(model.num_batches_tracked.item()) == 2
    reference = nn.BatchNorm1d(4)
    reference(x)
    reference(x)
    np.testing.assert_allclose(model.running_mean.numpy(), reference.running_mean.numpy(), rtol=1e-5)


def test_a_failed_trace_changes_nothing():
    model, optimizer, batch, _ = build("data")
    before = [p.numpy() for p in model.parameters()]

    def broken(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        flow.compile(broken, state=(model, optimizer))(*batch)
    for p, want in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), want)
        assert p.grad is None


def test_to_global_pins_a_layout_inside():
    place = flow.placement("cpu", [0, 1, 2, 3])
    x = flow.ones(8, 64, placement=place, sbp=flow.sbp.split(1))
    w = flow.ones(64, 4, placement=place, sbp=flow.sbp.split(0))
    compiled = flow.compile(lambda x, w: (x @ w).to_global(sbp=flow.sbp.split(0)) * 2.0)
    out = compiled(x, w)
    assert out.sbp == (flow.sbp.split(0),)
    assert [b.steps[0].kind for b in compiled.plan(x, w).boxings] == ["psum_scatter"]
    np.testing.assert_array_equal(out.numpy(), np.full((8, 4), 128.0))


def test_two_placements_are_an_error():
    a = flow.ones(4, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast)
    b = flow.ones(4, placement=flow.placement("cpu", [2, 3]), sbp=flow.sbp.broadcast)
    with pytest.raises(MixedTensorError, match=r"(?s)compile.*one placement.*fix: .*to_global"):
        flow.compile(lambda a, b: a + b)(a, b)


def test_state_is_donated():
    model, optimizer, batch, step = build("data")
    compiled = flow.compile(step, state=(model, optimizer))
    compiled(*batch)
    (program,) = compiled._programs.values()
    state = [*model.parameters(), *optimizer.state_tensors()]
    assert program.compile().memory_analysis().alias_size_in_bytes == sum(t.numel() * t.element_size() for t in state)


def test_an_array_that_something_else_holds_survives_the_step():
    model, optimizer, batch, step = build("data")
    compiled = flow.compile(step, state=(model, optimizer))
    held = model[0].weight._array
    before = np.asarray(held)
    compiled(*batch)
    np.testing.assert_array_equal(np.asarray(held), before)
    assert (model[0].weight.numpy() != before).any()


def test_state_that_is_only_read_is_no_output():
    model, _, (x, _), _ = build("data")
    compiled = flow.compile(model, state=model)
    held = [p._array for p in model.parameters()]
    compiled(x)
    (program,) = compiled._programs.values()
    assert program.written == []
    assert [p._array for p in model.parameters()] == held


@pytest.mark.parametrize("place", ["local", "data"])
def test_free_tensors_that_meet_each_other_become_inputs(place):
    ranks, _ = LAYOUTS[place]
    where = {} if ranks is None else {"placement": flow.placement("cpu", ranks), "sbp": flow.sbp.broadcast}
    table, factor = flow.tensor([1.0, 2.0], **where), flow.tensor(2.0, **where)
    compiled = flow.compile(lambda x: x + (table * factor).relu())
    x = flow.ones(2, **where)
    np.testing.assert_array_equal(compiled(x).numpy(), [3, 5])
    factor.fill_(3.0)
    table.add_(1.0)
    np.testing.assert_array_equal(compiled(x).numpy(), [7, 10])


@pytest.mark.parametrize("place", ["local", "global"])
def test_a_learning_rate_that_stays_is_on_the_device_and_one_that_changes_takes_effect(place):
    weight = nn.Parameter(flow.zeros(3))
    if place == "global":
        everywhere = flow.placement("cpu", [0, 1])
        weight = nn.Parameter(flow.zeros(3, placement=everywhere, sbp=flow.sbp.broadcast))
    optimizer = flow.optim.SGD([weight], lr=1.0)

    graph, expected, held = graphs.Plain(lambda graph: graph.weight.sum().backward(), weight=weight), 0.0, []
    graph.add_optimizer(optimizer)
    for lr in (1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.25, 1.0, 1.0, 1.0):
        optimizer.param_groups[0]["lr"] = lr
        graph()
        expected -= lr
        assert weight.numpy().tolist() == [expected] * 3
        rate = [key for _, key in graph._g.last.state.options].index("lr")
        held.append(graph.program._held[rate][1] is not None)
    assert held == [False, True, True, False, True, False, False, False, True, True]
    assert len(graph._g.programs) == 1


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 32), nn.Linear(32, 8)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def test_equal_layers_are_calls_of_one_function_on_one_cpu_device():
    flow.manual_seed(0)
    model = nn.Sequential(*[Residual() for _ in range(5)])
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    x = flow.randn(4, 8)
    model(x).square().sum().backward()
    expected = [(p - 0.1 * p.grad).numpy() for p in model.parameters()]
    model.zero_grad()

    graph = graphs.graph_of(lambda model, x: model(x).square().sum().backward(), model)
    graph.add_optimizer(optimizer)
    graph(x)
    calls = [line for line in graph.program.lower().as_text().splitlines() if 'inlineable = "false"' in line]
    assert len(calls) >= 2 * 3  # of forward and backward, the layers at the ends apart
    for p, value in zip(model.parameters(), expected):
        np.testing.assert_allclose(p.numpy(), value, rtol=RTOL, atol=1e-6)


def test_further_compilations_are_logged_with_their_reason(caplog):
    double = flow.compile(lambda x: x * 2)
    with caplog.at_level(logging.WARNING, logger="sbpjax.graph"):
        double(flow.ones(2))
        assert caplog.messages == []
        double(flow.ones(3))
        double(flow.ones(2))  # known
        double(flow.ones(4))
    assert [re.sub(r"in [0-9.]+ s", "in s", text) for text in caplog.messages] == [
        "compile(<lambda>) recompiled in s: x: float32[2] → float32[3]",
        "compile(<lambda>) recompiled in s: x: float32[2] → float32[4]",
    ]
