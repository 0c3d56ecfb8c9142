"""Every optimizer and schedule in a graph: numbers and rates of eager steps, and no new program for a new rate."""

import gc
import pickle

import numpy as np
import optax
import pytest

import sbpjax as flow
from sbpjax import amp, nn, optim
from sbpjax.optim import lr_scheduler as schedules
from tests.support import graphs

STEPS = 6
BFLOAT16 = 1e-3  # gradients of bfloat16 differ by 2**-8 of themselves; clipped to 0.1, they move a weight by 0.1 in all
TOLERANCE = 1e-5  # float32; the compiled program sums in another order
LINE = flow.placement("cpu", [0, 1, 2, 3])

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
    "adamw": lambda p: optim.AdamW(p, lr=0.05),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "adadelta": lambda p: optim.Adadelta(p),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.02, momentum=0.9, centered=True, eps=1e-3),
    "lamb": lambda p: optim.LAMB(p, lr=0.05, weight_decay=0.01),
    "optax": lambda p: optim.Optax(p, optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(0.05))),
}
SCHEDULES = {
    "step": lambda o: schedules.StepLR(o, 2, 0.5),
    "warm-up": lambda o: schedules.WarmUpLR(schedules.CosineDecayLR(o, 8, 0.1), 0.1, 3),
    "cyclic": lambda o: schedules.CyclicLR(o, 0.01, 0.1, 2),
    "one-cycle": lambda o: schedules.OneCycleLR(o, 0.1, 20),
    "sequence": lambda o: schedules.SequentialLR(
        o, [schedules.ConstantLR(o), schedules.ExponentialLR(o, 0.5)], [3], True
    ),
    "chain": lambda o: schedules.ChainedScheduler(
        [schedules.LinearLR(o), schedules.MultiplicativeLR(o, lambda t: 0.9)]
    ),
}


def module(placement):
    flow.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    if placement is not None:
        net.to_global(placement, flow.sbp.broadcast)
        net[0].to_global(placement, flow.sbp.split(0))
    return net


def batches(placement):
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        x = flow.tensor(rng.standard_normal((8, 4)).astype(np.float32))
        yield x if placement is None else x.to_global(placement, flow.sbp.split(0))


class Train(graphs.Train):
    @staticmethod
    def loss(model, x):
        return (model(x) ** 2).mean()


