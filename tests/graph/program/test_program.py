"""What a traced program returns, and what it does to its arguments."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.nn import functional as F
from tests.support.graphs import graph_of

LINE = flow.placement("cpu", [0, 1, 2, 3])
GRID = flow.placement("cpu", [[0, 1], [2, 3]])
OTHER = flow.placement("cpu", [4, 5])
S0, S1, B, P = flow.sbp.split(0), flow.sbp.split(1), flow.sbp.broadcast, flow.sbp.partial_sum


# -- new tensors -----------------------------------------------------------------------------------------------------

MADE = {
    "ones": lambda **where: flow.ones(8, **where),
    "zeros": lambda **where: flow.zeros(8, 2, **where),
    "empty": lambda **where: flow.empty(8, **where),
    "full": lambda **where: flow.full((8,), 2.0, **where),
    "eye": lambda **where: flow.eye(8, **where),
    "arange": lambda **where: flow.arange(8, **where),
    "linspace": lambda **where: flow.linspace(0, 1, 8, **where),
    "tensor": lambda **where: flow.tensor([1.0, 2.0, 3.0, 4.0], **where),
    "randn": lambda **where: flow.randn(8, **where),
    "rand": lambda **where: flow.rand(8, **where),
    "randint": lambda **where: flow.randint(0, 5, (8,), **where),
    "randperm": lambda **where: flow.randperm(8, **where),
}


@pytest.mark.parametrize("inputs", ["global", "local", "none"])
def test_tensors_made_in_build_stay_global(inputs):
    """Also where nothing that the graph is given is global."""
    given = {"global": [flow.ones(4, placement=LINE, sbp=S0)], "local": [flow.ones(4)], "none": []}[inputs]
    kinds = [(name, sbp) for name in MADE for sbp in (S0, B)]
    flow.manual_seed(3)
    outs = graph_of(lambda *_: [MADE[name](placement=LINE, sbp=sbp) for name, sbp in kinds])(*given)
    assert [(o.is_global, o.placement, o.sbp) for o in outs] == [(True, LINE, (sbp,)) for _, sbp in kinds]
    for (name, _), out in zip(kinds, outs):
        if not name.startswith("rand"):
            np.testing.assert_array_equal(out.numpy(), MADE[name]().numpy())


def test_a_partial_sum_made_in_build_is_returned_as_one():
    out = graph_of(lambda x: flow.ones(8, placement=LINE, sbp=P))(flow.ones(4, placement=LINE, sbp=S0))
    assert out.sbp == (P,) and out.numpy().tolist() == [1.0] * 8


def test_a_graph_of_local_inputs_returns_local_and_global_results():
    x = flow.arange(4.0)
    doubled, moved = graph_of(lambda x: (x * 2, (x * 3).to_global(placement=LINE, sbp=S0)))(x)
    assert doubled.is_local and doubled.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert moved.sbp == (S0,) and moved.numpy().tolist() == [0.0, 3.0, 6.0, 9.0]


def test_a_local_model_trains_in_a_graph_whose_loss_is_global():
    class Train(nn.Graph):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.add_optimizer(flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))

        def build(self, x, everywhere):
            loss = self.net(x).square().mean()
            loss.backward()
            return loss.to_global(placement=LINE, sbp=B) if everywhere else loss

    x, found = flow.arange(12.0).reshape(4, 3), []
    for everywhere in (True, False):
        flow.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        train = Train(net)
        losses = [train(x, everywhere) for _ in range(3)]
        assert [loss.is_global for loss in losses] == [everywhere] * 3
        assert net[0].weight.is_local and net[1].running_mean.is_local
        found.append([*(loss.item() for loss in losses), *net[0].weight.flatten().tolist()])
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("place, sbp", [(GRID, (S0, B)), (OTHER, (S1,)), (OTHER, None)])
def test_a_result_on_another_placement_lies_there(place, sbp):
    x = flow.arange(16.0).reshape(4, 4).to_global(LINE, S0)
    out = graph_of(lambda x: (x * 2).to_global(placement=place, sbp=sbp))(x)
    assert out.placement == place and (sbp is None or out.sbp == sbp)
    np.testing.assert_array_equal(out.numpy(), x.numpy() * 2)


# -- arguments -------------------------------------------------------------------------------------------------------


def _iadd(x):
    x += 1
    return x


WRITTEN = {
    "+=": _iadd,
    "add_": lambda x: x.add_(1),
    "sub_": lambda x: x.sub_(1),
    "mul_": lambda x: x.mul_(2),
    "div_": lambda x: x.div_(2),
    "clamp_": lambda x: x.clamp_(0, 0.5),
    "fill_": lambda x: x.fill_(3.0),
    "relu_": lambda x: F.relu(x - 0.5, inplace=True),
    "view": lambda x: (x[0].mul_(5.0), x)[1],
    "setitem": lambda x: (x.__setitem__(0, 5.0), x)[1],
}


@pytest.mark.parametrize("place", ["local", "global"])
@pytest.mark.parametrize("steps", [1, 2])
def test_build_writes_to_copies_of_its_arguments(place, steps):
    """As in OneFlow 0.9: what build computes goes on with the new value, the caller's tensor stays as it was."""

    class Written(nn.Graph):
        def __init__(self):
            super().__init__()
            self.config.set_gradient_accumulation_steps(steps)

        def build(self, *tensors):
            return [write(x) for write, x in zip(WRITTEN.values(), tensors)]

    def arguments():
        made = [flow.ones(8, 4) for _ in WRITTEN]
        return made if place == "local" else [x.to_global(LINE, S0) for x in made]

    given = arguments()
    for got, (name, write), x in zip(Written()(*given), WRITTEN.items(), given):
        assert x.numpy().tolist() == np.ones((8, 4)).tolist(), name
        if steps == 1 or name not in ("view", "setitem"):  # each micro-batch has a first row
            np.testing.assert_array_equal(got.numpy(), write(arguments()[0]).numpy(), err_msg=name)


