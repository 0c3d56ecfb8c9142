"""The model of a run, made again from its directory."""

import numpy as np
import pytest

import sbpjax
import sbpjax as flow
from sbpjax.errors import ConfigError, SbpjaxError, TrainError
from sbpjax.train import load_run
from sbpjax.train.cli import main
from sbpjax.train.config import names
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
    latest = load_run(run, allow=("tests",))
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
    for step, requested in ((best, "best"), (4, None)):
        model = load_run("run", step=requested, allow=["tests.train"])
        assert model.loss(x, y).item() == pytest.approx(losses[step], rel=1e-5)
    plain = load_run("run", average=False, trust=True)
    assert abs(plain.loss(x, y).item() - model.loss(x, y).item()) > 1e-6


def test_wrong_calls(run, tmp_path):
    with pytest.raises(TrainError, match="no such directory"):
        load_run(tmp_path / "none")
    with pytest.raises(TrainError, match="no config.yaml"):
        load_run(tmp_path)
    with pytest.raises(TrainError, match=r"step 77; there are"):
        load_run(run, step=77, allow=("tests",))
    with pytest.raises(TrainError, match=r"step 'best'"):
        load_run(run, step="best", allow=("tests",))
    with pytest.raises(ConfigError, match=r"(?s)trainer\.model calls 'tests\.train\.cases:Tower'.*allow=\('tests',\)"):
        load_run(run)


LINEAR = "trainer:\n  model: {_call_: sbpjax.nn.layers.linear:Linear, _arguments_: [2, 2]}\n"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("trainer: 1\n", "a NoneType"),
        ("other: 1\n", "a NoneType"),
        ("trainer: {model: [1]}\n", "a list"),
        ("trainer: {model: '${a}'}\na: ${b}\nb: ${a}\n", "Recursive interpolation"),
        ("trainer: {model: {a: '${trainer.model}'}}\n", "Interpolation to parent"),
        ("trainer: {model: {a: '${b}'}}\nb: {c: '${trainer.model}'}\n", "deep in each other"),
        ("trainer: {model: '${oc.env:HOME}'}\n", "a str"),
        ("trainer: {model: '${oc.create:{_call_: os:system, _arguments_: [touch ran]}}'}\n", "calls 'os:system'"),
        ("a: {_call_: os:system, _arguments_: [touch ran]}\ntrainer: {model: '${a}'}\n", "calls 'os:system'"),
        ("trainer: {model: {_call_: sbpjax.nn.containers:Sequential, _arguments_: [3]}}\n", "Sequential"),
        ("trainer: {model: {_call_: sbpjax.nn.layers.linear:Linear, in_features: 2}}\n", "missing a required argument"),
        ("trainer: {model: {_call_: sbpjax.nn.layers.linear:Linear, _arguments_: 5}}\n", "5"),
        (LINEAR + "  hooks: 3\n", "hooks"),
        (LINEAR + "  hooks: {c: '${trainer}'}\n", "trainer.hooks: Interpolation to parent"),
        (LINEAR + "  hooks: {c: {_call_: '${none}'}}\n", "trainer.hooks: Interpolation key"),
        ("trainer: &a [*a]\n", "an alias"),
        ("a: 1\na: 2\n", "the name 'a' twice"),
        ("\xff", "can't decode"),
    ],
)
def test_a_file_that_is_damaged_or_of_a_stranger(text, seen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "config.yaml").write_text(f"# sbpjax {sbpjax.__version__}\n{text}", encoding="latin-1")
    with pytest.raises(SbpjaxError, match=seen) as error:
        load_run(tmp_path)
    assert "fix:" in str(error.value) and not (tmp_path / "ran").exists()


def test_values_that_stand_for_ever_more_values(tmp_path, monkeypatch):
    assert names.MOST_VALUES == 100_000
    monkeypatch.setattr(names, "MOST_VALUES", 2_000)  # to resolve all of them takes OmegaConf half a minute
    (tmp_path / "checkpoints").mkdir()
    lines = [f"a{i}: ['${{a{i + 1}}}', '${{a{i + 1}}}']\n" for i in range(40)]
    text = f"# sbpjax {sbpjax.__version__}\n{''.join(lines)}a40: 1\ntrainer: {{model: '${{a0}}'}}\n"
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match="at most 2,000 values"):
        load_run(tmp_path)