def eager_step(net, optimizer, scheduler, x):
    loss = (net(x) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if scheduler is not None:
        scheduler.step()
    return loss


def losses(run, placement, after=lambda: None):
    found = []
    for x in batches(placement):
        found.append(run(x).item())
        after()
    return found


@pytest.mark.parametrize("placement", [None, LINE], ids=["local", "global"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_optimizers(kind, placement):
    net = module(placement)
    optimizer = OPTIMIZERS[kind](net.parameters())
    expected = losses(lambda x: eager_step(net, optimizer, None, x), placement)
    other = module(placement)
    second = OPTIMIZERS[kind](other.parameters())
    np.testing.assert_allclose(losses(Train(other, second), placement), expected, rtol=TOLERANCE)
    for a, b in zip(net.parameters(), other.parameters()):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)
        assert not a.is_global or a.sbp == b.sbp
        for name, tensor in optimizer.state[a].items():
            theirs = second.state[b][name].numpy()
            np.testing.assert_allclose(tensor.numpy(), theirs, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_schedules(kind, compilations):
    net, other = module(None), module(None)
    optimizer, second = (optim.AdamW(m.parameters(), lr=0.1) for m in (net, other))
    scheduler, schedule = SCHEDULES[kind](optimizer), SCHEDULES[kind](second)
    graph = Train(other, second, schedule=schedule)
    for i, x in enumerate(batches(None)):
        expected = eager_step(net, optimizer, scheduler, x).item()
        if i < 2:
            loss = graph(x)
        else:
            with compilations as made:
                loss = graph(x)
            assert made.count == 0
        assert loss.item() == pytest.approx(expected, rel=TOLERANCE)
        assert schedule.last_step == scheduler.last_step == i + 1
        schedule.step()
        assert schedule.get_last_lr() == scheduler.get_last_lr() == [second.param_groups[0]["lr"]]
        assert second.param_groups[0]["betas"] == optimizer.param_groups[0]["betas"]


def test_a_rate_that_the_user_writes_takes_effect(compilations):
    net = module(None)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    graph = Train(net, optimizer)
    first, second, third, *_ = batches(None)
    graph(first)
    graph(second)
    before = [p.detach().numpy().copy() for p in net.parameters()]
    optimizer.param_groups[0]["lr"] = 0.0
    with compilations as made:
        graph(third)
    assert made.count == 0
    for param, value in zip(net.parameters(), before):
        np.testing.assert_array_equal(param.detach().numpy(), value)


@pytest.mark.parametrize("placement", [None, LINE], ids=["local", "global"])
@pytest.mark.parametrize("kind", ["sgd", "optax"])
def test_an_overflow_skips_the_step_and_lowers_the_scale(kind, placement):
    net = module(placement)
    optimizer, scaler = OPTIMIZERS[kind](net.parameters()), amp.GradScaler(init_scale=64.0, growth_interval=2)
    graph = Train(net, optimizer, scaler=scaler)
    scales = []
    for i, x in enumerate(batches(placement)):
        before = [p.detach().numpy().copy() for p in net.parameters()]
        graph(x * float("inf") if i == 2 else x)
        same = [np.array_equal(p.detach().numpy(), b) for p, b in zip(net.parameters(), before)]
        assert all(same) if i == 2 else not any(same)
        scales.append(scaler.get_scale())
    assert scales == [64.0, 128.0, 64.0, 64.0, 128.0, 128.0]


def test_master_weights_sharded_state_and_clipping_together():
    results = []
    for in_graph in (False, True):
        net = module(LINE).to(flow.bfloat16)
        net[0].to_global(LINE, flow.sbp.broadcast)
        groups = [
            {"params": list(net[0].parameters()), "clip_grad_max_norm": 0.1, "clip_grad_norm_type": 2.0},
            {"params": list(net[2].parameters()), "clip_grad_max_norm": 0.05, "clip_grad_norm_type": 2.0},
        ]
        optimizer = optim.SGD(groups, lr=0.05, momentum=0.9)
        optimizer.use_master_weights()
        optimizer.prepare()
        for state in optimizer.state.values():
            for name in ("momentum_buffer", "master"):
                moved = state[name].to_global(LINE, flow.sbp.split(0))
                state[name]._set(moved._array, moved._layout)
        graph = Train(net, optimizer)
        for x in batches(LINE):
            x = x.to(flow.bfloat16)
            if in_graph:
                graph(x)
                continue
            optimizer.zero_grad()
            (net(x) ** 2).mean().backward()
            optimizer.clip_grad()
            optimizer.step()
        assert {s["master"].sbp for s in optimizer.state.values()} == {(flow.sbp.split(0),)}
        assert all(p.sbp == (flow.sbp.broadcast,) and p.dtype == flow.bfloat16 for p in net.parameters())
        results.append([optimizer.state[p]["master"].numpy() for p in net.parameters()])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, atol=BFLOAT16)


class _Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(flow.zeros(1))

    def forward(self, x):
        return (self.w * x).sum()


class _TrainLine(graphs.Train):
    @staticmethod
    def loss(model, x):
        return model(x)


def _moves(graph, model, count, before=None, after=None):
    moves = []
    for _ in range(count):
        start = model.w.item()
        if before:
            before()
        graph(flow.ones(1))
        if after:
            after()
        moves.append(start - model.w.item())
    return moves


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_step_by_hand_of_a_schedule_that_the_graph_steps_counts_once(when):
    model = _Line()
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    graph = _TrainLine(model, optimizer, schedule=schedule)
    moves = _moves(graph, model, 5, **{when: schedule.step})
    np.testing.assert_allclose(moves, [1, 1, 0.5, 0.5, 0.25], rtol=1e-6)
    assert schedule.last_step == 5
    again = pickle.loads(pickle.dumps(schedule.state_dict()))
    assert "_graph" not in again


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("kind", SCHEDULES)
def test_last_rate_after_a_graph_call_is_the_one_applied(kind, by_hand):
    """A call is ``optimizer.step()``: PyTorch shows its rate until ``schedule.step()``."""
    model, other = _Line(), _Line()
    optimizer, second = optim.SGD(model.parameters(), lr=1.0), optim.SGD(other.parameters(), lr=1.0)
    schedule, scheduler = SCHEDULES[kind](optimizer), SCHEDULES[kind](second)
    graph = _TrainLine(model, optimizer, schedule=schedule)
    for _ in range(4):
        (move,) = _moves(graph, model, 1)
        assert schedule.get_last_lr() == scheduler.get_last_lr()
        if "momentum" not in schedule.options_at(0):
            assert schedule.get_last_lr() == [pytest.approx(move, abs=1e-6)]
        scheduler.step()
        if by_hand:
            schedule.step()
            assert schedule.get_last_lr() == scheduler.get_last_lr()
    state = schedule.state_dict()
    assert state.keys() == scheduler.state_dict().keys() and state["last_lr"] == scheduler.get_last_lr()
    schedule.load_state_dict(state)
    assert schedule.get_last_lr() == scheduler.get_last_lr()


def test_a_schedule_is_stepped_by_hand_again_when_its_graph_is_gone():
    model = _Line()
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    graph = _TrainLine(model, optimizer, schedule=schedule)
    _moves(graph, model, 1)
    del graph
    gc.collect()
    schedule.step()
    assert schedule.last_step == 2 and optimizer.param_groups[0]["lr"] == 0.25


def test_lr_scale_of_a_group_multiplies_its_rate_in_graphs():
    model = _Line()
    optimizer = optim.SGD([{"params": list(model.parameters()), "lr_scale": 0.1}], lr=1.0)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    moves = _moves(_TrainLine(model, optimizer, schedule=schedule), model, 3)
    np.testing.assert_allclose(moves, [0.1, 0.05, 0.025], rtol=1e-5)
    assert optimizer.param_groups[0]["lr"] == 0.125  # the rate itself is the schedule's
    model(flow.ones(1)).backward()
    before = model.w.item()
    optimizer.step()  # an eager step does not know the option, as in OneFlow
    np.testing.assert_allclose(before - model.w.item(), 0.125, rtol=1e-5)
