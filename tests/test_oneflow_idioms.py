"""Small things that OneFlow's users do, each as it is on OneFlow 0.9."""

import copy
import gc
import importlib

import numpy as np
import pytest
import torch

import sbpjax as flow

S0 = flow.sbp.split(0)
WHERE = [{}, *({"placement": flow.placement("cpu", list(range(n))), "sbp": S0} for n in (2, 4))]


@pytest.mark.parametrize("where", WHERE, ids=["local", "2", "4"])
def test_a_copy_of_a_result_is_a_leaf_off_the_tape(where):
    w = flow.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True, **where)
    made = {"y": w * 2, "w": w}
    copied = copy.deepcopy(made)
    assert copied["y"].is_leaf and not copied["y"].requires_grad and copied["y"].grad_fn is None
    assert copied["y"].numpy().tolist() == [2.0, 4.0, 6.0, 8.0] and copied["y"].is_global == w.is_global
    assert copied["w"].requires_grad
    copied["y"] += 1
    assert made["y"].numpy().tolist() == [2.0, 4.0, 6.0, 8.0]


def test_an_optimizer_of_a_generator_that_finds_nothing():
    optimizer = flow.optim.SGD((p for p in ()), lr=0.1)
    assert [group["params"] for group in optimizer.param_groups] == [[]]
    optimizer.step()
    optimizer.zero_grad()
    with pytest.raises(ValueError, match="empty parameter list"):
        flow.optim.SGD([], lr=0.1)


@pytest.mark.parametrize("where", WHERE, ids=["local", "2", "4"])
def test_a_state_of_numpy_arrays(where):
    layer = flow.nn.Linear(2, 4)
    if where:
        layer = layer.to_global(**where)
    weight, bias = np.arange(8, dtype=np.float32).reshape(4, 2), np.ones(4, np.float32)
    assert str(layer.load_state_dict({"weight": weight, "bias": bias})) == "<All keys matched successfully>"
    assert layer.weight.numpy().tolist() == weight.tolist() and layer.weight.is_global == bool(where)
    assert layer.weight.requires_grad and layer.weight.dtype == flow.float32
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        layer.load_state_dict({"weight": weight.T, "bias": bias})
    with pytest.raises(RuntimeError, match='"bias" is a list'):
        layer.load_state_dict({"weight": weight, "bias": [1.0] * 4})


def test_a_parameter_of_integers_has_no_gradient():
    module = flow.nn.Module()
    module.steps = flow.nn.Parameter(flow.tensor([1, 2]))
    assert not module.steps.requires_grad and list(module.parameters()) == [module.steps]
    assert not flow.nn.Parameter(flow.tensor([True])).requires_grad
    assert flow.nn.Parameter(flow.tensor([1.0])).requires_grad


def test_dlpack_capsules_both_ways():
    there = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    assert flow.from_dlpack(torch.utils.dlpack.to_dlpack(there)).tolist() == there.tolist()
    here = flow.tensor([[1, 2], [3, 4]], dtype=flow.int32)
    capsule = flow.to_dlpack(here)
    assert type(capsule).__name__ == "PyCapsule"
    assert torch.utils.dlpack.from_dlpack(capsule).tolist() == here.tolist()
    assert flow.from_dlpack(flow.to_dlpack(here)).tolist() == here.tolist()
    found = flow.from_dlpack(flow.to_dlpack(flow.ones(1000)))
    gc.collect()  # the memory lives as long as the tensor over it
    assert found.sum().item() == 1000
    used = flow.to_dlpack(here)
    flow.from_dlpack(used)
    with pytest.raises(ValueError, match="PyCapsule"):
        flow.from_dlpack(used)


def test_resolutions_are_powers_of_ten():
    assert [flow.finfo(d).resolution for d in (flow.float16, flow.float32, flow.float64)] == [1e-3, 1e-6, 1e-15]


def test_the_environment_of_tests(monkeypatch):
    env = flow.unittest.env
    assert env is importlib.import_module("sbpjax.unittest.env")
    assert (env.device_num(), env.node_size(), env.world_size(), env.has_world_size()) == (1, 1, 1, True)
    assert not (env.eager_execution_enabled() or env.typing_check_enabled() or env.has_node_list())
    with pytest.raises(ValueError, match="ONEFLOW_TEST_NODE_LIST"):
        env.node_list()
    monkeypatch.setenv("ONEFLOW_TEST_NODE_LIST", "a,b")
    monkeypatch.setenv("ONEFLOW_TEST_DEVICE_NUM", "4")
    assert env.node_list() == ["a", "b"] and env.device_num() == 4


