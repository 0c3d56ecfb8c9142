"""Snapshots: complete or not there, checked as a whole, and one with the model's checkpoint through kills."""

import ast
import errno
import json
import os
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import TableError
from sbpjax.one_embedding import columns, snapshots
from tests.one_embedding.training import batches, tables, train

WHERE = ("rows", "rename", "between", "model")


def lives(folder, *places):
    """Run `tests.one_embedding.killed` and return the losses of its steps."""
    command = [sys.executable, "-m", "tests.one_embedding.killed", str(folder), *places]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return ast.literal_eval(done.stdout.strip().splitlines()[-1])


def test_kills_between_table_and_model_lose_nothing(tmp_path):
    wanted = lives(tmp_path / "undisturbed")
    assert lives(tmp_path / "killed", "4:rename", "6:between") == wanted  # to the bit


@pytest.mark.exhaustive
def test_ten_kills_lose_nothing(tmp_path):
    wanted = lives(tmp_path / "undisturbed")
    for seed in range(2):
        rng = random.Random(seed)
        steps = sorted(rng.choices(range(2, 12, 2), k=10))
        places = [f"{step}:{WHERE[(i + seed) % 4] if i < 8 else rng.choice(WHERE)}" for i, step in enumerate(steps)]
        assert lives(tmp_path / f"killed-{seed}", *places) == wanted


def saved(folder, **options):
    """Return a trained table with a snapshot ``a``, ids and their vectors."""
    _, model = train(folder, "host", steps=6, **options)
    table = model.embedding
    table.save_snapshot("a")
    ids = flow.tensor(batches(1)[0][0])
    return table, ids, table(ids).detach().numpy()


def test_values_and_states_come_back(tmp_path):
    table, ids, wanted = saved(tmp_path)
    rows = table.num_rows
    again = tables(tmp_path, "disk")
    again.load_snapshot("a")
    assert again.num_rows == rows
    np.testing.assert_array_equal(again(ids).detach().numpy(), wanted)
    assert set(again._cache.store.columns) == {"value", "exp_avg", "exp_avg_sq"}
    again.load_snapshot("a", states=False)
    assert set(again._cache.store.columns) == {"value"}
    new = flow.tensor(np.full((1, 3), 12345))  # a key that is not in it is made as ever
    np.testing.assert_array_equal(again(new).detach().numpy(), table(new).detach().numpy())


def test_a_snapshot_replaces_one_of_its_name(tmp_path, monkeypatch):
    table, ids, first = saved(tmp_path)
    with flow.no_grad():
        table.weight.zero_()
        table(ids)
    table.save_snapshot("b")
    table.save_snapshot("a")
    assert table.snapshot_names() == ["b", "a"]
    # Killed between the two renames: the old one is found under its other name.
    os.rename(tmp_path / "t" / "a", tmp_path / "t" / "a.replaced")
    table.load_snapshot("a")
    assert table.snapshot_names() == ["b"]


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    table, ids, wanted = saved(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(columns.os, "posix_fallocate", full)
        for name in ("a", "b"):
            with pytest.raises(TableError, match="No space left on device"):
                table.save_snapshot(name)
    assert os.listdir(tmp_path / "t") == ["a"]
    table.load_snapshot("a")
    np.testing.assert_array_equal(table(ids).detach().numpy(), wanted)


def _change(path, at=-1):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def _dtype(path, name):
    data = bytearray(path.read_bytes())
    data[8:24] = name.ljust(16, b"\0")
    path.write_bytes(data)


def _manifest(*, sealed=True, **changed):
    def harm(folder):
        path = folder / "table.json"
        content = json.loads(path.read_text()) | changed
        path.write_text(json.dumps(content | ({"sha256": snapshots._digest(content)} if sealed else {})))

    return harm


HARMS = {
    "a byte of the values": (lambda f: _change(f / "part-0.value"), "checksum"),
    "a byte of the keys": (lambda f: _change(f / "part-0.keys"), "checksum"),
    "a file cut off": (lambda f: os.truncate(f / "part-0.exp_avg", 500), "its header has"),
    "a file missing": (lambda f: (f / "part-0.counts").unlink(), "No such file"),
    "no manifest": (lambda f: (f / "table.json").unlink(), "No such file"),
    "a torn manifest": (lambda f: (f / "table.json").write_text('{"format": "sbp'), "table.json"),
    "another format": (_manifest(format="x 2"), "format='x 2'"),
    "other rows": (_manifest(parts=[3]), "table.json has 3"),
    "parts that are none": (_manifest(parts="x"), "does not list the parts"),
    "another width": (_manifest(columns=[5]), r"columns=\[5\]"),
    "another dtype": (_manifest(dtype="float16"), "dtype=float16"),
    "another seed": (_manifest(seed=9), "seed=9"),
    "a step that was changed": (_manifest(sealed=False, step=7), "another checksum"),
    "a step that is none": (_manifest(step="x"), "step='x'"),
    "no values": (_manifest(row=["exp_avg"]), "the columns of a row"),
    "a column elsewhere": (_manifest(row=["value", "../../x"]), "columns"),
    "less than no rows": (_manifest(parts=[-1]), "does not list the parts"),
    "a column for another": (lambda f: shutil.copy(f / "part-0.exp_avg", f / "part-0.value"), "with another name"),
    "a dtype in a header": (lambda f: _dtype(f / "part-0.keys", b"float64"), "another checksum"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_damage_is_found_before_anything_changes(harm, tmp_path):
    table, ids, wanted = _once(tmp_path)
    do, message = HARMS[harm]
    do(tmp_path / "t" / "a")
    with pytest.raises(TableError, match=message):
        table.load_snapshot("a")
    np.testing.assert_array_equal(table(ids).detach().numpy(), wanted)


def _once(folder):
    """Return a small table with a snapshot that has a state, without training."""
    table = tables(folder, "host")
    table._cache.store.add_column("exp_avg", np.float32, 0.0)
    ids = flow.tensor(batches(1)[0][0])
    wanted = table(ids).detach().numpy()
    table.save_snapshot("a")
    return table, ids, wanted


def test_names(tmp_path):
    table, _, _ = _once(tmp_path)
    with pytest.raises(TableError, match="snapshots there: a"):
        table.load_snapshot("b")
    for name in ("../x", ".hidden", "", "a/b"):
        with pytest.raises(TableError, match="the name is that of a directory"):
            table.save_snapshot(name)
    with pytest.raises(TableError, match="one has to stay"):
        table.prune_snapshots(0)
    small = tables(tmp_path, capacity=20)
    with pytest.raises(TableError, match="20 rows at most"):
        small.load_snapshot("a")