# -- layers and tensors made in build --------------------------------------------------------------------------------


def test_a_module_with_a_device_is_made_in_build():
    class Made(nn.Module):
        def forward(self, x):
            layer = nn.Linear(3, 2, device="cpu")
            layer.weight.data.fill_(1.0)
            layer.bias.data.fill_(0.5)
            return layer(x)

    assert graph_of(lambda m, x: m(x), Made())(flow.ones(4, 3)).numpy().tolist() == [[3.5, 3.5]] * 4


MOVED = {
    "tensor": lambda x: x + flow.tensor([1.0, 2.0, 3.0]).to("cpu"),
    "tensor alone": lambda x: flow.tensor([1.0, 2.0, 3.0]).to("cpu"),
    "cpu()": lambda x: x + flow.tensor([1.0, 2.0, 3.0]).cpu(),
    "device of x": lambda x: x + flow.tensor([1.0, 2.0, 3.0], device=x.device).to(x.device),
    "ones": lambda x: x + flow.ones(3, device="cpu").to(flow.device("cpu")),
    "x": lambda x: (x * 2).to("cpu") + 1,
    "dtype too": lambda x: x + flow.tensor([1, 2, 3]).to("cpu", flow.float32),
}


@pytest.mark.parametrize("place", ["local", "global"])
def test_to_a_device_in_build(place):
    def laid(out):
        return out if out.is_local or out.is_global else None

    x = flow.ones(4, 3) if place == "local" else flow.ones(4, 3, placement=LINE, sbp=S0)
    cases = MOVED if place == "local" else {name: MOVED[name] for name in ("tensor alone", "device of x", "x")}
    for name, fn in cases.items():
        np.testing.assert_array_equal(laid(graph_of(fn)(x)).numpy(), fn(x).numpy(), err_msg=name)


# -- functional batch norm -------------------------------------------------------------------------------------------


class Statistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", flow.zeros(3))
        self.register_buffer("var", flow.ones(3))

    def forward(self, x):
        return F.batch_norm(x, self.mean, self.var, training=True, momentum=0.1, eps=1e-5)


@pytest.mark.parametrize("place", ["local", "global"])
def test_functional_batch_norm_moves_the_buffers_of_a_module(place):
    """Real OneFlow 0.9 gives these numbers."""
    module, x = Statistics(), flow.arange(24.0).reshape(8, 3)
    if place == "global":
        module, x = module.to_global(LINE, B), x.to_global(LINE, S0)
    graph = graph_of(lambda m, x: m(x), module)
    graph(x), graph(x)
    np.testing.assert_allclose(module.mean.numpy(), [1.995, 2.185, 2.375], rtol=1e-5)
    np.testing.assert_allclose(module.var.numpy(), [11.07] * 3, rtol=1e-5)


def test_functional_batch_norm_leaves_statistics_that_are_arguments():
    """They are arguments as any."""
    mean, var, x = flow.zeros(3), flow.ones(3), flow.arange(24.0).reshape(8, 3)
    graph_of(lambda x, mean, var: F.batch_norm(x, mean, var, training=True))(x, mean, var)
    assert mean.tolist() == [0.0] * 3 and var.tolist() == [1.0] * 3
