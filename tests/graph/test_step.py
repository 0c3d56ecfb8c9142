"""Training in a graph: the numbers of eager steps, one truth for state, clipping, loss scaling, accumulation."""

import copy

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphError, GraphTypeError
from sbpjax.nn import functional as F
from tests.support import graphs

PLACES = {"local": None, "data": ([0, 1, 2, 3], ["B"], ["S0"]), "grid": ([[0, 1], [2, 3]], ["B", "B"], ["S0", "B"])}
OPTIMIZERS = {
    "sgd": lambda p: flow.optim.SGD(p, lr=0.1),
    "momentum": lambda p: flow.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-2, nesterov=True),
    "adam": lambda p: flow.optim.Adam(p, lr=1e-2),
    "adamw": lambda p: flow.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
}
STEPS = 4
RTOL, ATOL = 2e-5, 1e-6


def network(place="local", *extra):
    flow.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), *extra, nn.Linear(16, 4))
    if PLACES[place] is not None:
        ranks, state, _ = PLACES[place]
        net.to_global(flow.placement("cpu", ranks), state)
    return net


def data(place="local", rows=16):
    rng = np.random.default_rng(0)
    x = flow.tensor(rng.normal(size=(rows, 8)).astype(np.float32))
    y = flow.tensor(rng.integers(0, 4, rows))
    if PLACES[place] is not None:
        ranks, _, sbp = PLACES[place]
        x, y = (t.to_global(flow.placement("cpu", ranks), sbp) for t in (x, y))
    return x, y


class Train(graphs.Train):
    loss = staticmethod(graphs.cross_entropy)

    def build(self, x, y):
        return super().build(x, y)


def eager_step(net, optimizer, x, y):
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    if optimizer.clips:
        optimizer.clip_grad()
    optimizer.step()
    return loss.item()


def assert_same(net, other, rtol=1e-4, atol=ATOL):
    for (name, a), b in zip(net.state_dict().items(), other.state_dict().values(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=atol, err_msg=name)


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_graph_trains_as_eager_code_does(kind, place):
    reference, net = network(), network(place)
    optimizer = OPTIMIZERS[kind](reference.parameters())
    expected = [eager_step(reference, optimizer, *data()) for _ in range(STEPS)]
    graph = Train(net, OPTIMIZERS[kind](net.parameters()))
    np.testing.assert_allclose([graph(*data(place)).item() for _ in range(STEPS)], expected, rtol=RTOL)
    assert_same(net.to_local(), reference)


@pytest.mark.parametrize("place", PLACES)
def test_eager_and_graph_steps_mix_with_one_truth(place):
    reference, net = network(), network(place)
    adam = flow.optim.Adam(reference.parameters(), lr=1e-2)
    expected = [eager_step(reference, adam, *data()) for _ in range(6)]
    optimizer = flow.optim.Adam(net.parameters(), lr=1e-2)
    graph = Train(net, optimizer)
    batch = data(place)
    got = [eager_step(net, optimizer, *batch)]
    net.zero_grad()
    got += [graph(*batch).item(), graph(*batch).item(), eager_step(net, optimizer, *batch)]
    net.zero_grad()
    got += [graph(*batch).item(), eager_step(net, optimizer, *batch)]
    np.testing.assert_allclose(got, expected, rtol=RTOL)
    assert {int(s["step"].item()) for s in optimizer.state.values()} == {6}
    assert len(graph._g.programs) == 1


def test_grads_are_left_as_they_were():
    net = network()
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.1))
    graph(*data())
    assert all(p.grad is None for p in net.parameters())
    F.cross_entropy(net(data()[0]), data()[1]).backward()
    held = [p.grad for p in net.parameters()]
    values = [g.numpy() for g in held]
    loss = graph(*data())
    assert all(p.grad is g for p, g in zip(net.parameters(), held, strict=True))
    for g, value in zip(held, values, strict=True):
        np.testing.assert_array_equal(g.numpy(), value)
    assert loss.item() > 0


@pytest.mark.parametrize("place", PLACES)
def test_batch_statistics_advance(place):
    reference, net = network("local", nn.BatchNorm1d(16)), network(place, nn.BatchNorm1d(16))
    adam = flow.optim.SGD(reference.parameters(), lr=0.1)
    for _ in range(3):
        eager_step(reference, adam, *data())
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.1))
    for _ in range(3):
        graph(*data(place))
    net.to_local()
    assert net[2].num_batches_tracked.item() == 3
    assert_same(net, reference)


