"""The summary of a model: every module with its result, its parameters, how they lie, and their bytes on a device."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import GraphTypeError
from sbpjax.graph import TensorSpec


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 16)
        self.body = nn.Sequential(nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.5))
        self.down = nn.Linear(16, 8, bias=False)
        self.again = self.up

    def forward(self, x, scale=1.0):
        y = self.down(self.body(self.up(x)))
        return self.up(y) * scale, y.sum()


def rows(found):
    return {row.name: row for row in found.rows}


def test_a_model_on_one_device():
    net = Net()
    net.down.weight.requires_grad_(False)
    found = flow.summary(net, flow.ones(4, 8), scale=2.0)
    by_name = rows(found)
    assert list(by_name)[:4] == ["", "up", "up.weight", "up.bias"]
    assert by_name[""].shapes == ("float32[4, 16]", "float32[]") and by_name[""].sbps == ()
    assert by_name["up"].note == "× 2" and by_name["up"].parameters == 16 * 8 + 16
    assert by_name["again"].note == "shared" and by_name["again"].parameters == 0
    assert by_name["body.0.running_mean"].kind == "buffer" and by_name["body.0.running_mean"].bytes == 16 * 4
    assert by_name["down.weight"].note == "frozen"
    assert found.parameters == sum(p.numel() for p in net.parameters()) == 304
    assert found.trained == found.parameters - 128
    assert found.bytes == sum(t.numel() * t.element_size() for t in (*net.parameters(), *net.buffers()))


def test_bytes_are_of_one_device_and_sbps_of_results():
    place = flow.placement("cpu", [[0, 1], [2, 3]])
    net = nn.Sequential(nn.Linear(8, 6), nn.ReLU()).to_global(place, ["B", "S0"])
    found = flow.summary(net, TensorSpec((4, 8), placement=place, sbp=["S0", "B"]))
    by_name = rows(found)
    assert by_name["0.weight"].bytes == 3 * 8 * 4 and by_name["0.bias"].bytes == 3 * 4
    assert by_name["0"].sbps == by_name["1"].sbps == by_name[""].sbps == ("S0,S1",)
    assert by_name["0.weight"].sbps == ("B,S0",)
    real = net(flow.ones(4, 8, placement=place, sbp=["S0", "B"]))
    assert [str(s) for s in real.sbp] == ["sbpjax.sbp.split(dim=0)", "sbpjax.sbp.split(dim=1)"]
    uneven = nn.Linear(2, 5).to_global(flow.placement("cpu", [0, 1]), "S0")
    assert rows(flow.summary(uneven))["weight"].bytes == 3 * 2 * 4  # padded to 6 rows


def test_the_model_stays_as_it_was():
    net = Net().train()
    net.body[1].eval()
    state = {name: value.numpy().copy() for name, value in net.state_dict().items()}
    random = flow.get_rng_state().numpy()
    x = flow.ones(4, 8, requires_grad=True)
    flow.summary(net, x)
    with pytest.raises(ValueError, match="forward fails"):
        net.down.forward = lambda y: (_ for _ in ()).throw(ValueError("forward fails"))
        flow.summary(net, x)
    assert net.training and net.body[0].training and not net.body[1].training
    assert not any(module._forward_hooks for module in net.modules())
    assert np.array_equal(flow.get_rng_state().numpy(), random) and x.grad is None
    for name, value in net.state_dict().items():
        assert np.array_equal(value.numpy(), state[name])


def test_what_the_forward_writes_is_undone():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", flow.zeros(()))

        def forward(self, x):
            self.calls.add_(x.sum())
            return x

    net = Counts()
    flow.summary(net, flow.ones(3))
    assert net.calls.item() == 0
    net(flow.ones(3))
    assert net.calls.item() == 3


def test_a_model_without_data():
    with flow.abstract():
        net = nn.Linear(100_000, 100_000)
    found = flow.summary(net, TensorSpec((8, 100_000), flow.float32))
    assert found.bytes == 4 * 100_000 * 100_001 and "40.0 GB" in str(found)


def test_text_and_html():
    found = flow.summary(nn.Sequential(nn.Linear(2, 3)))
    assert str(found).splitlines() == [
        "Sequential on one device",
        "",
        "            kind        shape          sbp  parameters  bytes per device",
        "(model)     Sequential                               9              36 B",
        "  0         Linear                                   9              36 B",
        "    weight  parameter   float32[3, 2]                6              24 B",
        "    bias    parameter   float32[3]                   3              12 B",
        "",
        "9 parameters, 9 of them trained; 36 B of parameters and buffers per device",
    ]
    page = nn.Sequential(nn.Linear(2, 3))._repr_html_()
    assert page == found._repr_html_()
    assert "<tr class=b><td>&nbsp;&nbsp;&nbsp;&nbsp;weight</td><td>parameter</td><td>float32[3, 2]</td>" in page


def test_what_is_no_module():
    with pytest.raises(GraphTypeError, match=r"(?s)summary\(model, ...\).*seen: a Tensor.*an nn.Module"):
        flow.summary(flow.ones(3))
