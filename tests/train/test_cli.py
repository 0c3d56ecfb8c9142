"""The command: runs, goes on, evaluates, explains, and tells in one message what does not fit."""

import importlib.util
import json

import pytest

from sbpjax.train.cli import main
from tests.train.cases import records

CONFIG = "tests.train.run_config"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(*arguments):
    """Return the error of a command, in its four lines."""
    with pytest.raises(SystemExit) as ended:
        main([CONFIG, *arguments])
    lines = str(ended.value.code).splitlines()
    assert lines[0].startswith("error: ") and len(lines) == 4, ended.value.code
    return lines


def test_a_run_and_its_resume(folder, capsys):
    main([CONFIG, "trainer.max_steps=6", "trainer.out=whole"])
    main([CONFIG])
    main(["run/config.yaml", "--allow", "tests", "--resume", "trainer.max_steps=6"])
    out = capsys.readouterr().out
    assert "changed since the run was begun: trainer.max_steps: 4 → 6" in out and "resumed at step 4" in out
    whole, parts = records(folder / "whole"), records(folder / "run")
    assert list(whole) == list(parts) == [1, 2, 3, 4, 5, 6]
    for step in whole:
        assert parts[step]["loss"] == whole[step]["loss"] and parts[step]["lr"] == whole[step]["lr"]


def test_evaluation_alone(folder, capsys):
    main([CONFIG])
    capsys.readouterr()
    main([CONFIG, "--eval-only"])
    found = json.loads(capsys.readouterr().out)
    assert found == {"step": 4, "validation/loss": records(folder / "run")[4]["validation/loss"]}


def test_a_fast_run_writes_nothing(folder, capsys):
    main([CONFIG, "--fast-dev-run", "trainer.max_steps=1000"])
    assert "step 2 of 2" in capsys.readouterr().out and not list(folder.iterdir())


def test_what_a_step_communicates(folder, capsys):
    main([CONFIG, "--explain"])
    assert "all_gather" in capsys.readouterr().out
    main([CONFIG, "--explain", "--auto"])
    assert "layouts chosen" in capsys.readouterr().out and not list(folder.iterdir())


def test_the_planner_s_layouts_train_alike(folder):
    main([CONFIG])
    main([CONFIG, "--auto", "trainer.out=auto"])
    by_table, by_planner = records(folder / "run"), records(folder / "auto")
    for step in by_table:
        assert by_planner[step]["loss"] == pytest.approx(by_table[step]["loss"], rel=1e-5)


def test_a_restart_by_the_launcher_goes_on(folder, monkeypatch, capsys):
    main([CONFIG, "trainer.max_steps=2"])
    monkeypatch.setenv("RESTART_COUNT", "1")
    main([CONFIG])
    assert "resumed at step 2" in capsys.readouterr().out and list(records(folder / "run")) == [1, 2, 3, 4]


def test_a_directory_with_checkpoints_is_not_overwritten(folder):
    main([CONFIG])
    before = (folder / "run" / "metrics.jsonl").read_text()
    lines = told()
    assert lines[1] == "  seen: a checkpoint of step 4" and lines[3] == "  fix:  --resume, or trainer.out=run-2"
    lines = told("--resume", "trainer.model.drop=0.2")
    assert lines[1] == "  seen: trainer.model.drop: 0.1 → 0.2" and lines[3] == "  fix:  trainer.model.drop=0.1"
    assert (folder / "run" / "metrics.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "seen", "fix"),
    [
        (["trainer.max_setps=3"], "no 'max_setps' in trainer", "trainer.max_steps=3"),
        (["--eval-only"], "no checkpoint in run", "train first, or trainer.out=RUN"),
        (["trainer.parallel.data=16"], "8 devices of type 'cpu'", "make an axis smaller"),
        (["trainer.options.ampp=bfloat16"], "'ampp'", "options={'amp': …}"),
        (["trainer.hooks={}", "--eval-only"], "no Evaluation among hooks", "trainer.hooks = "),
    ],
)
def test_what_does_not_fit_is_told(folder, arguments, seen, fix):
    lines = told(*arguments)
    assert f"seen: {seen}" in lines[1] and f"fix:  {fix}" in lines[3] and not (folder / "run").exists()


@pytest.mark.aot
@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs the extra aot")
def test_a_machine_that_is_not_there(folder, capsys):
    main([CONFIG, "--memory", "v5p:2x2x1", "trainer.parallel.data=2", "trainer.parallel.tensor=2"])
    out = capsys.readouterr().out
    assert "memory per device" in out and "all-reduce" in out and "modelled step time" in out and "MFU" in out
    assert not list(folder.iterdir())
