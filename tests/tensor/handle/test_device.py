"""`x.device` of global tensors, as what constants are made on."""

import copy
import pickle

import numpy as np
import pytest

import sbpjax as flow

B, S0 = flow.sbp.broadcast, flow.sbp.split(0)


@pytest.fixture
def grid():
    return flow.placement("cpu", [[0, 1], [2, 3]])


def test_constants_lie_where_the_inputs_are(grid):
    x = flow.arange(8, placement=grid, sbp=[S0, B])
    for made in (
        flow.arange(8, device=x.device),
        flow.tensor(np.arange(8), device=x.device),
        flow.zeros(8, dtype=flow.int64, device=x.device) + x,
        flow.as_tensor(np.arange(8), device=x.device),
        flow.arange(8).to(x.device),
        flow.arange(8).to(device=x.device, dtype=flow.int64),
    ):
        assert made.placement == grid and made.to_local().tolist() == list(range(8))
    assert flow.arange(8, device=x.device).sbp == (B, B) == flow.arange(8).to(x.device).sbp
    assert flow.randn(4, device=x.device).placement == grid
    assert flow.full((2,), 3.0, device=flow.device(x.device)).placement == grid


def test_a_tensor_that_is_there_stays_as_it_is(grid):
    x = flow.arange(8, placement=grid, sbp=[S0, B])
    assert x.to(x.device) is x and x.to(x.device).sbp == (S0, B)
    other = flow.zeros(2, placement=flow.placement("cpu", [0, 1]), sbp=B)
    assert x.to(other.device).placement == other.placement


def test_device_is_a_value(grid):
    x, y = (flow.ones(4, placement=grid, sbp=[S0, s]) for s in (B, flow.sbp.partial_sum))
    device = x.device
    assert device == y.device and hash(device) == hash(y.device) and isinstance(device, flow.device)
    assert device != flow.ones(1).device and flow.ones(1).device != device and device != flow.device("cpu")
    assert device.type == "cpu" and device.index is None and str(device) == "cpu"
    assert repr(device) == f"device(type='cpu', placement={grid!r})"
    assert copy.deepcopy(device) == pickle.loads(pickle.dumps(device)) == device


def test_constants_inside_a_program(grid):
    def shifted(x):
        return x + flow.arange(x.shape[0], device=x.device)

    x = flow.ones(8, dtype=flow.int64, placement=grid, sbp=[S0, B])
    assert flow.compile(shifted)(x).numpy().tolist() == [1 + i for i in range(8)]


def test_gradient_comes_back_from_a_placement(grid):
    x = flow.ones(4, requires_grad=True)
    weight = flow.arange(4.0, placement=grid, sbp=[S0, B])
    (x.to(weight.device) * weight).sum().backward()
    assert x.grad.is_local and x.grad.tolist() == [0, 1, 2, 3]


def test_expand_that_repeats_nothing_can_be_written_to():
    x = flow.zeros(3)
    view = x.expand(1, 1, -1)
    view[0, 0, 1] = 5
    assert x.tolist() == [0, 5, 0] and view.shape == (1, 1, 3)
    x.expand(3).add_(1)
    assert x.tolist() == [1, 6, 1]
    with pytest.raises(RuntimeError, match="single memory location"):
        flow.zeros(1, 3).expand(2, 3).add_(1)
