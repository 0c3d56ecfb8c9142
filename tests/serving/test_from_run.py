"""What of a run can be served, and what is said of what cannot. Whole runs are in tests/examples/test_serving.py."""

import pytest

import sbpjax as flow
from sbpjax import checkpoint, nn
from sbpjax.serving import from_run
from sbpjax.train.config import LazyCall, save_config


def run_of(folder, step=3):
    """Write what a run leaves: its configuration, and a checkpoint with more than the model in it."""
    (folder / "run").mkdir()
    model = LazyCall(nn.Linear)(in_features=3, out_features=2)
    save_config(LazyCall(dict)(trainer=LazyCall(dict)(model=model)), folder / "run")
    model = nn.Linear(3, 2)
    with checkpoint.Manager(folder / "run/checkpoints") as manager:
        manager.save(step, {"model": model, "run": {"step": step}})
    return model


def test_what_is_served_has_the_weights_of_the_checkpoint(tmp_path, compiled_ops):
    wanted, x = run_of(tmp_path), flow.randn(4, 3)
    from_run.main([str(tmp_path / "run"), str(tmp_path / "to"), "--input", "x:3"])
    assert (flow.load_graph(tmp_path / "to/1/model")(x=x) == wanted(x)).all()


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["none", "to", "--input", "x:3"], "no such directory"),
        (["run", "to"], "both or none"),
        (["run", "to", "--input", "x:3", "--language"], "both or none"),
        (["run", "to", "--input", "x:3xfour"], "something else"),
        (["run", "to", "--input", "x:3:float99"], "something else"),
        (["run", "to", "--input", "x:-3"], "something else"),
        (["run", "to", "--input", "x:3", "--step", "9"], "step 9; there are 3"),
    ],
)
def test_what_cannot_be_served(tmp_path, monkeypatch, arguments, expected):
    run_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=rf"(?s)Error: .*seen: .*{expected}.*fix: "):
        from_run.main(arguments)
    assert not (tmp_path / "to").exists()