def test_dropout_draws_anew_in_every_step_and_follows_the_seed():
    def run(place):
        net = network(place, nn.Dropout(0.5))
        graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.0))
        flow.manual_seed(7)
        return [graph(*data(place)).item() for _ in range(3)]

    local = run("local")
    assert len(set(local)) == 3
    for place in ("data", "grid"):
        np.testing.assert_allclose(run(place), local, rtol=RTOL)


def test_tied_weights_are_one_state():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(F.relu(self.a(x)))

    def made():
        flow.manual_seed(0)
        return Tied()

    reference, net = made(), made()
    sgd = flow.optim.SGD(reference.parameters(), lr=0.1)
    expected = [eager_step(reference, sgd, *data()) for _ in range(3)]
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.1))
    np.testing.assert_allclose([graph(*data()).item() for _ in range(3)], expected, rtol=RTOL)
    assert net.a.weight is net.b.weight
    assert len(graph.program.written) == 3 + 1  # weight, two biases, the step count


def test_a_training_and_an_evaluation_graph_share_a_model():
    net = network("local", nn.BatchNorm1d(16), nn.Dropout(0.5))
    train, evaluate = (
        Train(net, flow.optim.SGD(net.parameters(), lr=0.1)),
        graphs.graph_of(lambda model, x: model(x), net),
    )
    x, y = data()
    for _ in range(2):
        net.train()
        train(x, y)
        net.eval()
        got = evaluate(x).numpy()
        np.testing.assert_allclose(got, net(x).numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(got, evaluate(x).numpy())
    assert evaluate.program.written == []
    assert len(evaluate._g.programs) == len(train._g.programs) == 1


def test_several_optimizers_each_with_a_schedule():
    def made():
        net = network()
        first = flow.optim.SGD(net[0].parameters(), lr=0.1)
        second = flow.optim.Adam(net[2].parameters(), lr=0.01)
        return net, [(first, flow.optim.lr_scheduler.StepLR(first, 1, 0.5)), (second, None)]

    reference, pairs = made()
    for _ in range(3):
        loss = F.cross_entropy(reference(data()[0]), data()[1])
        reference.zero_grad()
        loss.backward()
        for optimizer, schedule in pairs:
            optimizer.step()
            if schedule is not None:
                schedule.step()
    net, pairs = made()
    graph = Train(net)
    for optimizer, schedule in pairs:
        graph.add_optimizer(optimizer, lr_sch=schedule)
    for _ in range(3):
        graph(*data())
    assert_same(net, reference)
    assert pairs[0][0].param_groups[0]["lr"] == pytest.approx(0.1 * 0.5**3)
    assert pairs[0][1].get_last_lr() == [pytest.approx(0.1 * 0.5**2)]  # that of the last call
    pairs[0][1].step()
    assert pairs[0][1].get_last_lr() == [pytest.approx(0.1 * 0.5**3)] and pairs[0][1].last_step == 3
    assert len(graph._g.programs) == 1


def test_a_rate_that_the_user_sets_takes_effect():
    net = network()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    graph = Train(net, optimizer)
    graph(*data())
    optimizer.param_groups[0]["lr"] = 0.0
    before = net[0].weight.numpy()
    graph(*data())
    np.testing.assert_array_equal(net[0].weight.numpy(), before)
    assert len(graph._g.programs) == 1


def test_gradients_are_clipped_per_group():
    def made():
        net = network()
        groups = [
            {"params": list(net[0].parameters()), "clip_grad_max_norm": 0.05, "clip_grad_norm_type": 2.0},
            {"params": list(net[2].parameters())},
        ]
        return net, flow.optim.SGD(groups, lr=0.5)

    reference, sgd = made()
    unclipped = network()
    for _ in range(3):
        eager_step(reference, sgd, *data())
        eager_step(unclipped, flow.optim.SGD(unclipped.parameters(), lr=0.5), *data())
    net, optimizer = made()
    graph = Train(net, optimizer)
    for _ in range(3):
        graph(*data())
    assert_same(net, reference)
    assert not np.allclose(net[0].weight.numpy(), unclipped[0].weight.numpy(), atol=1e-3)


def test_gradients_may_be_clipped_in_build():
    class Clipped(Train):
        def build(self, x, y):
            loss = super().build(x, y)
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), 0.05)
            return loss, norm

    reference, net = network(), network()
    sgd = flow.optim.SGD(reference.parameters(), lr=0.5)
    F.cross_entropy(reference(data()[0]), data()[1]).backward()
    norm = nn.utils.clip_grad_norm_(reference.parameters(), 0.05)
    sgd.step()
    _, got = Clipped(net, flow.optim.SGD(net.parameters(), lr=0.5))(*data())
    assert got.item() == pytest.approx(norm.item(), rel=1e-5)
    assert_same(net, reference)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("norm_type", [2.0, float("inf")])
