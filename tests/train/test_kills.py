"""Runs that are killed at any moment, and started again, train as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from sbpjax import checkpoint
from tests.train.cases import records

# An interrupt ends it also where pytest runs as a background job of a shell, whose children ignore SIGINT.
MAIN = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from sbpjax.train.cli import main; main()"
)
COMMAND = [sys.executable, "-c", MAIN, "tests.train.slow_config"]
STEPS = 60
EXIT_RESTART = 75


def start(folder, *arguments):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    env = os.environ | {"PYTHONPATH": root}
    return subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=env, stdout=subprocess.PIPE, text=True)


def until(process, file, size):
    """Wait until the run has written some steps more; say whether it still runs."""
    end = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < end:
        if file.exists() and file.read_text().count("\n") >= size:
            return True
        time.sleep(0.005)
    return process.poll() is None


def lines(file):
    return file.read_text().count("\n") if file.exists() else 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return what a run records that nobody kills, and its directory."""
    folder = tmp_path_factory.mktemp("whole")
    process = start(folder, "trainer.hooks.slow=null")
    process.communicate(timeout=300)
    assert process.returncode == 0
    return records(folder / "run"), folder / "run"


def killed(folder, kills, seed, whole):
    """Kill a run some times, let it end, and compare it with one that was not killed."""
    chance, file = random.Random(seed), folder / "run" / "metrics.jsonl"
    for _ in range(kills):
        process = start(folder, "--resume")
        # Somewhere in the next steps; also while a checkpoint is written, or before the first.
        if until(process, file, lines(file) * (lines(file) < 3 * STEPS) + chance.randint(1, 6)):
            time.sleep(chance.random() * 0.1)
            process.send_signal(signal.SIGKILL)
        process.communicate()
    process = start(folder, "--resume")
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    expected, directory = whole
    found = records(folder / "run")
    assert list(found) == list(expected) == list(range(1, STEPS + 1))
    for step in expected:
        for name in ("loss", "lr", "validation/loss"):
            assert found[step].get(name) == expected[step].get(name), (step, name)
    ours, theirs = (checkpoint.Manager(path / "checkpoints") for path in (folder / "run", directory))
    assert ours.steps() == theirs.steps()
    model = [checkpoint.load(m.path(STEPS), part="state")["model"] for m in (ours, theirs)]
    assert all((model[0][name].numpy() == model[1][name].numpy()).all() for name in model[1])
    assert not list((folder / "run").rglob("*.part*"))


@pytest.mark.slow
def test_a_run_that_is_killed(tmp_path, whole):
    killed(tmp_path, 2, 1, whole)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_run_that_is_killed_twenty_times(tmp_path, whole):
    killed(tmp_path, 20, 2, whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "says"),
    [(signal.SIGTERM, EXIT_RESTART, "stopping by request: saved"), (signal.SIGINT, 130, "stopped")],
)
def test_a_run_that_is_told_to_stop_saves_and_is_started_again(number, code, says, tmp_path, whole):
    file = tmp_path / "run" / "metrics.jsonl"
    process = start(tmp_path)
    assert until(process, file, 6)
    process.send_signal(number)
    out, _ = process.communicate(timeout=300)
    assert process.returncode == code and f"{says} at step" in out
    step = int(out.rpartition(f"{says} at step ")[2].split()[0].rstrip(":"))
    assert checkpoint.Manager(tmp_path / "run" / "checkpoints").latest() == step
    process = start(tmp_path, "--resume", "trainer.hooks.slow=null")
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0 and f"resumed at step {step}" in out
    assert {n: one["loss"] for n, one in records(tmp_path / "run").items()} == {
        n: one["loss"] for n, one in whole[0].items()
    }
