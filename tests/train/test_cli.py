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


def parse_error(*arguments):
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


@pytest.mark.parametrize("written, name", [("4", "trainer.max_steps"), ("${seed}", "seed")])
def test_a_resume_without_steps_left_says_so(written, name, folder, capsys):
    more = ["seed=4", f"trainer.max_steps={written}"]
    main([CONFIG, *more])
    capsys.readouterr()
    main([CONFIG, "--resume", *more])
    text = f"nothing to do: the run is at step 4, and max_steps is 4; pass {name}=8, for example"
    out = capsys.readouterr().out
    assert text in out.splitlines() and "resumed" not in out
    main([CONFIG, "--resume", *more, f"{name}=8"])
    assert "resumed at step 4" in capsys.readouterr().out and list(records(folder / "run"))[-1] == 8


@pytest.mark.parametrize("hooks", [[], ["trainer.hooks={}"]], ids=["checkpoints", "none"])
def test_an_interrupted_run_says_how_to_continue(hooks, folder, monkeypatch, capsys):
    from sbpjax.train.hooks.interrupt import StopOnInterrupt

    monkeypatch.setattr(StopOnInterrupt, "before_step", lambda self, trainer: setattr(self, "interrupted", True))
    with pytest.raises(SystemExit) as ended:
        main([CONFIG, *hooks])
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == 130 and "stopped at step 1: interrupt" in lines
    if hooks:
        assert lines[-1] == "step 1 was not saved: the run has no Checkpoints among hooks"
        return
    assert lines[-1] == "step 1 is saved in run; to continue, repeat the command with --resume"
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    main([CONFIG, "--resume"])
    assert "resumed at step 1" in capsys.readouterr().out and list(records(folder / "run")) == [1, 2, 3, 4]


def test_evaluation_alone(folder, capsys):
    main([CONFIG])
    capsys.readouterr()
    main([CONFIG, "--eval-only", "trainer.optimizer.lr=0.5"])  # a rate that an evaluation does not use
    found = json.loads(capsys.readouterr().out)
    assert found == {"step": 4, "validation/loss": records(folder / "run")[4]["validation/loss"]}


def test_a_fast_run_writes_nothing(folder, capsys):
    main([CONFIG, "--fast-dev-run", "trainer.max_steps=1000"])
    assert "step 2 of 2" in capsys.readouterr().out and not list(folder.iterdir())


def test_what_a_step_communicates(folder, capsys):
    main([CONFIG, "--explain"])
    assert "all-gather" in capsys.readouterr().out
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
    lines = parse_error()
    assert lines[1] == "  seen: a checkpoint of step 4" and lines[3] == "  fix:  --resume, or trainer.out=run-2"
    lines = parse_error("--resume", "trainer.model.drop=0.2")
    assert lines[1] == "  seen: trainer.model.drop: 0.1 → 0.2" and lines[3] == "  fix:  trainer.model.drop=0.1"
    assert (folder / "run" / "metrics.jsonl").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "seen", "fix"),
    [
        (["trainer.max_setps=3"], "no 'max_setps' in trainer", "trainer.max_steps=3"),
        (["--eval-only"], "no checkpoint in run", "train first, or trainer.out=RUN"),
        (["trainer.parallel.data=16"], "8 devices of type 'cpu'", "axes whose product is at most 8"),
        (["trainer.options.ampp=bfloat16"], "'ampp'", "options={'amp': …}"),
        (["trainer.hooks={}", "--eval-only"], "no Evaluation among hooks", "trainer.hooks = "),
    ],
)
def test_what_does_not_fit_is_told(folder, arguments, seen, fix):
    lines = parse_error(*arguments)
    assert f"seen: {seen}" in lines[1] and f"fix:  {fix}" in lines[3] and not (folder / "run").exists()


def test_a_run_that_is_alive_is_left_alone(folder, monkeypatch):
    from sbpjax.train import run_lock

    monkeypatch.setattr(run_lock, "_PATIENCE_S", 0.3)
    main([CONFIG])
    before = {path: path.read_bytes() for path in (folder / "run").rglob("*") if path.is_file()}
    lock = run_lock.RunLock(folder / "run")
    lock.take()
    for arguments in ([], ["--resume"], ["--resume", "trainer.max_steps=9"]):
        assert "a run of process" in parse_error(*arguments)[1]
    lock.release()
    after = {path: path.read_bytes() for path in before}
    assert {path for path in before if before[path] != after[path]} <= {folder / "run" / run_lock.NAME}
    main([CONFIG, "--eval-only"])
    main([CONFIG, "--resume", "trainer.max_steps=5"])