class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


@pytest.mark.parametrize(
    "error, raised", [(ValueError("boo"), ValueError), (KeyError("k"), KeyError), (Odd(1, 2), RuntimeError)]
)
def test_exceptions_that_travel(error, raised):
    wrapper = importlib.import_module("sbpjax.utils.data._utils.worker").ExceptionWrapper
    try:
        raise error
    except Exception:
        kept = wrapper(where="in a worker")
    assert kept.exc_type is type(error)
    with pytest.raises(raised, match=rf"Caught {type(error).__name__} in a worker.\nOriginal Traceback") as caught:
        kept.reraise()
    assert "raise error" in str(caught.value)


def test_the_compiled_module():
    internal = flow._oneflow_internal
    assert internal.Tensor is flow.Tensor
    assert internal.cpu_broadcast(b"abc", 0) == b"abc"


def test_the_callers_torch_is_answered_and_comes_back():
    script = """
import torch
import torch.nn as nn
real = torch
mock.enable()
answered, package, own = torch, torch.nn.__package__, torch.__package__
value = torch.ones(2)
mock.disable()
after = torch
with mock.enable():
    within = torch.ones(1)
last = torch
"""
    space = {"mock": flow.mock_torch, "__name__": "script"}
    exec(script, space)
    assert space["real"] is torch and space["after"] is torch and space["last"] is torch
    assert space["answered"] is not torch and isinstance(space["value"], flow.Tensor)
    assert isinstance(space["within"], flow.Tensor) and space["nn"] is torch.nn
    assert (space["package"], space["own"]) == ("torch.nn", "torch")


def test_other_globals_of_that_name_stay():
    space = {"mock": flow.mock_torch, "__name__": "script", "torch": 5}
    exec("mock.enable()\nkept = torch\nmock.disable()", space)
    assert space["kept"] == 5 and space["torch"] == 5


def test_spellings_of_oneflow():
    x = flow.arange(48.0).reshape(1, 12, 2, 2)
    wide = flow.nn.PixelShuffle(h_upscale_factor=3, w_upscale_factor=4)(x)
    assert wide.shape == (1, 1, 6, 8) and wide[0, 0, 0, :8].tolist() == [0.0, 4.0, 8.0, 12.0, 1.0, 5.0, 9.0, 13.0]
    with pytest.raises(ValueError, match="either upscale_factor is given"):
        flow.nn.PixelShuffle(2, h_upscale_factor=2)
    drawn = [
        flow.nn.Dropout(0.5, generator=flow.Generator().manual_seed(3))(flow.ones(64), addend=flow.ones(64))
        for _ in "ab"
    ]
    assert drawn[0].tolist() == drawn[1].tolist() and set(drawn[0].tolist()) == {1.0, 3.0}
    condition = flow.tensor([True, False])
    assert condition.where(flow.ones(2), flow.zeros(2)).tolist() == [1.0, 0.0]
    indices, counts = flow.unique(flow.tensor([3, 1, 1]), return_inverse=True, return_counts=True, dtype=flow.int32)[1:]
    assert indices.dtype == counts.dtype == flow.int32 and counts.tolist() == [2, 1]
    assert flow.argwhere(flow.tensor([0, 5]), dtype=flow.int32).dtype == flow.int32
    assert (
        flow.placement.all(device_type="cpu")
        == flow.env.all_device_placement(device_type="cpu")
        == flow.placement.all("cpu")
    )
    assert len(flow.nn.ParameterList(parameters=[flow.nn.Parameter(flow.ones(2))])) == 1
    assert flow.nn.Hardtanh(min_value=-2.0, max_value=2.0)(flow.tensor([-3.0, 3.0])).tolist() == [-2.0, 2.0]
    place = flow.placement("cpu", [0, 1])
    x = flow.ones(2).to_global(place, "B")
    assert x.to_global(place, "B") is x and x.to_global(place, "B", copy=True) is not x
    with flow.set_grad_enabled(is_train=False):
        assert not flow.is_grad_enabled()
