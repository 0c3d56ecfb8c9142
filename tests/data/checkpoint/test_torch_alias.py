"""`torch.save` and `torch.load` under the alias: PyTorch's own files, both ways."""

import io

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import errors, mock_torch
from sbpjax._core.compat.torch_names import serialization

B, S0 = flow.sbp.broadcast, flow.sbp.split(0)


def state(lib):
    weight = lib.arange(12.0).reshape(3, 4)
    return {
        "weight": weight,
        "view": weight.t()[1:],
        "half": lib.ones(3, dtype=lib.bfloat16),
        "count": lib.tensor(7),
        "mask": lib.tensor([True, False]),
        "none": lib.zeros(0, 2),
        "complex": lib.tensor([1 + 2j]),
        "parameter": lib.nn.Parameter(lib.ones(2)),
        "plain": [1, 2.5, "a", None, (True, {"k": 3})],
        "shape": lib.Size([2, 3]),
        "dtype": lib.float16,
    }


def same(found, wanted):
    assert list(found) == list(wanted)
    for key, value in wanted.items():
        if key in ("plain", "shape"):
            assert found[key] == value
        elif key == "dtype":
            assert str(found[key]).split(".")[-1] == str(value).split(".")[-1]
        else:
            assert str(found[key].dtype).split(".")[-1] == str(value.dtype).split(".")[-1]
            assert found[key].requires_grad == value.requires_grad
            np.testing.assert_array_equal(found[key].tolist(), value.tolist(), err_msg=key)


def read_by_pytorch(path):
    return torch.load(path, weights_only=True)


def test_pytorch_reads_what_the_alias_writes(tmp_path):
    with mock_torch.enable():
        import torch as alias

        alias.save(state(alias), tmp_path / "x.pt")
        assert type(alias.load(tmp_path / "x.pt")["parameter"]) is flow.nn.Parameter
    torch.serialization.add_safe_globals([torch.float16])
    same(read_by_pytorch(tmp_path / "x.pt"), state(torch))


def test_the_alias_reads_what_pytorch_writes():
    file = io.BytesIO()
    torch.save(state(torch), file)
    file.seek(0)
    same(serialization.load(file, map_location="cpu", weights_only=True), state(flow))


def test_models_and_placements(tmp_path):
    torch.manual_seed(0)
    file = tmp_path / f"m{flow.env.get_rank()}.pt"  # of several processes each has its own
    torch.save(torch.nn.Linear(4, 6).state_dict(), file)
    where = flow.placement("cpu", [0, 1])
    found = serialization.load(file, where)
    assert found["weight"].placement == where and found["weight"].sbp == (B,)
    layer = flow.nn.Linear(4, 6)
    layer.load_state_dict(serialization.load(file))
    layer.weight = flow.nn.Parameter(layer.weight.to_global(where, S0))
    buffer = io.BytesIO()
    serialization.save(layer.state_dict(), buffer)
    buffer.seek(0)
    again, wanted = torch.load(buffer, weights_only=True), read_by_pytorch(file)
    assert all(torch.equal(again[k], v) for k, v in wanted.items())


def test_what_a_file_names_is_not_run(tmp_path):
    class Spy:
        def __reduce__(self):
            return print, ("run",)

    torch.save({"x": Spy()}, tmp_path / "x.pt")
    with pytest.raises(errors.CheckpointError, match="print"):
        serialization.load(tmp_path / "x.pt")
    assert serialization.load(tmp_path / "x.pt", weights_only=False) == {"x": None}
    (tmp_path / "y.pt").write_bytes(b"nothing")
    with pytest.raises(errors.CheckpointError, match="zip archive"):
        serialization.load(tmp_path / "y.pt")
    with pytest.raises(FileNotFoundError):
        serialization.load(tmp_path / "z.pt")


def test_a_directory_is_sbpjax_s_own(tmp_path):
    flow.save({"a": flow.ones(2)}, tmp_path / "d")
    assert serialization.load(tmp_path / "d")["a"].tolist() == [1.0, 1.0]


def test_dtypes_that_have_no_storage():
    with pytest.raises(errors.CheckpointError, match="storages hold"):
        serialization.save(flow.ones(2).to(flow.float8_e4m3fn), io.BytesIO())
