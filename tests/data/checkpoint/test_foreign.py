"""safetensors, Hugging Face directories and PyTorch's files."""

import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
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
    missing = (
        r"(?s)layers\.0\.weight is not in the file, which lacks 4 of 4.*h\.0\.weight.*names=\{'h.0.weight': 'layers.0.w"
    )
    with pytest.raises(errors.CheckpointError, match=missing):
        checkpoint.load_safetensors(tmp_path, into=model.state_dict())
    with pytest.raises(errors.CheckpointError, match=r"h\.0\.weight: \[7, 5\] in the file, \[5, 7\] here"):
        checkpoint.load_safetensors(tmp_path, into={"h.0.weight": flow.zeros(5, 7)})


def directory_with(tmp_path, file, text=None):
    """Return a directory whose index says that the weights are in a file, and beside it a directory with weights."""
    home, other = tmp_path / "model", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    safetensors.numpy.save_file({"w": np.ones(2, np.float32)}, home / "inside.safetensors")
    safetensors.numpy.save_file({"w": np.full(2, 7, np.float32)}, other / "secret.safetensors")
    (home / "link.safetensors").symlink_to(other / "secret.safetensors")
    (home / "folder").symlink_to(other)
    (home / "kept").mkdir()
    (home / "kept" / "part.safetensors").write_bytes((home / "inside.safetensors").read_bytes())
    index = json.dumps({"weight_map": {"w": file}}) if text is None else text
    (home / "model.safetensors.index.json").write_text(index)
    return home


def test_an_index_stays_in_its_directory(tmp_path):
    outside = ["../other/secret.safetensors", "x/../../other/secret.safetensors", "link.safetensors", "", ".", "..",
               "folder/secret.safetensors", "/etc/passwd", "C:\\a", "\\\\host\\share\\w.safetensors"]  # fmt: skip
    for i, file in enumerate([*outside, str(tmp_path / f"{len(outside)}" / "other" / "secret.safetensors")]):
        (tmp_path / str(i)).mkdir()
        with pytest.raises(errors.CheckpointError, match="the index names") as raised:
            checkpoint.load_safetensors(directory_with(tmp_path / str(i), file))
        assert "\n  fix:  " in str(raised.value)
    for i, file in enumerate(["inside.safetensors", "./inside.safetensors", "kept/part.safetensors"]):
        (tmp_path / f"good {i}").mkdir()
        state = checkpoint.load_safetensors(directory_with(tmp_path / f"good {i}", file))
        assert state["w"].tolist() == [1, 1]


def test_an_index_that_is_none(tmp_path):
    texts = ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {"w": 3}}', "[" * 100_000, "\0", '{"weight_map": 1}']
    for i, text in enumerate(texts):
        (tmp_path / str(i)).mkdir()
        with pytest.raises(errors.CheckpointError, match="index.json"):
            checkpoint.load_safetensors(directory_with(tmp_path / str(i), "", text))


def test_the_cache_of_huggingface_hub(tmp_path):
    """There the index and the files are links into one store beside the directory."""
    home = directory_with(tmp_path, "inside.safetensors")
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "1"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for name in ("inside.safetensors", "model.safetensors.index.json"):
        (home / name).rename(blobs / name[:5])
        (snapshot / name).symlink_to(f"../../blobs/{name[:5]}")
    assert checkpoint.load_safetensors(snapshot)["w"].tolist() == [1, 1]


@pytest.mark.parametrize("entry", [
    {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]},
    {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]},
    {"dtype": "F32", "shape": [True, 2], "data_offsets": [0, 8]},
    {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 0]},
    {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]},
    {"dtype": "F32", "shape": [2], "data_offsets": [0.0, 8.0]},
    {"dtype": "O", "shape": [1], "data_offsets": [0, 8]},
    {"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]},
    [], None, 3,
])  # fmt: skip
def test_headers_that_lie(tmp_path, entry):
    for name, header in (("one", json.dumps({"w": entry})), ("two", json.dumps([entry])), ("deep", "[" * 100_000)):
        data = header.encode()
        (tmp_path / name).write_bytes(len(data).to_bytes(8, "little") + data + b"\0" * 8)
        with pytest.raises(errors.CheckpointError, match="a safetensors file is a header"):
            checkpoint.load_safetensors(tmp_path / name)


