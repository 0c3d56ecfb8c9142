"""The file of metrics is whole at every moment, and is that of the run."""

import errno
import json
import os
import resource
import signal

import pytest

from sbpjax.errors import TrainError
from sbpjax.train.writers import JsonLines


def read(path):
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def test_what_is_behind_the_step_of_a_resume_goes(tmp_path):
    first = JsonLines()
    first.open(tmp_path, 0, 9)
    for step in (1, 2, 3):
        first.write(step, {"loss": step / 2})
        assert read(tmp_path)[-1] == {"step": step, "loss": step / 2}  # on the disk at once
    first.close()
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')  # a run that was killed
    again = JsonLines()
    again.open(tmp_path, 2, 9)
    again.write(3, {"loss": 7.0})
    again.close()
    assert [(one["step"], one["loss"]) for one in read(tmp_path)] == [(1, 0.5), (2, 1.0), (3, 7.0)]


def test_a_run_that_begins_anew_keeps_the_file_of_the_one_before(tmp_path):
    for number in range(3):
        writer = JsonLines()
        writer.open(tmp_path, 0, 9)
        writer.write(1, {"loss": float(number)})
        writer.close()
    assert read(tmp_path) == [{"step": 1, "loss": 2.0}]
    for number, name in enumerate(("metrics.1.jsonl", "metrics.2.jsonl")):
        assert json.loads((tmp_path / name).read_text()) == {"step": 1, "loss": float(number)}


def test_what_is_no_number_is_written_by_name(tmp_path):
    writer = JsonLines()
    writer.open(tmp_path, 0, 9)
    writer.write(1, {"loss": float("nan"), "bound": float("inf")})
    assert read(tmp_path) == [{"step": 1, "loss": "nan", "bound": "inf"}]
    writer.close()
    JsonLines().write(1, {"loss": 1.0})  # without a directory: nowhere


WHOLE = b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 1.0}\n'
NO_RECORDS = {
    "a text for a step": b'{"step": "x"}',
    "true for a step": b'{"step": true}',
    "no step": b'{"loss": 1}',
    "a step that is no number": b'{"step": NaN}',
    "a list": b"[1, 2]",
    "a number": b"3",
    "half a line": b'{"step": 4, "lo',
    "no UTF-8": b'{"step": 4, "\xff\xfe": 1}',
    "zeros": b"\0" * 30,
    "very deep": b"[" * 100_000,
    "many digits": b'{"step": ' + b"9" * 5_000 + b"}",
}


@pytest.mark.parametrize("line", NO_RECORDS.values(), ids=NO_RECORDS)
def test_damage_at_the_end_goes_and_damage_before_is_refused(line, tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(WHOLE + line)
    writer = JsonLines()
    writer.open(tmp_path, 2, 9)
    writer.close()
    assert path.read_bytes() == WHOLE
    path.write_bytes(line + b"\n" + WHOLE)
    with pytest.raises(TrainError, match=r"(?s)seen: line 1: .*rule: each line.*fix:  mend that line, or: mv "):
        writer.open(tmp_path, 2, 9)
    assert path.read_bytes() == line + b"\n" + WHOLE


def test_what_is_no_file_of_this_user_is_refused(tmp_path, monkeypatch):
    (tmp_path / "metrics.jsonl").mkdir()
    for step in (0, 2):
        with pytest.raises(TrainError, match=r"(?s)seen: IsADirectoryError.*fix:  move .*metrics.jsonl away"):
            JsonLines().open(tmp_path, step, 9)
    (tmp_path / "metrics.jsonl").rmdir()
    denied = OSError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / "metrics.jsonl"))
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(denied))  # the tests may be run by root
    with pytest.raises(TrainError, match="(?s)Permission denied.*fix:  rights to read and write .*metrics.jsonl"):
        JsonLines().open(tmp_path, 0, 9)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path):
    """No file grows beyond 64 kB, which fails as a full disk does."""
    path = tmp_path / "metrics.jsonl"
    record = b'{"step": 1, "loss": 0.5}\n'
    path.write_bytes(record * 4_000)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, before[1][1]))
    try:
        with pytest.raises(TrainError, match="(?s)seen: OSError: File too large.*fix:  make room on the disk"):
            JsonLines().open(tmp_path, 1, 9)
        assert path.read_bytes() == record * 4_000
        path.write_bytes(record * 2_500)
        writer = JsonLines()
        writer.open(tmp_path, 1, 9)
        with pytest.raises(TrainError, match="File too large"):
            for _ in range(1_000):
                writer.write(2, {"loss": 1.0})
    finally:
        signal.signal(signal.SIGXFSZ, before[0])
        resource.setrlimit(resource.RLIMIT_FSIZE, before[1])
    writer.close()
