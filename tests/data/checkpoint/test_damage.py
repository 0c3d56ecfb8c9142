"""Whatever happens to a file of a checkpoint, loading says CheckpointError, and never gives other values."""

import json
import shutil

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import checkpoint, errors

STATE = {"model": {"w": [[0.5] * 8] * 4, "b": [1.0] * 3}, "step": 300, "names": ("a", {1, 2})}


def state():
    x = flow.tensor(STATE["model"]["w"]).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    return STATE | {"model": {"w": x, "b": flow.tensor(STATE["model"]["b"])}}


def values(found):
    return {**found, "model": {k: v.tolist() for k, v in found["model"].items()}}


@pytest.fixture(scope="module", params=["sbpjax.save", "sbpjax.checkpoint.save"])
def written(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "c"
    {"sbpjax.save": flow.save, "sbpjax.checkpoint.save": checkpoint.save}[request.param](state(), path)
    return path


def files(path):
    return sorted(p for p in path.rglob("*") if p.is_file())


def refused(path):
    for load in (flow.load, checkpoint.load):
        with pytest.raises(errors.CheckpointError) as raised:
            load(path)
        assert "\n  fix:  " in str(raised.value)


def test_both_ways_write_one_format(written):
    assert [str(p.relative_to(written)) for p in files(written)] == [
        "arrays/00000.bin", "arrays/00000.json", "checksums.json", "state.json",
    ]  # fmt: skip
    for load in (flow.load, checkpoint.load):
        assert values(load(written)) == STATE


def test_every_byte_is_covered(written, tmp_path):
    """One bit of each byte in turn: of every byte of the small files, of a sample of the rest."""
    path = tmp_path / "c"
    shutil.copytree(written, path)
    for file in files(path):
        kept = file.read_bytes()
        for at in range(0, len(kept), 1 + len(kept) // 200):
            data = bytearray(kept)
            data[at] ^= 1 << at % 8
            file.write_bytes(data)
            with pytest.raises(errors.CheckpointError):
                flow.load(path)
        file.write_bytes(kept)
    assert values(flow.load(path)) == STATE


@pytest.mark.parametrize("what", ["cut", "longer", "empty", "removed", "a directory", "foreign JSON", "foreign bytes"])
def test_other_damage_of_each_file(what, written, tmp_path):
    for name in [p.relative_to(written) for p in files(written)]:
        path = tmp_path / str(name).replace("/", "_") / "c"
        shutil.copytree(written, path)
        file, kept = path / name, (path / name).read_bytes()
        file.unlink()
        if what == "a directory":
            file.mkdir()
        elif what != "removed":
            new = {"cut": kept[:-1], "longer": kept + b"\0", "empty": b"", "foreign bytes": bytes(range(128, 256))}
            file.write_bytes(new[what] if what in new else json.dumps([[], {}, {"": "tensor"}, 3]).encode())
        refused(path)


def test_files_that_changed_places(written, tmp_path):
    other = tmp_path / "other"
    checkpoint.save({"model": {"w": flow.zeros(4, 8), "b": flow.zeros(3)}, "step": 1}, other)
    for name in [p.relative_to(written) for p in files(written)]:
        path = tmp_path / str(name).replace("/", "_") / "c"
        shutil.copytree(written, path)
        shutil.copy(other / name, path / name)
        refused(path)
    path = tmp_path / "two" / "c"
    shutil.copytree(written, path)
    (path / "arrays" / "00000.json").rename(path / "kept")
    (path / "state.json").rename(path / "arrays" / "00000.json")
    (path / "kept").rename(path / "state.json")
    refused(path)


def resealed(path, name, text):
    """Replace a file, and write a manifest that fits it: what a hostile hand can do, damage cannot."""
    from sbpjax.data.checkpoint import manifest

    (path / name).write_text(text if isinstance(text, str) else json.dumps(text))
    (path / "checksums.json").unlink()
    manifest.write(path)


HOSTILE = {
    "state.json": [
        [], 3, {}, {"tensors": [], "state": {}}, {"tensors": {"w": {}}, "state": 0},
        {"tensors": {"w": {"shape": [-1], "dtype": "float32"}}, "state": 0},
        {"tensors": {"w": {"shape": [1 << 40], "dtype": "float32"}}, "state": {"": "tensor", "name": "w"}},
        {"tensors": {"w": {"shape": [4, 8], "dtype": "object"}}, "state": 0},
        {"tensors": {}, "state": {"": "tensor", "name": "no"}}, {"tensors": {}, "state": {"": "tensor"}},
        {"tensors": {}, "state": {"": "tuple"}}, {"tensors": {}, "state": {"": {}}},
        {"tensors": {}, "state": {"": "dict", "items": [[[], 1]]}}, {"tensors": {}, "state": {"": "date", "value": 3}},
        '{"tensors": {}, "state": ' + "[" * 5000 + "]" * 5000 + "}",
    ],
    "arrays/00000.json": [
        {}, [3],
        [[0, [0, 0], [4, 8], 0, 1 << 50, 0]], [[0, [0, 0], [4, 8], -64, 128, 0]], [[0, [0], [4, 8], 0, 192, 0]],
        [[0, [0, 0], [1 << 40, 1 << 40], 0, 192, 0]], [["0", [0, 0], [4, 8], 0, 192, 0]], [],
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_descriptions_that_a_hostile_hand_sealed(name, written, tmp_path):
    for number, text in enumerate(HOSTILE[name]):
        path = tmp_path / str(number)
        shutil.copytree(written, path)
        resealed(path, name, text)
        refused(path)


@pytest.mark.parametrize("name", ["../outside.json", "/etc/passwd", "arrays/../../x", "arrays\\x", ""])
def test_no_file_outside_is_looked_at(name, written, tmp_path):
    from sbpjax.data.checkpoint import manifest

    (tmp_path / "outside.json").write_text("{}")
    path = tmp_path / "c"
    shutil.copytree(written, path)
    with pytest.raises(ValueError, match="not below the checkpoint"):
        manifest._checked_relative_name(name)


def test_numpy_strings_and_small_floats(tmp_path):
    made = {
        "s": np.array(["é", "abc"]),
        "t": np.array(["2026-11-23"], "M8[D]"),
        "e": flow.ones(3).to(flow.float8_e4m3fn),
    }
    flow.save(made, tmp_path / "c")
    found = flow.load(tmp_path / "c")
    assert found["s"].tolist() == ["é", "abc"] and found["t"] == made["t"] and found["e"].dtype == flow.float8_e4m3fn
