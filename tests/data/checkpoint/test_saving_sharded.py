"""Checkpoints: any layout to any other, parts of them, damage, crashes, and what is kept."""

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import checkpoint, errors
from sbpjax.data.checkpoint import blocks, manifest

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
WHERE = {
    "8": flow.placement("cpu", list(range(8))),
    "2x4": flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]]),
    "4": flow.placement("cpu", [4, 5, 6, 7]),
    "1": flow.placement("cpu", [3]),
}


def same(x, want):
    assert tuple(x.shape) == tuple(want.shape) and x.dtype == want.dtype
    assert x.numpy().tobytes() == want.numpy().tobytes()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A state in many layouts, and the checkpoint of it."""
    flow.manual_seed(1)
    grid, line = WHERE["2x4"], WHERE["8"]
    state = {
        "model": {
            "even": flow.randn(8, 16, placement=grid, sbp=[S(0), S(1)]),
            "uneven": flow.randn(7, 5, placement=line, sbp=S(0)),
            "sum": flow.ones(4, 6, placement=grid, sbp=[P, S(1)]) * 3,
            "half": flow.randn(6, 4, placement=line, sbp=B).bfloat16(),
            "count": flow.tensor(3, placement=line, sbp=B),
            "flags": flow.tensor([True, False, True]),
        },
        "moments": [flow.arange(5), np.arange(6.0).reshape(2, 3)],
        "step": 7,
        "rates": (0.5, None, "cosine"),
        "by_index": {0: flow.ones(2), 1: "one"},
    }
    path = tmp_path_factory.mktemp("checkpoints") / "first"
    assert checkpoint.save(state, path).path == path
    return state, path


def test_local_and_whole(saved):
    state, path = saved
    loaded = checkpoint.load(path)
    assert loaded["step"] == 7 and loaded["rates"] == (0.5, None, "cosine") and loaded["by_index"][1] == "one"
    for name, x in state["model"].items():
        assert loaded["model"][name].is_local
        same(loaded["model"][name], x)
    same(loaded["moments"][0], state["moments"][0])
    assert isinstance(loaded["moments"][1], np.ndarray) and (loaded["moments"][1] == state["moments"][1]).all()
    same(loaded["by_index"][0], state["by_index"][0])


@pytest.mark.parametrize("where, sbp", [("8", S(0)), ("8", S(1)), ("2x4", [S(1), S(0)]), ("4", B), ("1", B), ("4", P)])
def test_any_placement_and_sbp(saved, where, sbp):
    state, path = saved
    loaded = checkpoint.load(path, placement=WHERE[where], sbp=sbp)
    for name, x in state["model"].items():
        got = loaded["model"][name]
        assert got.placement == WHERE[where]
        assert x.ndim < 2 or got.sbp == tuple(sbp if isinstance(sbp, list) else [sbp])
        same(got, x)


def test_into_a_state_in_other_layouts(saved):
    state, path = saved
    into = {
        "model": {
            "even": flow.zeros(8, 16, placement=WHERE["4"], sbp=S(1)),
            "uneven": flow.zeros(7, 5),
            "half": flow.zeros(6, 4, placement=WHERE["1"], sbp=B),  # float32 here
        },
        "moments": [flow.zeros(5, dtype=flow.int64), np.zeros((2, 3))],
        "step": 0,
    }
    even = into["model"]["even"]
    result = checkpoint.load(path, into=into, strict=False)
    assert into["step"] == 7
    assert result["step"] == 7 and result["model"]["even"] is even and even.sbp == (S(1),)
    same(even, state["model"]["even"])
    same(into["model"]["uneven"], state["model"]["uneven"])
    same(into["model"]["half"], state["model"]["half"].float())
    assert (into["moments"][1] == np.arange(6.0).reshape(2, 3)).all()


def test_parts(saved):
    state, path = saved
    loaded = checkpoint.load(path, pattern=["model/*even", "moments/0"])
    assert sorted(loaded["model"]) == ["even", "uneven"] and len(loaded["moments"]) == 1
    kept = flow.zeros(4, 6)
    checkpoint.load(path, into={"model": {"sum": kept, "flags": flow.zeros(9)}}, pattern="model/sum")
    same(kept, state["model"]["sum"])
    with pytest.raises(errors.CheckpointError, match="matches at least one name"):
        checkpoint.load(path, pattern="optimizer/*")


def test_inspect(saved):
    state, path = saved
    entries = {e.name: e for e in checkpoint.inspect(path)}
    even = entries["model/even"]
    assert (even.shape, even.dtype, even.nbytes) == ((8, 16), "float32", 512)
    assert even.ranks == [[0, 1, 2, 3], [4, 5, 6, 7]] and "S0" in even.sbp and "S1" in even.sbp
    assert entries["moments/0"].sbp is None and entries["model/half"].nbytes == 48


@pytest.mark.parametrize(
    "into, words",
    [
        ({"model": {"other": flow.zeros(1)}}, "['model/other']"),
        ({"model": {"even": flow.zeros(8, 15)}}, "model/even: [8, 15] here, [8, 16] in the checkpoint"),
    ],
)
def test_states_that_do_not_fit(saved, into, words):
    with pytest.raises(errors.CheckpointError) as raised:
        checkpoint.load(saved[1], into=into)
    assert words in str(raised.value) and "\n  fix:  " in str(raised.value)


def _largest(path):
    return max((p for p in path.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


def _flip(path):
    file = max((p for p in (path / "arrays").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def later_version(path):
    text = json.dumps({"sha256": "0" * 64, "version": 99, "files": {}})
    return text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest())


DAMAGE = {
    "a flipped bit": (_flip, "checksum"),
    "a truncated file": (lambda p: os.truncate(_largest(p / "arrays"), 10), "10 bytes"),
    "a missing file": (lambda p: _largest(p / "arrays").unlink(), "00000.bin"),
    "another structure": (
        lambda p: (p / "state.json").write_text('{"version": 1, "tensors": {}, "state": {}}'),
        "state",
    ),
    "no structure": (lambda p: (p / "state.json").unlink(), "state.json"),
    "half a structure": (lambda p: (p / "state.json").write_text('{"version": 1, "ten'), "state.json"),
    "a later version": (lambda p: (p / "checksums.json").write_text(later_version(p)), "version 99"),
    "half of the checksums": (lambda p: (p / "checksums.json").write_text('{"state'), "checksums.json"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_before_anything_is_loaded(name, tmp_path):
    damage, words = DAMAGE[name]
    checkpoint.save({"a": flow.arange(100), "b": flow.ones(10)}, tmp_path / "c")
    damage(tmp_path / "c")
    into = {"a": flow.zeros(100, dtype=flow.int64), "b": flow.zeros(10)}
    with pytest.raises(errors.CheckpointError, match=words) as raised:
        checkpoint.load(tmp_path / "c", into=into)
    assert "\n  fix:  " in str(raised.value)
    assert into["a"].sum().item() == 0 and into["b"].sum().item() == 0


@pytest.mark.parametrize("moment", ["while writing", "before the renames", "between the renames"])
def test_a_crash_leaves_the_checkpoint_before(moment, tmp_path, monkeypatch):
    path = tmp_path / "c"
    checkpoint.save({"a": flow.ones(3)}, path)

    def crash(*arguments, **options):
        raise OSError("no space left")

    if moment == "while writing":
        monkeypatch.setattr(blocks, "_write_all", crash)
    elif moment == "before the renames":
        monkeypatch.setattr(manifest.os, "fsync", crash)
    else:
        rename = Path.rename
        monkeypatch.setattr(Path, "rename", lambda a, b: crash() if "partial" in a.name else rename(a, b))
    with pytest.raises(errors.CheckpointError, match="no space left") as raised:
        checkpoint.save({"a": flow.zeros(3)}, path)
    assert "rank 0" in str(raised.value)
    monkeypatch.undo()
    assert checkpoint.load(path)["a"].tolist() == [1, 1, 1]
    checkpoint.save({"a": flow.zeros(3)}, path)
    assert checkpoint.load(path)["a"].tolist() == [0, 0, 0]
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_nothing_there(tmp_path):
    with pytest.raises(errors.CheckpointError, match="no such directory"):
        checkpoint.load(tmp_path / "c")
    with pytest.raises(errors.CheckpointError, match="is a object"):
        checkpoint.save({"a": {"b": object()}}, tmp_path / "c")


def test_asynchronous_saving_keeps_the_values_of_its_moment(tmp_path):
    where = WHERE["8"]
    w = flow.ones(64, 32, placement=where, sbp=S(0))
    writing = checkpoint.save({"w": w}, tmp_path / "c", asynchronous=True)
    w.add_(1)
    writing.wait()
    assert writing.done() and checkpoint.load(tmp_path / "c")["w"].numpy().max() == 1


def test_manager_keeps_the_last_and_the_best(tmp_path):
    manager = checkpoint.Manager(tmp_path, keep_last=2, keep_best=1)
    assert manager.restore() is None and manager.latest() is None
    for step, metric in enumerate([3.0, 1.0, 2.0, float("nan"), 4.0, None]):
        manager.save(step, {"x": flow.full((2,), float(step))}, metric=metric)
    manager.wait()
    assert manager.steps() == [1, 4, 5] and manager.best() == 1
    (tmp_path / "step_000000006.partial").mkdir()  # what a crash leaves behind
    (tmp_path / "step_000000007").mkdir()
    step, state = checkpoint.Manager(tmp_path).restore(placement=WHERE["4"])
    assert step == 5 and state["x"].tolist() == [5, 5] and state["x"].placement == WHERE["4"]
    into = {"x": flow.zeros(2)}
    assert manager.restore(1, into=into)[0] == 1 and into["x"].tolist() == [1, 1]
    assert checkpoint.Manager(tmp_path, keep_best=1, better="max").best() == 4
    with pytest.raises(errors.OpValueError, match="keep_last=0"):
        checkpoint.Manager(tmp_path, keep_last=0)


def test_training_resumes_to_the_bit_in_another_layout(tmp_path):
    def build(where, sbp):
        flow.manual_seed(0)
        model = flow.nn.Linear(8, 8).to_global(where, sbp)
        return model, flow.optim.Adam(model.parameters(), lr=0.1)

    def train(model, optimizer, where, steps):
        x = flow.ones(4, 8, placement=where, sbp=B if where.ranks.ndim == 1 else [B, B])
        for _ in range(steps):
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    model, optimizer = build(WHERE["8"], S(0))
    train(model, optimizer, WHERE["8"], 2)
    checkpoint.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "c")
    other, its_optimizer = build(WHERE["2x4"], [B, S(0)])
    train(other, its_optimizer, WHERE["2x4"], 1)  # so that its state exists
    state = checkpoint.load(tmp_path / "c", into={"model": other.state_dict(), "optimizer": its_optimizer.state_dict()})
    its_optimizer.load_state_dict(state["optimizer"])
    same(other.weight.detach(), model.weight.detach())
    a, b = optimizer.state_dict()["state"][0], its_optimizer.state_dict()["state"][0]
    for name in ("exp_avg", "exp_avg_sq"):
        same(b[name], a[name])
    assert json.dumps(optimizer.state_dict()["param_groups"]) == json.dumps(its_optimizer.state_dict()["param_groups"])


def test_should_stop_after_a_signal(tmp_path):
    import signal

    before = signal.getsignal(signal.SIGTERM)
    try:
        manager = checkpoint.Manager(tmp_path)
        manager.watch_preemption()
        assert not manager.should_stop()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
        assert manager.should_stop()
        with pytest.raises(SystemExit) as ended:
            manager.exit_for_restart()
        assert ended.value.code == 75
    finally:
        signal.signal(signal.SIGTERM, before)
