"""One run at a time in a directory: who has it is named, and a dead one lets go."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sbpjax.errors import TrainError
from sbpjax.train import run_lock
from sbpjax.train.run_lock import RunLock
from tests.train.cases import trainer

ROOT = Path(run_lock.__file__).parents[2]
HOLD = """
import os, sys, time
from pathlib import Path
from sbpjax.train.run_lock import RunLock
lock = RunLock(Path("run"))
lock.take()
if "fork" in sys.argv and os.fork() == 0:
    time.sleep(60)
    os._exit(0)
print("held", flush=True)
time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(run_lock, "_PATIENCE_S", 0.3)
    monkeypatch.setattr(run_lock, "_BEAT_S", 0.1)
    monkeypatch.setattr(run_lock, "_SILENCE_S", 1.5)


def holder(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", HOLD, *arguments]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def write(folder, **changed):
    record = run_lock._record() | changed
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run" / run_lock.NAME).write_text(json.dumps(record))
    return record


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("arguments", [[], ["fork"]], ids=["alone", "with a forked child"])
def test_a_living_owner_is_named_and_a_dead_one_lets_go(how, arguments, tmp_path):
    process = holder(tmp_path, *arguments)
    lock = RunLock(tmp_path / "run")
    with pytest.raises(TrainError) as raised:
        lock.take()
    lines = str(raised.value).splitlines()
    host = os.uname().nodename
    assert lines[0].startswith(f"beginning a run in {tmp_path / 'run'} (at ")
    assert lines[1].startswith(f"  seen: a run of process {process.pid} on {host}, which began ")
    assert lines[1].endswith((" s ago", " min ago")) and f"trainer.out={tmp_path / 'run'}-2" in lines[3]
    process.send_signal(how)
    process.wait()
    process.stdout.close()
    lock.take()
    assert lock.read()["pid"] == os.getpid()
    lock.release()


def test_a_lock_is_given_back_and_taken_again(tmp_path):
    first, second = RunLock(tmp_path), RunLock(tmp_path)
    first.take()
    first.take()
    with pytest.raises(TrainError, match=f"process {os.getpid()} on "):
        second.take()
    first.release()
    second.take()
    second.release()
    second.release()
    assert second.read() == {}


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"pid": "x", "host": 3, "began_s": "y"}'])
def test_a_damaged_record_hinders_nobody(text, tmp_path):
    (tmp_path / run_lock.NAME).write_text(text)
    lock = RunLock(tmp_path)
    lock.take()
    (tmp_path / run_lock.NAME).write_text(text)
    with pytest.raises(TrainError, match="a run of "):
        RunLock(tmp_path).take()
    lock.release()


def test_an_owner_on_another_machine_is_alive_while_it_counts(tmp_path):
    """As on a network file system whose locks stay on one machine."""
    record = write(tmp_path, host="elsewhere", boot="another", pid=7, began_s=time.time() - 7500)
    stop = threading.Event()

    def beat():
        while not stop.wait(0.1):
            record["beat"] += 1
            write(tmp_path, **record)

    thread = threading.Thread(target=beat)
    thread.start()
    with pytest.raises(TrainError, match="a run of process 7 on elsewhere, which began 2 h ago"):
        RunLock(tmp_path / "run").take()
    stop.set()
    thread.join()
    lock = RunLock(tmp_path / "run")
    lock.take()  # it counts no more
    assert lock.read()["pid"] == os.getpid()
    time.sleep(0.5)
    assert lock.read()["beat"] > 0
    lock.release()


@pytest.mark.parametrize("record", [{"host": os.uname().nodename}, {"boot": run_lock._record()["boot"]}])
def test_an_owner_that_died_on_this_machine_is_not_waited_for(record, tmp_path, monkeypatch):
    monkeypatch.setattr(run_lock, "_SILENCE_S", 60.0)
    write(tmp_path, **({"host": "container", "boot": "earlier", "pid": 7} | record))
    begun = time.monotonic()
    lock = RunLock(tmp_path / "run")
    lock.take()
    lock.release()
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(number, tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    first, second = RunLock(tmp_path / "run"), RunLock(tmp_path / "run")
    first.take()
    with pytest.raises(TrainError, match=f"a run of process {os.getpid()} on "):
        second.take()
    first.release()
    second.take()
    second.release()


def test_two_runs_in_one_directory(tmp_path):
    one, other = (trainer(tmp_path / "run") for _ in range(2))
    one.lock()
    with pytest.raises(TrainError, match="a run of process"):
        other.fit()
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
    before = one.fit()
    assert before and other.fit()
    one.lock()  # nothing has kept it
    one.unlock()