@pytest.mark.parametrize("accumulate,scaled", [(1, False), (4, False), (4, True)])
def test_the_norm_of_all_gradients_is_clipped_behind_the_micro_batches(place, norm_type, accumulate, scaled):
    def made(net):
        return [flow.optim.SGD(net[i].parameters(), lr=0.5) for i in (0, 2)]

    reference, net = network(), network(place)
    optimizers, norms = made(reference), []
    for _ in range(3):
        reference.zero_grad()
        F.cross_entropy(reference(data()[0]), data()[1]).backward()
        norms.append(nn.utils.clip_grad_norm_(reference.parameters(), 0.05, norm_type).item())
        for optimizer in optimizers:
            optimizer.step()
    assert min(norms) > 0.05  # it is clipped
    scaler = flow.amp.StaticGradScaler(1024.0) if scaled else None
    graph = Train(net, *made(net), accumulate=accumulate, scaler=scaler)
    graph.config.set_clip_grad_norm(0.05, norm_type)
    for _ in range(3):
        graph(*data(place))
    assert_same(net.to_local(), reference)


# -- state that changes between calls


def test_param_data_and_new_parameters_are_seen():
    net = network()
    graph = graphs.graph_of(lambda model, x: model(x), net)
    x, _ = data()
    graph(x)
    net[0].weight.data = flow.zeros(16, 8)
    np.testing.assert_allclose(graph(x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    assert len(graph._g.programs) == 1
    net[2].weight = nn.Parameter(flow.ones(4, 16))
    net[2].bias = None
    np.testing.assert_allclose(graph(x).numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    net.half()
    assert graph(x.half()).dtype == flow.float16
    net.append(nn.ReLU())
    assert (graph(x.half()).numpy() >= 0).all()


def test_layouts_that_change_are_seen():
    net = network()
    optimizer = flow.optim.Adam(net.parameters(), lr=1e-2)
    graph = Train(net, optimizer)
    reference = copy.deepcopy(net)
    adam = flow.optim.Adam(reference.parameters(), lr=1e-2)
    expected = [eager_step(reference, adam, *data()) for _ in range(3)]
    got = [graph(*data()).item()]
    place = flow.placement("cpu", [0, 1, 2, 3])
    net.to_global(place, "B")
    got.append(graph(*data("data")).item())
    net[0].weight.data = net[0].weight.data.to_global(sbp="S0")
    got.append(graph(*data("data")).item())
    np.testing.assert_allclose(got, expected, rtol=RTOL)
    assert net[0].weight.sbp == (flow.sbp.split(0),)


def test_frozen_parameters_are_seen():
    net = network()
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.1))
    graph(*data())
    net[0].requires_grad_(False)
    before = net[0].weight.numpy()
    graph(*data())
    np.testing.assert_array_equal(net[0].weight.numpy(), before)


def test_an_optimizer_of_a_parameter_that_was_replaced_is_refused():
    net = network()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    graph = Train(net, optimizer)
    graph(*data())
    net[0].weight = nn.Parameter(flow.zeros(16, 8))
    with pytest.raises(GraphError, match=r"(?s)model.0.weight.*no longer.*fix: "):
        graph(*data())


def test_an_optimizer_of_another_model_is_warned_of():
    net, other = network(), network()
    graph = Train(net, flow.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1))
    before = other[0].weight.numpy().copy()
    with pytest.warns(
        UserWarning, match=r"(?s)add_optimizer\(SGD\).*4 of 8 parameters, such as float32\[16, 8\].*fix:"
    ):
        graph(*data())
    graph(*data())  # said once
    np.testing.assert_array_equal(other[0].weight.numpy(), before)


# -- donation


@pytest.mark.parametrize("place", PLACES)
def test_a_step_holds_no_second_copy_of_parameters_and_optimizer_state(place):
    net = network(place)
    optimizer = flow.optim.Adam(net.parameters(), lr=1e-2)
    graph = Train(net, optimizer)
    graph(*data(place))
    state = sum(t.numel() * t.element_size() for t in [*net.parameters(), *optimizer.state_tensors()])
    memory = graph.program.compile().memory_analysis()
    assert memory.alias_size_in_bytes == state
    pointers = 8 * (len(graph.program.written) + 1)
    assert memory.output_size_in_bytes - memory.alias_size_in_bytes == 4 + pointers  # the loss, and the result's table


