"""The model of a run, made again from its directory."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.errors import TrainError
from sbpjax.train import load_run
from sbpjax.train.cli import main
from tests.train.cases import Points, records

TOWER = "tests.train.run_config"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        main([TOWER])
    return folder / "run"


def test_the_latest_and_one_by_its_step(run):
    latest = load_run(run)
    assert not latest.training
    saved = flow.checkpoint.load(sorted((run / "checkpoints").glob("step_*"))[-1], part="state")["model"]
    for name, value in latest.state_dict().items():
        assert not value.is_global
        np.testing.assert_array_equal(value.numpy(), np.asarray(saved[name]))


AVERAGED = """
import copy
from sbpjax.train import Average
from sbpjax.train.config import LazyCall
from tests.train.run_config import trainer as _trainer

trainer = copy.deepcopy(_trainer)
trainer.hooks["average"] = LazyCall(Average)(decay=0.5)
trainer.hooks.checkpoints.update({"every": 1, "keep_best": 1, "metric": "validation/loss", "better": "max"})
trainer.hooks.validation.every = 1
trainer.hooks.validation.batch_size = 8
"""


def test_averages_and_the_best(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.py").write_text(AVERAGED)
    main(["config.py"])
    losses = {step: one["validation/loss"] for step, one in records(tmp_path / "run").items() if step}
    best = max(losses, key=losses.__getitem__)  # better="max"
    x, y = (flow.tensor(np.stack(part)) for part in zip(*[Points(16)[i] for i in range(16)], strict=True))
    for step, asked in ((best, "best"), (4, None)):
        model = load_run("run", step=asked)
        assert model.loss(x, y).item() == pytest.approx(losses[step], rel=1e-5)
    plain = load_run("run", average=False)
    assert abs(plain.loss(x, y).item() - model.loss(x, y).item()) > 1e-6


def test_wrong_calls(run, tmp_path):
    with pytest.raises(TrainError, match="no such directory"):
        load_run(tmp_path / "none")
    with pytest.raises(TrainError, match="no config.yaml"):
        load_run(tmp_path)
    with pytest.raises(TrainError, match=r"step 77; there are"):
        load_run(run, step=77)
    with pytest.raises(TrainError, match=r"step 'best'"):
        load_run(run, step="best")
