"""Checkpoints of earlier versions: `data/version1` was written by Orbax, the `.npy` kind is made here."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import checkpoint
from sbpjax.errors import CheckpointError

VERSION1 = Path(__file__).parent / "data" / "version1"
WEIGHT = np.arange(6.0, dtype=np.float32).reshape(3, 2)


def npy(path):
    """Write the kind of one `.npy` file per tensor."""
    path.mkdir()
    leaf = lambda kind, index, dtype: {"": kind, "index": index, "dtype": dtype}  # noqa: E731
    state = {
        "w": leaf("tensor", 0, "float32"),
        "h": leaf("tensor", 1, "bfloat16"),
        "version": 3,
        "a": leaf("array", 2, "int16"),
    }
    (path / "state.json").write_text(json.dumps(state))
    np.save(path / "000000.npy", WEIGHT)
    np.save(path / "000001.npy", flow.tensor([1.5]).bfloat16().numpy().view(np.uint16))
    np.save(path / "000002.npy", np.arange(3, dtype=np.int16))
    return path


@pytest.mark.parametrize("load", [flow.load, checkpoint.load])
def test_version_1(load):
    found = load(VERSION1)
    assert found["model"]["w"].numpy().tolist() == WEIGHT.tolist() and found["model"]["h"].dtype == flow.bfloat16
    assert found["moments"][0].tolist() == [0, 1, 2] and found["rates"] == (0.5, None) and found["by index"] == {0: 1}


def test_version_1_into_another_layout():
    place = flow.placement("cpu", [0, 1, 2, 3])
    w = checkpoint.load(VERSION1, placement=place, sbp=flow.sbp.split(1), pattern="model/w")["model"]["w"]
    assert w.sbp == (flow.sbp.split(1),) and w.numpy().tolist() == WEIGHT.tolist()
    assert [e.name for e in checkpoint.inspect(VERSION1)] == ["model/w", "model/h", "moments/0"]


def test_version_1_damaged(tmp_path):
    path = tmp_path / "c"
    shutil.copytree(VERSION1, path)
    largest = max((p for p in (path / "arrays").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(largest.read_bytes())
    data[7] ^= 1
    largest.write_bytes(data)
    with pytest.raises(CheckpointError, match="checksum"):
        flow.load(path)


@pytest.mark.parametrize("load", [flow.load, checkpoint.load])
def test_one_file_per_tensor(load, tmp_path):
    found = load(npy(tmp_path / "c"))
    assert found["w"].numpy().tolist() == WEIGHT.tolist() and found["h"].tolist() == [1.5] and found["version"] == 3
    assert found["h"].dtype == flow.bfloat16 and isinstance(found["a"], np.ndarray) and found["a"].tolist() == [0, 1, 2]


def test_one_file_per_tensor_into_a_layout(tmp_path):
    into = {"w": flow.zeros(3, 2, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))}
    checkpoint.load(npy(tmp_path / "c"), into=into, strict=False)
    assert into["w"].numpy().tolist() == WEIGHT.tolist()


@pytest.mark.parametrize("what", ["cut", "removed", "another shape in the header"])
def test_one_file_per_tensor_damaged(what, tmp_path):
    file = npy(tmp_path / "c") / "000000.npy"
    kept = file.read_bytes()
    file.unlink()
    if what == "cut":
        file.write_bytes(kept[:-1])
    elif what != "removed":
        file.write_bytes(kept.replace(b"(3, 2)", b"(3, 9)"))
    with pytest.raises(CheckpointError):
        flow.load(tmp_path / "c")


def test_a_checkpoint_of_today_that_lost_its_checksums_is_no_earlier_one(tmp_path):
    flow.save({"step": 1}, tmp_path / "c")
    (tmp_path / "c" / "checksums.json").unlink()
    with pytest.raises(CheckpointError):
        flow.load(tmp_path / "c")
