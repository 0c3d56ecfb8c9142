"""What a pipelined graph says of itself without running: memory, traffic, and itself as files."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax._core.inspect.pipeline.sizes import local_bytes
from sbpjax.errors import GraphError, NanError
from sbpjax.graph import TensorSpec
from tests.graph.pipeline.nets import ROWS, S0, WIDTH, B, train

PAIRS = [flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])]
MICRO_BATCHES = 4


@pytest.fixture(scope="module")
def graph():
    return train(PAIRS, MICRO_BATCHES, steps=1, sbp=S0)[2]


def batch(first=PAIRS[0], last=PAIRS[1], sbp=S0):
    tokens = np.arange(ROWS) % 8
    return flow.tensor(tokens, placement=first, sbp=sbp), flow.tensor(tokens, placement=last, sbp=sbp)


def test_memory_is_that_of_the_fullest_stage(graph):
    found, guess = graph.memory(), graph.memory(compiled=False)
    assert found.total == max(stage.total for stage in found.stages) and len(found.stages) == 2
    for place, stage, guessed in zip(PAIRS, found.stages, guess.stages, strict=True):
        own = [p for p in graph.net.origin.parameters() if p.placement == place]
        assert stage.parameters == guessed.parameters == sum(local_bytes(p._layout) for p in own)
        assert stage.parameters // 2 <= stage.gradients <= stage.parameters  # sums, divided if the planner likes
        assert 2 * stage.parameters < stage.optimizer < 2 * stage.parameters + 2000  # AdamW's moments, and counts
        assert stage.inputs >= ROWS // 2 * 8 and stage.temporaries > 0 and stage.compiled and not guessed.compiled
    assert found.stages[0].activations > 0 == found.stages[1].activations  # the last goes on at once
    assert "on 2 stages, compiled" in str(found) and str(found).count("\n") == 3


def test_traffic_of_each_stage(graph):
    found = graph.traffic()
    per_step = [sum(t.bytes * t.times for t in graph.explain().transfers if t.source == s) for s in range(2)]
    assert list(found.between) == per_step and min(per_step) >= ROWS * WIDTH * 4
    for stage, place in zip(found.stages, PAIRS, strict=True):
        own = [p for p in graph.net.origin.parameters() if p.placement == place]
        assert sum(stage.planned.values()) >= sum(local_bytes(p._layout) for p in own) // 2  # they get one gradient
        assert abs(stage.difference()) < 0.05
    assert "stage 1, " in str(found)


def test_purposes_of_each_stage_add_up_to_its_tasks(graph):
    found = graph.explain()
    for number, stage in enumerate(found.stages):
        purposes = stage.by_purpose()
        assert sum(p.bytes for p in purposes) == stage.bytes
        assert stage.bytes == sum(size * times for s, _, size, times, _ in found.tasks if s == number) > 0
        assert 0 < sum(p.us for p in purposes) < stage.time_us
        assert "gradients of weights" in {p.name for p in purposes}
    weights = {f"net.{name}" for name, _ in graph.net.origin.named_parameters()}
    named = {place for stage in found.stages for p in stage.by_purpose() if "weights" in p.name for place in p.places}
    assert named and named <= weights


def test_gathered_weights_of_a_stage_have_their_names():
    place = [flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])]

    class Train(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.layers = flow.nn.ModuleList([flow.nn.Linear(8, 8, bias=False).to_global(p, S0) for p in place])
            self.add_optimizer(flow.optim.SGD(self.layers.parameters(), lr=0.1))
            self.config.set_gradient_accumulation_steps(2)

        def build(self, x):
            h = self.layers[0](x)
            loss = self.layers[1](h.to_global(placement=place[1], sbp=S0)).square().mean()
            loss.backward()
            return loss

    rows = TensorSpec((512, 8), placement=place[0], sbp=S0)
    found = Train().explain(rows)
    for number, stage in enumerate(found.stages):
        gathered = {p.name: p.places for p in stage.by_purpose()}["weights gathered"]
        assert list(gathered) == [f"layers.{number}.weight"]


def test_explain_of_four_stages_fits_25_lines_of_110_columns():
    places = [flow.placement("cpu", [2 * k, 2 * k + 1]) for k in range(4)]
    graph = train(places, MICRO_BATCHES, steps=1, sbp=S0)[2]
    text = str(graph.explain())
    lines = text.splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 110
    for stage in range(4):
        assert any(line.startswith(f"{stage}, ") for line in lines)
    for word in ("Stage", "takes longest", "0 → 1", "3 → 2", "The largest share within stages is for"):
        assert word in text
    detailed = str(graph.explain(level=2))
    assert "within stages: bytes per device each time that a task runs" in detailed and "post" in detailed


def test_a_profile_is_of_one_program(graph):
    with pytest.raises(GraphError, match=r"(?s)on 2 stages.*fix: .*pipeline_report"):
        graph.profile(steps=1)


def test_an_export_is_one_program_on_one_device(graph, tmp_path):
    folder = graph.export(tmp_path / "step", *batch())
    loaded = flow.load_graph(folder)
    x, y = batch()
    for _ in range(2):
        losses = loaded(flow.tensor(x.numpy()), flow.tensor(y.numpy()))
        np.testing.assert_allclose(losses.numpy(), graph(x, y).numpy(), rtol=1e-5)


def test_stages_without_a_backward():
    class Evaluate(flow.nn.Graph):
        def __init__(self, layers):
            super().__init__()
            self.layers = layers

        @flow.no_grad()
        def build(self, x):
            for layer in self.layers:
                x = layer(x.to_global(placement=layer.weight.placement))
            return x

    ones = [flow.placement("cpu", [r]) for r in range(3)]
    layers = flow.nn.ModuleList([flow.nn.Linear(4, 4).to_global(place, [B]) for place in ones])
    x = flow.randn(2, 4)
    found = Evaluate(layers)(x.to_global(ones[0], B))
    assert found.placement == ones[2]
    wanted = x.numpy()
    for layer in layers:
        wanted = wanted @ layer.weight.numpy().T + layer.bias.numpy()
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_a_nan_ends_the_step_and_names_stage_and_micro_batch(graph):
    import jax

    parameters = {n: t.numpy() for n, t in graph.net.origin.state_dict().items()}
    weight = graph.net.origin.blocks[1].up.weight
    kept = weight.clone()
    weight.data = weight.data * float("nan")
    with (
        jax.debug_nans(True),
        pytest.raises(NanError, match=r"(?s)stage 1, FB of micro-batch 0.*no number.*nan.*fix: "),
    ):
        graph(*batch())
    weight.data = kept.data
    for name, value in graph.net.origin.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), parameters[name])
    graph(*batch())