def test_what_shares_an_array_with_a_parameter_survives():
    net = network()
    graph = Train(net, flow.optim.Adam(net.parameters(), lr=0.1))
    graph(*data())
    twin, kept, alias = copy.deepcopy(net), net[0].weight.numpy(), net[0].weight.detach()
    state = net.state_dict()
    graph(*data())
    np.testing.assert_array_equal(twin[0].weight.numpy(), kept)
    np.testing.assert_array_equal(alias.numpy(), net[0].weight.numpy())
    np.testing.assert_array_equal(state["0.weight"].numpy(), net[0].weight.numpy())


# -- loss scaling


def test_a_step_whose_gradients_overflow_is_left_out():
    reference, net = network(), network()
    sgd = flow.optim.SGD(reference.parameters(), lr=0.1, momentum=0.9)
    scaler = flow.amp.GradScaler(init_scale=1024.0, growth_interval=2)
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), scaler=scaler)
    x, y = data()
    graph(x, y)
    eager_step(reference, sgd, x, y)
    assert_same(net, reference)
    assert scaler.get_scale() == 1024.0
    graph(x * float("inf"), y)
    assert_same(net, reference)
    assert scaler.get_scale() == 512.0
    for _ in range(2):
        graph(x, y)
        eager_step(reference, sgd, x, y)
    assert_same(net, reference)
    assert scaler.get_scale() == 1024.0
    assert len(graph._g.programs) == 1


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("accumulate", [1, 4])
def test_a_scaled_loss_gives_the_same_steps(place, accumulate):
    reference, net = network(), network(place)
    sgd = flow.optim.SGD(reference.parameters(), lr=0.1)
    scaler = flow.amp.StaticGradScaler(4096.0)
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.1), scaler=scaler, accumulate=accumulate)
    for _ in range(2):
        graph(*data(place))
        eager_step(reference, sgd, *data())
    assert_same(net.to_local(), reference)


# -- accumulation


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("place", PLACES)
def test_accumulated_gradients_are_the_mean(place, count):
    reference, net = network(), network(place)
    adam = flow.optim.Adam(reference.parameters(), lr=1e-2)
    graph = Train(net, flow.optim.Adam(net.parameters(), lr=1e-2), accumulate=count)
    for _ in range(3):
        expected = eager_step(reference, adam, *data(rows=32))
        losses = graph(*data(place, rows=32))
        assert tuple(losses.shape) == ((count,) if count > 1 else ())
        np.testing.assert_allclose(losses.mean().item(), expected, rtol=RTOL)
    assert_same(net.to_local(), reference)


@pytest.mark.parametrize("place", PLACES)
def test_micro_batches_are_contiguous_and_outputs_come_as_of_the_whole_batch(place):
    class Outputs(nn.Graph):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.config.set_gradient_accumulation_steps(4)

        def build(self, x, y, offset, note="n"):
            out = self.net(x)
            return {"out": out, "first": y[:1], "sum": (y.sum() + offset,), "note": note, "none": None}

    net = network(place)
    x, y = data(place)
    out = Outputs(net)(x, y, flow.tensor(1), note="m")
    np.testing.assert_allclose(out["out"].numpy(), net(x).numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(out["first"].numpy(), y.numpy()[::4])
    np.testing.assert_array_equal(out["sum"][0].numpy(), y.numpy().reshape(4, 4).sum(1) + 1)
    assert out["note"] == "m" and out["none"] is None


@pytest.mark.parametrize("place", PLACES)
def test_batch_statistics_advance_once_per_micro_batch(place):
    reference, net = network("local", nn.BatchNorm1d(16)), network(place, nn.BatchNorm1d(16))
    x, y = data()
    for part in range(4):
        F.cross_entropy(reference(x[part * 4 : part * 4 + 4]), y[part * 4 : part * 4 + 4])
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.0), accumulate=4)
    graph(*data(place))
    net.to_local()
    assert net[2].num_batches_tracked.item() == 4
    np.testing.assert_allclose(net[2].running_mean.numpy(), reference[2].running_mean.numpy(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(net[2].running_var.numpy(), reference[2].running_var.numpy(), rtol=1e-5)


def test_every_micro_batch_draws_its_own_numbers():
    flow.manual_seed(3)
    graph, x = graphs.graph_of(lambda x: F.dropout(x, 0.5)), flow.ones(4, 64)
    graph.config.set_gradient_accumulation_steps(4)
    first, second = graph(x).numpy(), graph(x).numpy()
    assert len({row.tobytes() for row in np.concatenate([first, second])}) == 8
    flow.manual_seed(3)
    np.testing.assert_array_equal(graph(x).numpy(), first)
    flow.manual_seed(3)
    split = graph(x.to_global(flow.placement("cpu", [0, 1, 2, 3]), "S1"))
    np.testing.assert_array_equal(split.numpy(), first)


def test_batches_that_do_not_split_are_refused():
    net = network()
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.1), accumulate=3)
    with pytest.raises(GraphError, match=r"(?s)steps=3.*x: float32\[16, 8\], y: int64\[16\].*16 = 5 · 3 \+ 1.*fix: "):
        graph(*data())
    graph(*data(rows=18))


