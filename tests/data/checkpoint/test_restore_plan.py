"""Loading into what is there: modules and optimizers themselves, names on one side only, scalars, dtypes."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import checkpoint, errors, nn, optim

S, B = flow.sbp.split, flow.sbp.broadcast
LINE = flow.placement("cpu", [0, 1, 2, 3])


def trained(steps=2, where=None, sbp=None):
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8) if where is None else nn.LayerNorm(8))
    if where is not None:
        model = model.to_global(where, sbp)
    optimizer = optim.AdamW(model.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    scaler = flow.amp.GradScaler()
    x = flow.randn(4, 8) if where is None else flow.randn(4, 8, placement=where, sbp=B)
    for _ in range(steps):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
    return {"model": model, "optimizer": optimizer, "more": [schedule, scaler], "epoch": steps, "name": "a"}


def same(a, b):
    np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_a_fresh_optimizer_gets_its_state(tmp_path):
    state, fresh = trained(), trained(0)
    with checkpoint.Manager(tmp_path) as manager:
        manager.save(2, state)
    fresh["name"] = "b"
    step, found = checkpoint.Manager(tmp_path).restore(into=fresh)
    assert step == 2 and found is fresh and fresh["epoch"] == 2 and fresh["name"] == "a"
    same(fresh["model"][0].weight, state["model"][0].weight)
    same(fresh["model"][1].running_mean, state["model"][1].running_mean)
    theirs, mine = (s["optimizer"].state_dict() for s in (state, fresh))
    assert set(mine["state"]) == set(theirs["state"]) and mine["param_groups"] == theirs["param_groups"]
    same(mine["state"][0]["exp_avg"], theirs["state"][0]["exp_avg"])
    assert int(mine["state"][0]["step"]) == 2 and mine["param_groups"][0]["lr"] == 0.05
    assert fresh["more"][0].last_epoch == 2


@pytest.mark.parametrize("there", [S(0), B], ids=str)
def test_new_state_of_an_optimizer_lies_like_its_parameters(there, tmp_path):
    state, fresh = trained(where=LINE, sbp=B), trained(0, LINE, there)
    checkpoint.save(state, tmp_path / "c")
    checkpoint.load(tmp_path / "c", into=fresh)
    moment = fresh["optimizer"].state_dict()["state"][0]["exp_avg"]
    assert moment.placement == LINE and moment.sbp == fresh["model"][0].weight.sbp == (there,)
    same(moment, state["optimizer"].state_dict()["state"][0]["exp_avg"])
    same(fresh["model"][0].weight, state["model"][0].weight)


def test_an_object_is_the_whole_state(tmp_path):
    model = nn.Linear(3, 2)
    flow.save(model, tmp_path / "c")
    fresh = nn.Linear(3, 2)
    assert checkpoint.load(tmp_path / "c", into=fresh) is fresh
    same(fresh.weight, model.weight)
    assert list(flow.load(tmp_path / "c")) == ["weight", "bias"]


def test_states_of_a_fresh_optimizer_are_not_dropped_in_silence(tmp_path):
    state, fresh = trained(), trained(0)
    checkpoint.save({"optimizer": state["optimizer"], "epoch": 2}, tmp_path / "c")
    into = {"optimizer": fresh["optimizer"].state_dict(), "epoch": 0}
    with pytest.raises(errors.CheckpointError, match=r"are not here: \['optimizer/state/0/step'"):
        checkpoint.load(tmp_path / "c", into=into)
    assert into["epoch"] == 0
    checkpoint.load(tmp_path / "c", into=into, strict=False)
    assert into["epoch"] == 2


@pytest.mark.parametrize(
    "into, words",
    [
        (
            {"a": flow.zeros(2), "n": 0, "more": 1, "also": flow.zeros(1)},
            "2 are not in the checkpoint: ['more', 'also']",
        ),
        ({"n": 0}, "1 of the checkpoint are not here: ['a']"),
        ({"a": flow.zeros(2)}, "1 of the checkpoint are not here: ['n']"),
        ({"a": 0, "n": flow.zeros(1)}, "n: a tensor here, a int in the checkpoint"),
        ({"a": flow.zeros(3), "n": 0}, "a: [3] here, [2] in the checkpoint"),
        ({"a": flow.zeros(2, dtype=flow.int32), "n": 0}, "a: int32 here, float32 in the checkpoint"),
        ({"a": flow.zeros(2, dtype=flow.float16), "n": 0}, "a: float16 here, float32 in the checkpoint"),
        ({"a": np.zeros(2, np.int64), "n": 0}, "a: int64 here, float32 in the checkpoint"),
        ({"a": [flow.zeros(2)], "n": 0}, "a: a list here, a tensor in the checkpoint"),
    ],
    ids=range(9),
)
def test_what_does_not_fit_is_named_and_nothing_is_changed(into, words, tmp_path):
    checkpoint.save({"a": flow.ones(2), "n": 5}, tmp_path / "c")
    with pytest.raises(errors.CheckpointError) as raised:
        checkpoint.load(tmp_path / "c", into=into)
    assert words in str(raised.value) and "\n  fix:  " in str(raised.value)
    assert into.get("n") != 5 and not any(bool(np.any(np.asarray(x))) for x in into.values() if x is into.get("a"))


def test_modules_name_what_differs(tmp_path):
    checkpoint.save({"model": nn.Linear(3, 2)}, tmp_path / "c")
    other = nn.Linear(3, 2, bias=False)
    with pytest.raises(errors.CheckpointError, match=r"1 of the checkpoint are not here: \['model/bias'\]"):
        checkpoint.load(tmp_path / "c", into={"model": other})
    checkpoint.load(tmp_path / "c", into={"model": other}, strict=False)
    bigger = nn.Sequential(nn.Linear(3, 2))
    with pytest.raises(
        errors.CheckpointError, match=r"2 are not in the checkpoint: \['model/0.weight', 'model/0.bias'\]"
    ):
        checkpoint.load(tmp_path / "c", into={"model": bigger})


def test_casts_that_are_asked_for_and_that_lose_nothing(tmp_path):
    checkpoint.save({"x": flow.tensor([1.5, 2.5]), "h": flow.ones(2).bfloat16()}, tmp_path / "c")
    into = {"x": flow.zeros(2).half(), "h": flow.zeros(2)}
    checkpoint.load(tmp_path / "c", into=into, cast=True)
    assert into["x"].dtype == flow.float16 and into["x"].tolist() == [1.5, 2.5] and into["h"].tolist() == [1, 1]
    wide = {"x": flow.zeros(2).double(), "h": flow.zeros(2)}
    checkpoint.load(tmp_path / "c", into=wide)
    assert wide["x"].dtype == flow.float64 and wide["x"].tolist() == [1.5, 2.5]


def test_parts_of_objects(tmp_path):
    state, fresh = trained(), trained(0)
    checkpoint.save(state, tmp_path / "c")
    checkpoint.load(tmp_path / "c", into=fresh, pattern="optimizer/*")
    assert fresh["epoch"] == 0 and len(fresh["optimizer"].state_dict()["state"]) == 4
    assert not np.array_equal(fresh["model"][0].weight.detach().numpy(), state["model"][0].weight.detach().numpy())


def test_names_of_a_manager_are_those_of_the_state(tmp_path):
    """In patterns and errors; in the files that state lies under a key of its own."""
    state = {"model": nn.Linear(3, 2), "scale": flow.ones(2), "state": 4}
    with checkpoint.Manager(tmp_path) as manager:
        manager.save(1, state)
    with pytest.raises(errors.CheckpointError, match=r"1 are not in the checkpoint: \['scheduler'\]"):
        manager.restore(into=state | {"scheduler": {}})
    with pytest.raises(errors.CheckpointError, match=r"2 of .* are not here: \['model/weight', 'model/bias'\]"):
        manager.restore(into={"scale": flow.ones(2), "state": 0})
    with pytest.raises(errors.CheckpointError, match=r"seen: 3 tensors: model/weight, model/bias, scale\n"):
        manager.restore(pattern="state/model/*")
    step, found = manager.restore(pattern="model/*")
    assert step == 1 and found.keys() == {"model", "state"}
    same(found["model"]["weight"], state["model"].weight)
    assert [e.name for e in checkpoint.inspect(manager.path(1))][0] == "state/model/weight"


def test_a_part_of_a_checkpoint(tmp_path):
    model, fresh = nn.Linear(3, 2), nn.Linear(3, 2)
    checkpoint.save({"model": model, "epoch": 3}, tmp_path / "c")
    assert checkpoint.load(tmp_path / "c", part="model", into=fresh) is fresh
    same(fresh.weight, model.weight)
    assert checkpoint.load(tmp_path / "c", part="epoch") == 3
    assert list(checkpoint.load(tmp_path / "c", part="model", pattern="w*")) == ["weight"]
    with pytest.raises(errors.CheckpointError, match=r"keys \['model', 'epoch'\]"):
        checkpoint.load(tmp_path / "c", part="optimizer")


def test_the_directory_of_a_manager_is_no_checkpoint(tmp_path):
    with checkpoint.Manager(tmp_path) as manager:
        manager.save(7, {"a": flow.ones(1)})
    words = r"(?s)a checkpoint.Manager, with step_000000007.*manager.path\("
    for ask in (checkpoint.inspect, checkpoint.load, flow.load):
        with pytest.raises(errors.CheckpointError, match=words):
            ask(tmp_path)
