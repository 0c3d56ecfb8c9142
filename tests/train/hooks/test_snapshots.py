"""Snapshots in memory: bitwise restores, damaged ones, and steps whose loss has NaN."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from sbpjax import models
from sbpjax.errors import TrainError
from sbpjax.train import Checkpoints, Hook, Snapshots, StepOptions
from tests.distributed.running import launch
from tests.train.cases import Points, records, trainer

MESH = {"parallel": models.Parallel(data=2, fsdp=2, device="cpu"), "options": StepOptions(zero=1)}


class Death(Hook):
    """Ends the run after a step, before that is saved."""

    def __init__(self, step):
        self.step = step

    def after_step(self, trainer):
        if trainer.step == self.step:
            raise KeyboardInterrupt


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("SBPJAX_SNAPSHOT_DIR", str(tmp_path / "memory"))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    return tmp_path / "memory"


def make(out, *hooks, **given):
    return trainer(out, hooks=[Checkpoints(every=4), Snapshots(every=1), *hooks], drop=0.1, **MESH, **given)


def generations(memory):
    return sorted(path.parent.name for path in memory.glob("*/step_*/00000"))


def test_a_resumed_run_takes_the_later_snapshot_and_goes_on_to_the_bit(tmp_path, memory):
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "run", Death(6), steps=8, schedule=None).fit()
    assert generations(memory) == ["step_000000003.0", "step_000000004.0", "step_000000005.0"]
    assert [path.stat().st_mode & 0o077 for path in (memory, *memory.iterdir())] == [0, 0]
    resumed = make(tmp_path / "run", steps=8, schedule=None)
    assert resumed.resume() and resumed.step == 5
    resumed.fit()
    whole = make(tmp_path / "alone", steps=8, schedule=None)
    whole.fit()
    for step in (6, 7, 8):
        assert records(tmp_path / "run")[step]["loss"] == records(tmp_path / "alone")[step]["loss"]
    for mine, theirs in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert mine.numpy().tobytes() == theirs.numpy().tobytes()


def test_a_later_epoch_is_resumed_from_though_it_has_an_earlier_step(tmp_path, memory):
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "run", Death(6), steps=8).fit()
    (run,) = memory.iterdir()
    (run / "step_000000004.0").rename(run / "step_000000004.1")
    resumed = make(tmp_path / "run", steps=8)
    assert resumed.resume() and resumed.step == 4


def test_epochs_that_are_counted_anew_have_later_names(tmp_path, memory, monkeypatch):
    monkeypatch.setenv("SBPJAX_JOB_EPOCH", "25")
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "run", Death(3), steps=8).fit()
    monkeypatch.setenv("SBPJAX_JOB_EPOCH", "1")
    resumed = make(tmp_path / "run", Death(6), steps=8)
    assert resumed.resume() and resumed.step == 2
    with pytest.raises(KeyboardInterrupt):
        resumed.fit()
    assert generations(memory) == ["step_000000003.26", "step_000000004.26", "step_000000005.26"]


def test_a_damaged_snapshot_is_not_read(tmp_path, memory):
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, Death(6)).fit()
    (latest,) = memory.glob("*/step_000000005.0/00000/arrays/00000.bin")
    data = bytearray(latest.read_bytes())
    data[100] ^= 1
    latest.write_bytes(data)
    resumed = make(tmp_path)
    assert resumed.resume() and resumed.step == 4  # of the disk, which is preferred to a snapshot of the same step
    for path in tmp_path.glob("snapshots.id"):
        path.unlink()
    resumed = make(tmp_path)
    assert resumed.resume() and not generations(memory)  # those of another run are removed


class Filler(Hook):
    """Fills the memory after one step, and frees it after another."""

    order = 0

    def __init__(self, memory, full, free, left):
        self.memory, self.full, self.free, self.left = memory, full, free, left

    def after_step(self, trainer):
        room = self.memory / "room"
        if trainer.step == self.full:
            next(hook for hook in trainer.hooks if isinstance(hook, Snapshots)).after_run(trainer)  # it is written
            room.write_bytes(bytes(shutil.disk_usage(self.memory).free - self.left))
        if trainer.step == self.free:
            room.unlink()


@pytest.fixture
def small_memory(tmp_path, monkeypatch):
    """Mount a file system of 256 KB for snapshots."""
    folder = tmp_path / "memory"
    folder.mkdir(mode=0o700)
    options = ["-t", "tmpfs", "-o", "size=256k,mode=700"]
    if subprocess.run(["mount", *options, "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    monkeypatch.setenv("SBPJAX_SNAPSHOT_DIR", str(folder))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    yield folder
    subprocess.run(["umount", folder], check=True)


def logged(caplog):
    return [record.getMessage() for record in caplog.records if "snapshot" in record.getMessage()]


@pytest.mark.parametrize(("left", "why"), [(0, "into 0 MB that are free"), (8192, "No space left on device")])
def test_training_goes_on_when_the_memory_is_full(left, why, tmp_path, small_memory, caplog):
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "run", Filler(small_memory, 2, 5, left), Death(7), steps=8, schedule=None).fit()
    assert generations(small_memory) == ["step_000000001.0", "step_000000005.0", "step_000000006.0"]
    assert not list(small_memory.rglob("*.partial"))
    failed, works = logged(caplog)
    assert why in failed and works == "snapshots can be written again"
    resumed = make(tmp_path / "run", steps=8, schedule=None)
    assert resumed.resume() and resumed.step == 6


def test_a_snapshot_takes_the_memory_of_an_old_one(tmp_path, small_memory, caplog):
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "run", Filler(small_memory, 5, 0, 0), Death(8), steps=9, schedule=None).fit()
    assert generations(small_memory) == ["step_000000005.0", "step_000000006.0", "step_000000007.0"]
    assert not logged(caplog)
    resumed = make(tmp_path / "run", steps=9, schedule=None)
    assert resumed.resume() and resumed.step == 7


@pytest.mark.exhaustive
def test_hosts_with_their_own_parts_resume_from_memory(tmp_path):
    def run(folder, last, axis="fsdp"):
        """Return the steps at which the two ranks go on."""
        script = ("-m", "tests.train.hooks.two_hosts", folder, last, axis)
        code, out, err = launch("--nproc_per_node", 2, "--cpu_devices", 1, *script)
        assert code == 0, out + err
        return sorted(re.findall(r"rank (\d) goes on at step (\d)", out))

    def expect_losses(folder):
        found, whole = records(folder / "run"), records(tmp_path / "whole" / "run")
        assert [found[step]["loss"] for step in whole] == [whole[step]["loss"] for step in whole]

    at_0, at_4 = [("0", "0"), ("1", "0")], [("0", "4"), ("1", "4")]
    for name, last in (("whole", 6), ("lost", 4), ("killed", 4)):
        assert run(tmp_path / name, last) == at_0
    for name in ("killed", "lost"):
        shutil.copytree(tmp_path / name, tmp_path / f"{name} again")
    assert run(tmp_path / "killed", 6) == at_4
    expect_losses(tmp_path / "killed")
    assert run(tmp_path / "killed again", 6, "data") == at_4  # both have all parts, so another mesh may be taken
    shutil.rmtree(tmp_path / "lost" / "memory1")
    assert run(tmp_path / "lost", 6) == at_4  # from the copies on host 0
    expect_losses(tmp_path / "lost")
    shutil.rmtree(tmp_path / "lost again" / "memory1")
    for copy in (tmp_path / "lost again" / "memory0").glob("*/step_*/00001"):
        shutil.rmtree(copy)
    assert run(tmp_path / "lost again", 6) == at_0  # nor is there a checkpoint on the disk


class OneBad(Points):
    """A sample that has NaN."""

    def sample(self, number):
        x, y = super().sample(number)
        return (x, y * np.nan) if number == 25 else (x, y)


def test_a_run_goes_back_before_a_step_with_nan(tmp_path):
    given = {"guard": False, "data": OneBad(48), "hooks": [Snapshots(every=1, rewinds=1)]}
    made = trainer(tmp_path, **given)
    made.fit()
    losses = [one["loss"] for one in records(tmp_path).values()]
    assert [np.isfinite(float(loss)) for loss in losses] == [True, True, True, False, False, True]
    assert all(np.isfinite(parameter.numpy()).all() for parameter in made.model.parameters())


@pytest.mark.parametrize("options", [{"every": 0}, {"rewinds": -1}])
def test_wrong_options(options):
    with pytest.raises(TrainError, match="every is a number of steps"):
        Snapshots(**options)