@pytest.mark.parametrize("keep", [0, 4, 30, -8])
def test_truncated_safetensors(path, keep):
    data = path.read_bytes()
    path.write_bytes(data[:keep])
    with pytest.raises(errors.CheckpointError, match="reading") as raised:
        checkpoint.load_safetensors(path)
    assert "\n  fix:  " in str(raised.value)


def fuzz(folder, rounds):
    """Read mutated files and indices: arrays whose every byte is of the file, or CheckpointError."""
    draw, read = random.Random(5), 0
    state = {name: array for name, array in STATE.items() if array.size}
    safetensors.numpy.save_file(state, folder / "whole")
    whole = (folder / "whole").read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    words = [b"-1", b"1e9", b"9" * 20, b"[", b"]", b"{", b'"', b"null", b"F64", b"BF16", b"0", b",", b":", b"true"]
    for _ in range(rounds):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(header) if draw.random() < 0.9 else draw.randrange(len(data))
            new = draw.choice(words) if draw.random() < 0.6 else draw.randbytes(draw.randrange(3))
            data[at : at + draw.randrange(4)] = new
        if draw.random() < 0.7:  # so that more than the length is looked at
            end = max(bytes(data).rfind(b"}", 0, len(data) - 40), 8)
            data[:8] = (end - 7).to_bytes(8, "little")
        if draw.random() < 0.1:
            del data[draw.randrange(len(data)) :]
        (folder / "mutated").write_bytes(data)
        try:
            arrays = checkpoint.open_safetensors(folder / "mutated")
        except errors.CheckpointError:
            continue
        read += 1
        assert sum(np.asarray(a).tobytes() in bytes(data) for a in arrays.values()) == len(arrays)
    return read


def test_mutated_files(tmp_path):
    assert fuzz(tmp_path, 2_000) > 20


@pytest.mark.exhaustive
def test_many_mutated_files_in_little_memory(tmp_path):
    code = (
        "import sys, pathlib, resource as r; from tests.data.checkpoint import test_foreign as t; "
        "r.setrlimit(r.RLIMIT_AS, (12 << 30,) * 2); "
        "t.fuzz(pathlib.Path(sys.argv[1]), 100_000)"
    )
    home = pathlib.Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code, tmp_path], cwd=home, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]


def header(**entries):
    text = json.dumps({k: dict(zip(("dtype", "shape", "data_offsets"), v, strict=True)) for k, v in entries.items()})
    return len(text).to_bytes(8, "little") + text.encode()


@pytest.mark.parametrize(
    "data",
    [
        header(a=("F32", [2], [0, 8]), b=("F32", [2], [0, 8])) + bytes(8),
        header(a=("F32", [2], [0, 8]), b=("F32", [2], [4, 12])) + bytes(12),
        header(a=("F32", [2], [8, 16])) + bytes(16),
        header(a=("F32", [2], [0, 8])) + bytes(9),
        header(a=("F32", [2**40, 2**40, 0], [0, 8])) + bytes(8),
        header(a=("F32", [True, 2], [0, 8])) + bytes(8),
        header(a=("F32", "2", [0, 8])) + bytes(8),
        (30_000).to_bytes(8, "little") + b"[" * 30_000,
        (2).to_bytes(8, "little") + b"[]",
    ],
)
def test_safetensors_whose_header_lies(data, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(errors.CheckpointError, match="reading") as raised:
        checkpoint.load_safetensors(tmp_path / "x.safetensors")
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


def test_a_dtype_that_loses_something_is_asked_for(tmp_path):
    checkpoint.save_safetensors({"x": flow.tensor([1.5, 2.5])}, tmp_path / "x.safetensors")
    torch.save({"x": torch.tensor([1.5, 2.5])}, tmp_path / "x.pt")
    for load, name in ((checkpoint.load_safetensors, "x.safetensors"), (checkpoint.load_torch, "x.pt")):
        for dtype in (flow.bfloat16, flow.int64):
            x = flow.zeros(2, dtype=dtype)
            with pytest.raises(errors.CheckpointError, match="float32 in the file"):
                load(tmp_path / name, into={"x": x})
            assert x.sum().item() == 0
            load(tmp_path / name, into={"x": x}, cast=True)
            assert x.sum().item() in (3, 4)
        wide = flow.zeros(2, dtype=flow.float64)
        load(tmp_path / name, into={"x": wide})
        assert wide.tolist() == [1.5, 2.5]
