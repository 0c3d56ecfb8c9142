"""A save that fails, one that is killed, two at once: nothing is left behind, nothing that lives is taken away."""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

import sbpjax as flow
from sbpjax import checkpoint, errors
from sbpjax.data.checkpoint import blocks, partial

BIG = 1 << 16  # bytes; a file may have no more while the disk is "full"


@pytest.fixture
def full_disk():
    """No file grows beyond 64 kB, which fails as a full disk does: an OSError in the middle of writing."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill(full=True):
        resource.setrlimit(resource.RLIMIT_FSIZE, (BIG if full else before[0], before[1]))

    try:
        yield fill
    finally:
        fill(False)
        signal.signal(signal.SIGXFSZ, handler)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_full_disk_leaves_nothing_and_is_said_once(asynchronous, full_disk, tmp_path):
    manager = checkpoint.Manager(tmp_path, keep_last=2, asynchronous=asynchronous)
    for step in (1, 2):
        manager.save(step, {"x": flow.full((4,), float(step))})
    manager.wait()
    full_disk()
    with pytest.raises(errors.CheckpointError) as raised:
        manager.save(3, {"x": flow.ones(BIG)})
        manager.save(4, {"x": flow.ones(4)})
    text = str(raised.value)
    assert "rank 0: OSError: [Errno 27]" in text and "\n  fix:  " in text and len(text.splitlines()) == 4
    assert raised.value.__cause__ is None and raised.value.__suppress_context__ | (raised.value.__context__ is None)
    assert names(tmp_path) == ["step_000000001", "step_000000002"]
    manager.wait()  # it was said
    full_disk(False)
    for step in (5, 6):
        manager.save(step, {"x": flow.ones(BIG)})
    manager.wait()
    assert names(tmp_path) == ["step_000000005", "step_000000006"]


def test_old_ones_go_even_when_the_new_one_fails(full_disk, tmp_path):
    manager = checkpoint.Manager(tmp_path, keep_last=None)
    for step in (1, 2, 3):
        manager.save(step, {"x": flow.ones(4)})
    manager.wait()
    full_disk()
    manager = checkpoint.Manager(tmp_path, keep_last=1)
    manager.save(4, {"x": flow.ones(BIG)})
    with pytest.raises(errors.CheckpointError):
        manager.wait()
    assert names(tmp_path) == ["step_000000003"]


def test_a_full_disk_and_safetensors(full_disk, tmp_path):
    full_disk()
    with pytest.raises(errors.CheckpointError, match="OSError"):
        checkpoint.save_safetensors({"x": flow.ones(BIG), "y": flow.ones(2)}, tmp_path / "x.safetensors")
    assert names(tmp_path) == []


def test_what_a_killed_run_left_is_removed_by_the_next_one(tmp_path):
    writer = (
        "import sys, time, sbpjax as flow\n"
        "from sbpjax.data.checkpoint import blocks\n"
        "blocks.write = lambda *_: (print('writing', flush=True), time.sleep(100))\n"
        "manager = flow.checkpoint.Manager(sys.argv[1]); manager.save(7, {'x': flow.ones(3)})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", writer, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    assert names(tmp_path) == [".step_000000007.lock", "step_000000007.partial"]
    manager = checkpoint.Manager(tmp_path)  # the writer lives: its files are left alone
    assert names(tmp_path) == [".step_000000007.lock", "step_000000007.partial"]
    with pytest.raises(errors.CheckpointError, match="being written by a process that is alive"):
        manager.save(7, {"x": flow.ones(3)})
    process.kill()
    process.communicate()
    assert "step_000000007.partial" in names(tmp_path)
    (tmp_path / "step_000000008.partial").mkdir()  # of a version without locks
    (tmp_path / "notes.partial").mkdir()  # not ours
    manager.save(9, {"x": flow.ones(3)})
    manager.wait()
    assert names(tmp_path) == ["notes.partial", "step_000000009"]


def test_two_saves_of_one_path_follow_each_other(tmp_path):
    savings = [checkpoint.save({"x": flow.ones(3) * i}, tmp_path / "c", asynchronous=True) for i in range(5)]
    for saving in savings:
        saving.wait()
    assert checkpoint.load(tmp_path / "c")["x"].tolist() == [4, 4, 4] and names(tmp_path) == ["c"]


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(partial.fcntl, "flock", refuse)
    (tmp_path / "step_000000001.partial").mkdir()
    manager = checkpoint.Manager(tmp_path)
    assert "step_000000001.partial" in names(tmp_path)  # whose it is cannot be known
    manager.save(1, {"x": flow.ones(3)})
    manager.wait()
    assert manager.steps() == [1] and "step_000000001.partial" not in names(tmp_path)


def test_a_lock_file_that_was_removed_meanwhile_is_not_a_lock(tmp_path):
    target = tmp_path / "c"
    first = partial._lock(target)
    late = os.open(tmp_path / ".c.lock", os.O_RDWR)  # another writer opened it, and waits
    partial._release(target, first)
    fcntl.flock(late, fcntl.LOCK_EX | fcntl.LOCK_NB)
    second = partial._lock(target)  # a lock on a file that has no name any more excludes nobody
    assert second is not None
    partial._release(target, second)
    os.close(late)


def test_manager_as_a_context(tmp_path, monkeypatch):
    write = blocks.write
    monkeypatch.setattr(blocks, "write", lambda *arguments: (time.sleep(0.2), write(*arguments)))
    with checkpoint.Manager(tmp_path) as manager:
        manager.save(1, {"x": flow.ones(3)})
        assert manager.steps() == []
    assert manager.steps() == [1]
    with pytest.raises(ZeroDivisionError), checkpoint.Manager(tmp_path) as manager:
        manager.save(2, {"x": flow.ones(3)})
        1 / 0  # noqa: B018
    assert manager.steps() == [1, 2]


def test_a_checkpoint_without_its_checksums_is_passed_over_and_said_once(tmp_path, caplog):
    manager = checkpoint.Manager(tmp_path, asynchronous=False)
    for step in (1, 2):
        manager.save(step, {"a": step})
        (tmp_path / f"step_{step:09d}" / "checksums.json").rename(tmp_path / f"sums{step}")
    assert manager.restore() is None and manager.restore() is None
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2 and all(
        "was not written to the end (or its checksums.json is gone)" in t for t in messages
    )
    assert "step_000000001" in messages[0] and "step_000000002" in messages[1]
    (tmp_path / "sums1").rename(tmp_path / "step_000000001" / "checksums.json")
    assert manager.restore() == (1, {"a": 1})
