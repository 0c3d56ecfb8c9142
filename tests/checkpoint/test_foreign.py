"""safetensors, Hugging Face directories and PyTorch's files."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import safetensors.numpy
import torch

import sbpjax as flow
from sbpjax import checkpoint, errors

WHERE = flow.placement("cpu", [[0, 1], [2, 3]])
STATE = {
    "h.0.weight": np.arange(35, dtype=np.float32).reshape(7, 5),
    "h.0.bias": np.arange(5, dtype=np.float16),
    "count": np.array(3, np.int64),
    "mask": np.array([True, False, True]),
    "nothing": np.zeros((0, 4), np.float32),
}


@pytest.fixture
def path(tmp_path):
    safetensors.numpy.save_file(STATE, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize("sbp", [[flow.sbp.split(0), flow.sbp.split(1)], flow.sbp.broadcast, flow.sbp.partial_sum])
def test_safetensors_into_any_layout(path, sbp):
    for name, x in checkpoint.load_safetensors(path, placement=WHERE, sbp=sbp).items():
        assert x.placement == WHERE and x.numpy().dtype == STATE[name].dtype
        np.testing.assert_array_equal(x.numpy(), STATE[name])
    for name, x in checkpoint.load_safetensors(path).items():
        assert x.is_local
        np.testing.assert_array_equal(x.numpy(), STATE[name])


def test_safetensors_out_is_read_by_the_format_s_own_library(tmp_path):
    state = {
        "a": flow.arange(12, placement=WHERE, sbp=[flow.sbp.split(0), flow.sbp.broadcast]).reshape(4, 3),
        "b": flow.tensor([1.5, -2.0]).bfloat16(),
        "c": flow.tensor(True),
    }
    checkpoint.save_safetensors(state, tmp_path / "x.safetensors", {"made by": "a test"})
    read = torch_read(tmp_path / "x.safetensors")
    assert read["a"].tolist() == state["a"].numpy().tolist() and read["c"].item() is True
    assert read["b"].dtype == torch.bfloat16 and read["b"].tolist() == [1.5, -2.0]
    again = checkpoint.load_safetensors(tmp_path / "x.safetensors")
    assert again["b"].dtype == flow.bfloat16 and again["b"].float().tolist() == [1.5, -2.0]
    assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]
    with pytest.raises(errors.CheckpointError, match="complex128"):
        checkpoint.save_safetensors({"z": flow.ones(1, dtype=flow.complex128)}, tmp_path / "y")


def torch_read(path):
    import safetensors.torch

    return safetensors.torch.load_file(path)


def test_hugging_face_directory_by_name_map(tmp_path):
    safetensors.numpy.save_file({"h.0.weight": STATE["h.0.weight"]}, tmp_path / "model-1.safetensors")
    safetensors.numpy.save_file({"h.0.bias": STATE["h.0.bias"], "x": np.ones(1)}, tmp_path / "model-2.safetensors")
    files = {"h.0.weight": "model-1.safetensors", "h.0.bias": "model-2.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    model = flow.nn.ModuleDict({"layers": flow.nn.ModuleList([flow.nn.Linear(5, 7)])})
    model["layers"].append(flow.nn.Linear(1, 1))
    into = {k: v for k, v in model.state_dict().items() if k == "layers.0.weight"}
    checkpoint.load_safetensors(tmp_path, into=into, names=[(r"^h\.", "layers.")])
    np.testing.assert_array_equal(model["layers"][0].weight.detach().numpy(), STATE["h.0.weight"])
    loaded = checkpoint.load_safetensors(tmp_path, names={"h.0.bias": "b"}, pattern="b")
    assert list(loaded) == ["b"]
    assert list(checkpoint.load_safetensors(tmp_path, names=lambda n: n if "bias" in n else None)) == ["h.0.bias"]
    with pytest.raises(errors.CheckpointError, match="not in the file"):
        checkpoint.load_safetensors(tmp_path, into=model.state_dict())


@pytest.mark.parametrize("keep", [0, 4, 30, -8])
def test_truncated_safetensors(path, keep):
    data = path.read_bytes()
    path.write_bytes(data[:keep])
    with pytest.raises(errors.CheckpointError, match="reading") as raised:
        checkpoint.load_safetensors(path)
    assert "\n  fix:  " in str(raised.value)


def test_torch_state(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    torch.save(module.state_dict(), tmp_path / "m.pt")
    mine = flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.BatchNorm1d(4)).to_global(WHERE, [flow.sbp.broadcast] * 2)
    checkpoint.load_torch(tmp_path / "m.pt", into=mine.state_dict())
    for name, x in module.state_dict().items():
        np.testing.assert_array_equal(mine.state_dict()[name].numpy(), x.numpy())


def test_torch_kinds_and_views(tmp_path):
    base = torch.arange(24.0)
    state = {
        "view": base.reshape(4, 6).t()[1:4, ::2],
        "parameter": torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16)),
        "ints": torch.tensor([[1, 2]], dtype=torch.int8),
        "empty": torch.zeros(0, 3),
        "number": torch.tensor(2.5, dtype=torch.float64),
    }
    torch.save({"model": state, "epoch": 3, "note": ["a", None, (1, 2.0)]}, tmp_path / "c.pt")
    read = checkpoint.read_torch(tmp_path / "c.pt")
    assert read["epoch"] == 3 and read["note"] == ["a", None, (1, 2.0)]
    loaded = checkpoint.load_torch(tmp_path / "c.pt", key="model")
    for name, x in state.items():
        assert loaded[name].float().tolist() == x.detach().float().tolist() and loaded[name].shape == tuple(x.shape)
    assert loaded["parameter"].dtype == flow.bfloat16
    with pytest.raises(errors.CheckpointError, match="key="):
        checkpoint.load_torch(tmp_path / "c.pt")


class Evil:
    def __reduce__(self):
        return os.system, ("touch /nowhere/evil",)


@pytest.mark.parametrize("payload", [Evil(), torch.nn.Linear(1, 1), {"f": print}])
def test_nothing_that_a_torch_file_names_is_run(payload, tmp_path):
    torch.save({"x": payload}, tmp_path / "evil.pt")
    with pytest.raises(errors.CheckpointError, match="its pickle names"):
        checkpoint.load_torch(tmp_path / "evil.pt")


def test_torch_files_that_lie_about_sizes(tmp_path):
    torch.save({"x": torch.arange(4.0)}, tmp_path / "good.pt")
    with zipfile.ZipFile(tmp_path / "good.pt") as good, zipfile.ZipFile(tmp_path / "bad.pt", "w") as bad:
        for name in good.namelist():
            data = good.read(name)
            bad.writestr(name, data[:8] if name.endswith("/data/0") else data)
    with pytest.raises(errors.CheckpointError, match="reading the PyTorch file"):
        checkpoint.load_torch(tmp_path / "bad.pt")
    (tmp_path / "old.pt").write_bytes(pickle.dumps({"x": 1}))
    with pytest.raises(errors.CheckpointError, match="zip"):
        checkpoint.load_torch(tmp_path / "old.pt")
