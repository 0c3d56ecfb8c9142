"""What of a run can be served, and what is said of what cannot. Whole runs are in tests/examples/test_serving.py."""

import pytest

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


def test_the_weights_are_those_of_the_checkpoint(tmp_path):
    wanted = run_of(tmp_path)
    model, step = from_run.model_of(tmp_path / "run")
    assert step == 3 and not model.training and (model.weight == wanted.weight).all()


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["none", "to", "--input", "x:3"], "no such directory"),
        (["run", "to"], "both or none"),
        (["run", "to", "--input", "x:3", "--language"], "both or none"),
        (["run", "to", "--input", "x:3xfour"], "something else"),
        (["run", "to", "--input", "x:3:float99"], "something else"),
        (["run", "to", "--input", "x:-3"], "something else"),
        (["run", "to", "--input", "x:3", "--step", "9"], "no such directory"),
    ],
)
def test_what_cannot_be_served(tmp_path, monkeypatch, arguments, says):
    run_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=rf"(?s)Error: .*seen: .*{says}.*fix: "):
        from_run.main(arguments)
    assert not (tmp_path / "to").exists()
