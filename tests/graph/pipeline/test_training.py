"""Pipelined training: losses, gradients and state are those of the same graph on one placement."""

import functools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphError, MixedTensorError
from sbpjax.nn import functional as F
from tests.graph.pipeline.nets import CLASSES, ROWS, S0, WIDTH, B, same, train

ONE = [flow.placement("cpu", [r]) for r in range(4)]
GRIDS = [flow.placement("cpu", [[0, 1], [2, 3]]), flow.placement("cpu", [[4, 5], [6, 7]])]
ROWS_OF = [flow.placement("cpu", [0, 1, 2, 3]), flow.placement("cpu", [4, 5, 6, 7])]


@functools.cache
def on_one(stages, micro_batches, steps):
    return train(ONE[:stages], micro_batches, steps=steps, pipelined=False)[:2]


def check(stages, micro_batches, schedule, steps):
    found = train(ONE[:stages], micro_batches, steps=steps, configure=lambda g: g.config.set_pipeline(schedule))
    same(found, on_one(stages, micro_batches, steps))


@pytest.mark.parametrize(
    ("stages", "micro_batches", "schedule"),
    [(2, 1, "1f1b"), (2, 8, "1f1b"), (4, 4, "1f1b"), (4, 4, "gpipe"), (4, 4, "zero_bubble")],
)
def test_training_is_that_of_one_placement(stages, micro_batches, schedule):
    check(stages, micro_batches, schedule, steps=4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("micro_batches", [1, 4, 8, 32])
@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zero_bubble"])
def test_fifty_steps_are_those_of_one_placement(stages, micro_batches, schedule):
    check(stages, micro_batches, schedule, steps=50)


def test_a_model_that_comes_to_a_placement_twice_is_interleaved():
    places = [ONE[0], ONE[1], ONE[0], ONE[1]]
    found = train(places, 4, configure=lambda g: g.config.set_pipeline("interleaved"))
    same(found, train(places, 4, pipelined=False))
    schedule = found[2].program.pipeline.body.schedule
    assert schedule.bubble < 1 / 5  # (S - 1) / (M + S - 1) of 1F1B


def test_tied_weights_get_the_sum_of_both_gradients():
    found = train(ONE[:3], 4, tied=True, rows=2 * ROWS)
    same(found, train(ONE[:3], 4, tied=True, rows=2 * ROWS, pipelined=False))
    sends = [(s, times) for s, _, times in found[2].program.pipeline.sends if s.value.aval.shape == (CLASSES, WIDTH)]
    assert [times for _, times in sends] == [1, 1]  # the weight there and its gradient back, once per step


def test_dropout_and_batch_norm():
    found = train(ONE[:2], 4, dropout=0.3, norm=True)
    same(found, train(ONE[:2], 4, dropout=0.3, norm=True, pipelined=False))
    assert found[1]["blocks.0.norm.num_batches_tracked"] == 16


@pytest.mark.parametrize("zero", [0, 1, 2])
def test_data_and_tensor_parallel_inside_stages(zero):
    def configure(graph):
        for block in graph.net.origin.blocks:
            block.up.weight.data = block.up.weight.data.to_global(sbp=[B, S0])
            block.down.weight.data = block.down.weight.data.to_global(sbp=[B, flow.sbp.split(1)])
        if zero:
            graph.config.enable_zero(True, stage=zero, shard_min_size=1)

    found = train(GRIDS, 4, sbp=[S0, B], configure=configure)
    same(found, train(GRIDS, 4, sbp=[S0, B], pipelined=False))


@pytest.mark.parametrize("what", ["clip", "checkpoint"])
def test_options_compose(what):
    def configure(graph):
        if what == "clip":
            graph.config.set_clip_grad_norm(0.05)
        elif what == "checkpoint":
            for block in graph.net.blocks:
                block.to(nn.graph.GraphModule).activation_checkpointing = True

    found = train(ROWS_OF, 4, sbp=S0, configure=configure)
    same(found, train(ROWS_OF, 4, sbp=S0, configure=configure, pipelined=False))


@pytest.mark.exhaustive  # 20 seconds
def test_stages_of_unlike_sizes():
    places = [flow.placement("cpu", [0]), flow.placement("cpu", [1, 2, 3])]  # 16 rows do not divide by 3

    def configure(graph):
        graph.config.set_clip_grad_norm(0.05)

    found = train(places, 4, configure=configure, steps=2)
    same(found, train(ONE[:2], 4, configure=configure, steps=2, pipelined=False))


def half(scale):
    def configure(graph):
        graph.config.enable_amp(True, dtype=flow.float16)
        graph.set_grad_scaler(flow.amp.GradScaler(init_scale=scale))

    return configure


def sgd(parameters):
    return flow.optim.SGD(parameters, lr=0.1)


def test_half_precision_with_a_loss_scaler():
    found = train(ONE[:2], 4, configure=half(2.0**12), optimizer=sgd)
    expected = train(ONE[:2], 4, configure=half(2.0**12), optimizer=sgd, pipelined=False)
    # Other fusions round elsewhere: float16 has an epsilon of 1e-3; float32 says that no more than that differs.
    same(found, expected, 2e-3)
    same(found, train(ONE[:2], 4, optimizer=sgd), 5e-3)


def test_all_stages_skip_a_step_that_overflows():
    _, state, graph = train(ONE[:2], 4, configure=half(2.0**40), optimizer=sgd, steps=1)
    fresh = train(ONE[:2], 4, optimizer=sgd, steps=0)[1]
    for name, value in fresh.items():
        np.testing.assert_array_equal(state[name], value)
    assert graph._g.scaler.get_scale() == 2.0**39


def test_set_stage_moves_what_goes_into_a_module():
    class Staged(nn.Graph):
        def __init__(self, net, optimizer):
            super().__init__()
            self.net = net
            for i in range(len(net)):
                self.net[i].to(nn.graph.GraphModule).set_stage(i, ONE[i])
            self.add_optimizer(optimizer)
            self.config.set_gradient_accumulation_steps(4)

        def build(self, x, y):
            loss = F.cross_entropy(self.net(x), y)
            loss.backward()
            return loss

    def made(places):
        flow.manual_seed(1)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        for module, place in zip(net, places, strict=True):
            module.to_global(place, [B])
        return net, flow.tensor(np.ones((8, 4), np.float32)), flow.tensor(np.arange(8) % 3)

    net, x, y = made(ONE[:3])
    graph = Staged(net, flow.optim.SGD(net.parameters(), lr=0.1))
    loss = graph(x.to_global(ONE[0], B), y.to_global(ONE[2], B))
    assert loss.placement == ONE[2] and loss.shape == (4,)
    assert graph.program.pipeline.stages == ONE[:3]


def test_interleaved_with_one_visit_is_1f1b_and_says_so(caplog):
    found = train(ONE[:2], 4, configure=lambda g: g.config.set_pipeline("interleaved"))[2].program.pipeline
    plain = train(ONE[:2], 4)[2].program.pipeline
    assert found.body.schedule.rows() == plain.body.schedule.rows()
    assert caplog.text.count('set_pipeline("interleaved") is 1F1B here, since each of its 2 stages') == 1


def test_without_micro_batches_it_runs_and_says_that_nothing_overlaps(caplog):
    train(ONE[:2], 1, steps=1)
    assert "2 stages work one after the other" in caplog.text


def test_batches_that_do_not_split_are_refused():
    rule = r"(?s)x: int64\[32\].*5 equal micro-batches; 32 = 6 · 5 \+ 2.*fix: +give batches of a multiple of 5 rows"
    with pytest.raises(GraphError, match=rule):
        train(ONE[:2], 5)


def test_an_op_on_two_placements_names_both():
    class Wrong(nn.Graph):
        def __init__(self, a, b):
            super().__init__()
            self.a, self.b = a, b

        def build(self, x):
            return self.a(x) + self.b.weight.sum(0)

    a, b = nn.Linear(4, 4).to_global(ONE[0], [B]), nn.Linear(4, 4).to_global(ONE[1], [B])
    with pytest.raises(MixedTensorError, match=r"(?s)ranks=\[0\].*ranks=\[1\].*fix:  x\.to_global\(.*ranks=\[.\]\)"):
        Wrong(a, b)(flow.ones(2, 4, placement=ONE[0], sbp=B))


def test_the_fix_for_a_missing_move_is_code():
    class Unmoved(nn.Graph):
        def __init__(self):
            super().__init__()
            self.a, self.b = (nn.Linear(4, 4).to_global(place, [B]) for place in ONE[:2])

        def build(self, x):
            return self.b(self.a(x))

    with pytest.raises(MixedTensorError) as raised:
        Unmoved()(flow.ones(2, 4, placement=ONE[0], sbp=B))
    assert f"fix:  x.to_global(placement={ONE[1]!r})  # for input 0" in str(raised.value)


def test_a_failed_step_changes_nothing():
    found = train(ONE[:2], 2, steps=2)
    graph = found[2]
    task = graph.program.pipeline.body.tasks[-1]
    before, task.executable = task.executable, None
    held = {n: t.numpy() for n, t in graph.net.origin.state_dict().items()}
    x = flow.tensor(np.zeros(ROWS, np.int64))
    with pytest.raises(TypeError):
        graph(x.to_global(ONE[0], B), x.to_global(ONE[1], B))
    for name, value in graph.net.origin.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), held[name])
    task.executable = before
    graph(x.to_global(ONE[0], B), x.to_global(ONE[1], B))