@pytest.mark.parametrize("count", [2, 8])
def test_gradients_are_reduced_once_behind_the_loop(count):
    from sbpjax._core.compiler import hlo

    net = network("data")
    graph = Train(net, flow.optim.SGD(net.parameters(), lr=0.1), accumulate=count)
    graph.compile(*data("data", rows=512))
    sizes = {p.numel() for p in net.parameters()}
    reduced = [
        c for c in hlo.collectives(graph.program.compile().as_text()) if c.kind in ("all-reduce", "reduce-scatter")
    ]
    assert reduced
    plan = graph.program.plan
    reductions = [b for b in plan.boxings if any(s.kind in ("psum", "psum_scatter") for s in b.steps)]
    assert {b.times for b in reductions} == {1}
    assert sum(np.prod(b.shape) for b in reductions if np.prod(b.shape) in sizes) == sum(
        p.numel() for p in net.parameters()
    )


# -- mistakes


def test_stepping_in_build_is_refused():
    class Twice(Train):
        def build(self, x, y):
            loss = super().build(x, y)
            optimizer.step()
            return loss

    net = network()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(GraphError, match=r"(?s)SGD.step\(\) inside Twice.build.*second step"):
        Twice(net, optimizer)(*data())


def test_optimizers_and_schedules_that_do_not_fit():
    net = network()
    graph = Train(net)
    sgd, other = (flow.optim.SGD(net.parameters(), lr=0.1) for _ in range(2))
    with pytest.raises(GraphTypeError, match="a Linear"):
        graph.add_optimizer(net[0])
    with pytest.raises(GraphTypeError, match="lr_sch"):
        graph.add_optimizer(sgd, lr_sch=0.1)
    with pytest.raises(GraphError, match="a schedule of another optimizer"):
        graph.add_optimizer(sgd, lr_sch=flow.optim.lr_scheduler.StepLR(other, 1))
    graph.add_optimizer(sgd)
    with pytest.raises(GraphError, match="updated by one optimizer"):
        graph.add_optimizer(other)
    with pytest.raises(GraphTypeError, match="fix:  sbpjax.amp.GradScaler"):
        graph.set_grad_scaler(2.0)


def test_sparse_updates_leave_rows_without_gradient_alone():
    net = nn.Embedding(10, 4)
    optimizer = flow.optim.Adam(net.parameters(), lr=0.1)

    graph = graphs.graph_of(lambda net, ids: net(ids).sum().backward(), net)
    graph.add_optimizer(optimizer, is_sparse=True)
    graph(flow.tensor([1, 2]))
    before = net.weight.numpy()
    graph(flow.tensor([5]))
    changed = (net.weight.numpy() != before).any(1)
    assert changed.nonzero()[0].tolist() == [5]


def test_a_schedule_that_follows_a_metric_is_stepped_by_the_user():
    net = network()
    optimizer = flow.optim.SGD(net.parameters(), lr=0.1)
    schedule = flow.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    graph = Train(net, optimizer, schedule=schedule)
    graph(*data())
    assert optimizer.param_groups[0]["lr"] == 0.1
    for _ in range(2):
        schedule.step(1.0)
    assert optimizer.param_groups[0]["lr"] == 0.05
    graph(*data())
    assert len(graph._g.programs) == 1


@pytest.mark.parametrize("count", [1, 2])
def test_a_graph_with_an_optimizer_and_without_backward_is_an_error(count):
    model = nn.Linear(2, 2)
    model(flow.ones(2, 2)).sum().backward()  # a gradient from before is no training either
    graph = graphs.graph_of(lambda model, x: model(x).sum(), model)
    graph.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))
    graph.config.set_gradient_accumulation_steps(count)
    with pytest.raises(GraphError, match=r"(?s)add_optimizer\(SGD\).*calls backward\(\).*fix:.*loss.backward"):
        graph(flow.ones(2, 2))
