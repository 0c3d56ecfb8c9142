"""A graph's state: complete, loadable any time, bit-exact on resume, refused as a whole if any part does not fit."""

import copy

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import StateDictError
from sbpjax.nn import functional as F

KEYS = {"net", "graph.optimizers", "graph.lr_schedulers", "graph.rng"}


class Train(nn.Graph):
    def __init__(self, *, place=None, accumulate=1, scaler=None):
        super().__init__()
        flow.manual_seed(0)
        net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 4))
        if place is not None:
            net.to_global(place, "B")
        optimizer = flow.optim.AdamW(net.parameters(), lr=1e-2)
        self.net = net
        self.add_optimizer(optimizer, lr_sch=flow.optim.lr_scheduler.StepLR(optimizer, 2, 0.5))
        self.config.set_gradient_accumulation_steps(accumulate)
        self.set_grad_scaler(scaler)
        object.__setattr__(self, "optimizer", optimizer)

    def build(self, x, y):
        loss = F.cross_entropy(self.net(x), y)
        loss.backward()
        return loss


def batch(place=None):
    rng = np.random.default_rng(0)
    x, y = flow.tensor(rng.normal(size=(16, 8)).astype(np.float32)), flow.tensor(rng.integers(0, 4, 16))
    return (x, y) if place is None else (x.to_global(place, "S0"), y.to_global(place, "S0"))


PLACE = flow.placement("cpu", [0, 1, 2, 3])


@pytest.mark.parametrize("warm", [False, True], ids=["before the first call", "after it"])
@pytest.mark.parametrize("options", [{}, {"accumulate": 4}, {"place": PLACE}], ids=["local", "accumulated", "global"])
def test_resume_is_bit_exact_with_dropout(options, warm, tmp_path):
    place = options.get("place")
    graph = Train(**options)
    for _ in range(3):
        graph(*batch(place))
    state = copy.deepcopy(graph.state_dict())
    if place is None:
        flow.save(state, tmp_path / "state")
        state = flow.load(tmp_path / "state")
    expected = [graph(*batch(place)).numpy() for _ in range(3)]
    flow.manual_seed(99)
    other = Train(**options)
    if warm:
        other(*batch(place))
    other.load_state_dict(state)
    assert other.optimizer.param_groups[0]["lr"] == pytest.approx(1e-2 * 0.5)
    got = [other(*batch(place)).numpy() for _ in range(3)]
    np.testing.assert_array_equal(got, expected)
    for (name, a), b in zip(graph.net.state_dict().items(), other.net.state_dict().values(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=name)
    assert other.optimizer.param_groups[0]["lr"] == graph.optimizer.param_groups[0]["lr"]


def test_keys_and_what_they_hold():
    graph = Train(scaler=flow.amp.GradScaler(init_scale=8.0))
    assert set(graph.state_dict()) == KEYS | {"graph.grad_scaler"}
    graph(*batch())
    state = graph.state_dict()
    assert list(state["net"]) == list(graph.net.state_dict())
    assert state["graph.optimizers"][0]["state"][0]["step"].item() == 1
    assert state["graph.lr_schedulers"][0]["last_step"] == 1
    assert state["graph.grad_scaler"]["scale"] == 8.0
    assert state["graph.rng"].tolist() == flow.get_rng_state().tolist()
    into = {}
    assert graph.state_dict(into) is into and set(into) == set(state)


def test_a_loss_scale_is_resumed():
    graph = Train(scaler=flow.amp.GradScaler(init_scale=8.0, growth_interval=2))
    for _ in range(3):
        graph(*batch())
    state = copy.deepcopy(graph.state_dict())
    other = Train(scaler=flow.amp.GradScaler())
    other.load_state_dict(state)
    expected, got = [], []
    for g, into in ((graph, expected), (other, got)):
        flow.set_rng_state(state["graph.rng"])
        for _ in range(2):
            into += [g(*batch()).item(), g._g.scaler.get_scale()]
    assert got == expected and got[-1] == 32.0


def spoiled(name):
    state = copy.deepcopy(Train().state_dict())
    if name == "unknown key":
        state["other"] = {}
    elif name == "missing key":
        del state["graph.rng"]
    elif name == "unknown parameter":
        state["net"]["5.weight"] = flow.ones(1)
    elif name == "missing parameter":
        del state["net"]["0.weight"]
    elif name == "parameter shape":
        state["net"]["3.bias"] = flow.ones(5)
    elif name == "optimizer count":
        state["graph.optimizers"] = []
    elif name == "optimizer groups":
        state["graph.optimizers"][0]["param_groups"] *= 2
    elif name == "optimizer shape":
        graph = Train()
        graph(*batch())
        state["graph.optimizers"] = copy.deepcopy(graph.state_dict()["graph.optimizers"])
        state["graph.optimizers"][0]["state"][0]["exp_avg"] = flow.ones(3)
    elif name == "random state":
        state["graph.rng"] = flow.tensor([1, 2, 3])
    return state


SPOILED = (
    "unknown key,missing key,unknown parameter,missing parameter,parameter shape,optimizer count,optimizer groups,"
    "optimizer shape,random state"
)


@pytest.mark.parametrize("name", SPOILED.split(","))
def test_a_state_that_does_not_fit_is_refused_and_nothing_is_loaded(name):
    graph, state = Train(), spoiled(name)
    graph(*batch())
    for tensor in state["net"].values():
        if tensor.is_floating_point():
            tensor.add_(1.0)
    before = copy.deepcopy(graph.state_dict())
    rng = flow.get_rng_state().tolist()
    with pytest.raises(StateDictError, match=r"(?s)rule: .*fix: "):
        graph.load_state_dict(state)
    assert flow.get_rng_state().tolist() == rng
    after = graph.state_dict()
    for key, tensor in before["net"].items():
        np.testing.assert_array_equal(after["net"][key].numpy(), tensor.numpy(), err_msg=key)
    for i, tensors in before["graph.optimizers"][0]["state"].items():
        for key, tensor in tensors.items():
            np.testing.assert_array_equal(after["graph.optimizers"][0]["state"][i][key].numpy(), tensor.numpy())
    assert after["graph.lr_schedulers"][0]["last_step"] == 1
    graph(*batch())


def test_not_strict_takes_what_is_there():
    state = copy.deepcopy(Train().state_dict())
    del state["graph.rng"]
    del state["net"]["0.weight"]
    state["other"] = 3
    state["net"]["3.bias"].fill_(5.0)
    graph = Train()
    graph.load_state_dict(state, strict=False)
    assert graph.net[3].bias.tolist() == [5.0] * 4


def test_no_dict():
    with pytest.raises(StateDictError, match="a list"):
        Train().load_state_dict([])
