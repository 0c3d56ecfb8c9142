"""PyTorch's programs around processes and devices: the group's state, device names, pickled modules."""

import os
import pickletools
import subprocess
import sys
import zipfile

import pytest

import sbpjax as flow
from sbpjax._core.runtime import processes
from sbpjax._core.tensor.handle.device import local_device_number
from sbpjax.errors import PlacementError


@pytest.fixture
def torch():
    with flow.mock_torch.enable():
        import torch

        yield torch


def test_a_group_of_one_process_is_initialized_until_it_is_destroyed(torch):
    dist = torch.distributed
    assert not dist.is_initialized()
    dist.init_process_group("gloo", device_id=torch.device("cpu"))
    assert dist.is_initialized() and dist.get_world_size() == 1 and dist.get_rank() == 0
    dist.destroy_process_group()
    assert not dist.is_initialized()


def test_the_cpu_has_no_number(torch):
    assert str(torch.device("cpu")) == "cpu" and repr(torch.device("cpu")) == "device(type='cpu')"
    assert str(torch.ones(1).device) == "cpu" and torch.ones(1).device.index is None
    assert str(torch.device("cuda", 1)) == "cuda:1" and str(torch.device("cpu:1")) == "cpu:1"


def test_under_the_own_name_the_cpu_is_cpu_0():
    assert str(flow.ones(1).device) == "cpu:0" and str(flow.device("cpu")) == "cpu:0"


def test_a_number_names_an_accelerator(torch):
    for call in (lambda: torch.nn.Linear(2, 2).to(0), lambda: torch.ones(1).to(0), lambda: torch.device(0)):
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            call()


def test_numbers_of_devices_are_those_of_the_machine(monkeypatch):
    monkeypatch.setattr(processes.current(), "local_rank", 1)
    assert [local_device_number(i, 1) for i in range(3)] == [0, 0, 2]  # of one device, which is number 1
    assert [local_device_number(i, 2) for i in range(5)] == [0, 1, 0, 1, 4]


def test_names_of_gpus_can_mean_cpus():
    code = """
import sbpjax as flow
assert flow.placement("cuda", [0, 1]) == flow.placement("cpu", [0, 1]) and flow.placement.all("cuda").size == 2
with flow.mock_torch.enable():
    import torch
    assert torch.cuda.is_available() and torch.cuda.device_count() == torch.accelerator.device_count() == 2
    assert str(torch.accelerator.current_accelerator()) == "cuda" and str(torch.ones(1).cuda().device) == "cpu"
    assert torch.nn.Linear(2, 2).to(1).weight.device == torch.device("cpu:1")
    with torch.accelerator.device_index(1):
        assert torch.accelerator.current_device_index() == torch.cuda.current_device() == 1
    assert torch.distributed.init_device_mesh("cuda", (2,)).device_type == "cuda"
"""
    env = {**os.environ, "SBPJAX_CUDA": "cpu", "SBPJAX_CPU_DEVICES": "2"}
    made = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert not made.returncode, made.stderr


def test_an_absent_device_is_not_listed():
    with pytest.raises(PlacementError) as raised:
        flow.ones(1).cuda()
    rule = str(raised.value).split("rule: ")[1].splitlines()[0]
    assert "cpu (8 of them)" in rule and "cuda" not in rule and "tpu" not in rule


def test_a_saved_module_names_layers_alone(torch, tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.LSTM(3, 2))
    torch.save(model, tmp_path / "model.pt")
    with zipfile.ZipFile(tmp_path / "model.pt") as file:
        data = next(file.read(n) for n in file.namelist() if n.endswith("data.pkl"))
    names = {arg for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"}
    inner = {n for n in names if n.startswith("sbpjax") and not n.startswith("sbpjax.nn.")}
    assert not inner, inner
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    assert type(loaded._modules) is type(model._modules) and type(loaded[0]._parameters) is type(model[0]._parameters)
    assert torch.equal(loaded[0].weight, model[0].weight)
