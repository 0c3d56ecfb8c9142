"""Pipelined training: losses, gradients and state are those of the same graph on one placement."""

import functools

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphError, MixedTensorError
from sbpjax.nn import functional as F

WIDTH, CLASSES, ROWS = 16, 8, 32
B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
ONE = [flow.placement("cpu", [r]) for r in range(4)]
GRIDS = [flow.placement("cpu", [[0, 1], [2, 3]]), flow.placement("cpu", [[4, 5], [6, 7]])]
ROWS_OF = [flow.placement("cpu", [0, 1, 2, 3]), flow.placement("cpu", [4, 5, 6, 7])]


class Block(nn.Module):
    """A residual block; with dropout and batch norm it has random numbers and state of its own."""

    def __init__(self, dropout=0.0, norm=False):
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH) if norm else nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.down(F.gelu(self.up(self.norm(x)))))


class Net(nn.Module):
    """Blocks in a row between an embedding of classes and a head, which may be the embedding again."""

    def __init__(self, blocks, tied=False, **options):
        super().__init__()
        self.embedding = nn.Embedding(CLASSES, WIDTH)
        self.blocks = nn.ModuleList([Block(**options) for _ in range(blocks)])
        self.head = None if tied else nn.Linear(WIDTH, CLASSES, bias=False)


class Train(nn.Graph):
    """`places` has a placement per block; None trains on one."""

    def __init__(self, net, places, optimizer, micro_batches, sbp=B, scheduler=None):
        super().__init__()
        self.net, self.places, self.sbp = net, places, sbp
        self.add_optimizer(optimizer, lr_sch=scheduler)
        self.config.set_gradient_accumulation_steps(micro_batches)

    def build(self, x, y):
        net = self.net
        x = net.embedding(x)
        for block, place in zip(net.blocks, self.places, strict=True):
            if place is not None:
                x = x.to_global(placement=place, sbp=self.sbp)
            x = block(x)
        weight = net.embedding.weight if net.head is None else net.head.weight
        if self.places[-1] is not None:
            weight = weight.to_global(placement=self.places[-1], sbp=None) if net.head is None else weight
        loss = F.cross_entropy(F.linear(x, weight), y)
        loss.backward()
        return loss


def lay(net, places, sbp):
    """Put every part of a net where it belongs, broadcast; return where inputs and labels go."""
    first, last = places[0], places[-1]
    everywhere = [B] * len(first.hierarchy)
    net.embedding.to_global(first, everywhere)
    for block, place in zip(net.blocks, places, strict=True):
        block.to_global(place, everywhere)
    if net.head is not None:
        net.head.to_global(last, everywhere)
    return first, last


def train(places, micro_batches, *, steps=4, sbp=B, configure=None, optimizer=None, pipelined=True, rows=ROWS, **net):
    flow.manual_seed(0)
    model = Net(len(places), **net)
    one = [places[0]] * len(places)
    first, last = lay(model, places if pipelined else one, sbp)
    made = (optimizer or (lambda p: flow.optim.AdamW(p, lr=1e-2)))(model.parameters())
    graph = Train(model, places if pipelined else [None] * len(places), made, micro_batches, sbp)
    if configure is not None:
        configure(graph)
    losses = []
    for step in range(steps):
        rng = np.random.default_rng(step)
        x = flow.tensor(rng.integers(0, CLASSES, rows)).to_global(first, sbp)
        y = flow.tensor(rng.integers(0, CLASSES, rows)).to_global(last, sbp)
        losses.append(graph(x, y).numpy().reshape(-1))
    return (
        np.concatenate([np.zeros(0, np.float32), *losses]),
        {n: t.numpy() for n, t in model.state_dict().items()},
        graph,
    )


def same(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(found[0], expected[0], rtol=tolerance)
    assert found[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        np.testing.assert_allclose(
            found[1][name], value, rtol=0, atol=tolerance * max(1.0, np.abs(value).max()), err_msg=name
        )


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


def test_without_micro_batches_it_runs_and_says_that_nothing_overlaps(caplog):
    train(ONE[:2], 1, steps=1)
    assert "2 stages work one after the other" in caplog.text


def test_batches_that_do_not_split_are_refused():
    with pytest.raises(GraphError, match="micro-batches"):
        train(ONE[:2], 5)


def test_an_op_on_two_placements_names_both():
    class Wrong(nn.Graph):
        def __init__(self, a, b):
            super().__init__()
            self.a, self.b = a, b

        def build(self, x):
            return self.a(x) + self.b.weight.sum(0)

    a, b = nn.Linear(4, 4).to_global(ONE[0], [B]), nn.Linear(4, 4).to_global(ONE[1], [B])
    with pytest.raises(MixedTensorError, match=r"(?s)ranks=\[0\].*ranks=\[1\].*fix: "):
        Wrong(a, b)(flow.ones(2, 4, placement=ONE[0], sbp=B))


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