# What happened to a run's directory, and what "seen" and "fix" of its resume begin with.
DAMAGE = {
    "a text for a step": (("metrics.jsonl", b'{"step": "x"}\n{"step": 4}\n'), "line 1: ", "mend that line"),
    "metrics without UTF-8": (("metrics.jsonl", b'\xff\n{"step": 4}\n'), "line 1: ", "mend that line"),
    "a folder for metrics": (("metrics.jsonl", None), "IsADirectoryError: Is a dir", "move run/metrics.jsonl away"),
    "an empty configuration": (("config.yaml", b""), "a file without a version", "look for changes"),
    "a configuration without UTF-8": (("config.yaml", b"# sbpjax \xff"), "'utf-8' codec can't", "restore it"),
    "a list": (("config.yaml", b"HEAD[1, 2]"), "no names", "restore it"),
    "a very deep one": (("config.yaml", b"HEADa: " + b"[" * 5000), "maximum recursion", "restore it"),
    "no trainer": (("config.yaml", b"HEADseed: 3"), "run/config.yaml without a trainer.model", "restore it, or remove"),
    "a trainer that is a text": (
        ("config.yaml", b"HEADtrainer: 3"),
        "run/config.yaml without",
        "restore it, or remove",
    ),
    "a trainer without a model": (("config.yaml", b"HEADtrainer: {a: 1}"), "run/config.yaml without", "restore it, or"),
    "a circle": (("config.yaml", b"HEADtrainer: ${a}\na: ${trainer}"), "Recursive interp", "name an existing value"),
    "a circle of one": (("config.yaml", b"HEADtrainer: {model: '${.model}'}"), "Recursive interp", "name an"),
    "an interpolation to nowhere": (("config.yaml", b"HEADtrainer: {model: '${x.y}'}"), "Interpolation key", "name a"),
    "a folder for the configuration": (("config.yaml", None), "[Errno 21] Is a directory", "restore it"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_resume_in_a_damaged_directory_is_one_message(name, folder):
    import sbpjax

    (file, content), seen, fix = DAMAGE[name]
    main([CONFIG])
    path = folder / "run" / file
    if content is None:
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(content.replace(b"HEAD", f"# sbpjax {sbpjax.__version__}\n".encode()))
    lines = parse_error("--resume", "trainer.max_steps=6")
    assert f"seen: {seen}" in lines[1] and f"fix:  {fix}" in lines[3], lines


@pytest.mark.parametrize("failing", ["metrics.jsonl.part", "config.yaml.part", ".lock"])
def test_a_resume_on_a_full_disk_is_one_message(failing, folder, monkeypatch):
    import errno
    import os
    import pathlib

    main([CONFIG])
    write_text, write_bytes, pwrite = pathlib.Path.write_text, pathlib.Path.write_bytes, os.pwrite
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def of_a_path(write):
        def checked(self, *rest, **options):
            if self.name == failing:
                raise full
            return write(self, *rest, **options)

        return checked

    def of_a_number(*rest):
        if failing == ".lock":
            raise full
        return pwrite(*rest)

    monkeypatch.setattr(pathlib.Path, "write_text", of_a_path(write_text))
    monkeypatch.setattr(pathlib.Path, "write_bytes", of_a_path(write_bytes))
    monkeypatch.setattr(os, "pwrite", of_a_number)
    lines = parse_error("--resume", "trainer.max_steps=6")
    assert "seen: OSError: No space left on device" in lines[1] and "fix:  make room on the disk of run" in lines[3]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    main([CONFIG, "--resume", "trainer.max_steps=6"])
    assert list(records(folder / "run")) == [1, 2, 3, 4, 5, 6]


DIGITS = "9" * 5_000
NO_VALUES = [
    f"trainer.max_steps={DIGITS}",
    f"trainer.max_steps=-{DIGITS}",
    f"trainer.max_steps=0x{DIGITS}",
    f"trainer.max_steps=[{DIGITS}]",
    f"trainer.max_steps={{a: {DIGITS}}}",
    f"seed={DIGITS}",
    f"trainer.model.drop={DIGITS}",
    f"trainer.hooks.{DIGITS}=1",
    f"{DIGITS}=1",
    "trainer=3",
    "trainer=null",
    "trainer=${trainer}",
    "trainer=${nowhere}",
    "trainer.max_steps=${trainer.max_steps}",
    "trainer.out=${",
    "trainer.data=2020-01-01",
    "trainer.data=!!set {a, b}",
    "trainer.data=" + "[" * 5_000,
    "seed=${seed}",
    "seed=abc",
    "seed=null",
    "seed=1.5",
    "trainer..max_steps=3",
    "=3",
    "trainer.hooks.²=3",
]


@pytest.mark.parametrize("change", NO_VALUES, ids=[text[:40] for text in NO_VALUES])
def test_an_override_that_is_no_value_is_one_message(change, folder):
    lines = parse_error(change)
    assert max(map(len, lines)) < 800 and not (folder / "run").exists(), lines


@pytest.mark.aot
@pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs the extra aot")
def test_a_machine_that_is_not_there(folder, capsys):
    main([CONFIG, "--memory", "v5p:2x2x1", "trainer.parallel.data=2", "trainer.parallel.tensor=2"])
    out = capsys.readouterr().out
    assert "memory per device" in out and "all-reduce" in out and "modelled step time" in out and "MFU" in out
    assert not list(folder.iterdir())
