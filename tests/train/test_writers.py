"""Writers: what each leaves on the disk or the console, resumed and damaged files."""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import signal
import struct
import sys
import types

import pytest
from rich.console import Console
from tensorboardX.proto import event_pb2

from sbpjax.errors import TrainError
from sbpjax.train.writers import JsonLines, LineWriter, ProgressBarWriter, TensorBoard, WandB, console_writer


def test_lines(capsys):
    writer = LineWriter()
    writer.open(None, 0, 1000)
    writer.write(20, {"loss": 4.10456, "lr": 2e-4, "tokens_per_s": 12345.6, "data_ms": 1.0})
    writer.write(30, {"validation/loss": 3.5})
    assert capsys.readouterr().out == (
        "step    20 of 1,000   loss 4.105   lr 0.0002   12,346 tokens/s\nstep    30 of 1,000   validation/loss 3.5\n"
    )


def test_a_bar(monkeypatch):
    file = io.StringIO()
    bar = ProgressBarWriter(Console(file=file, force_terminal=True, width=120))
    bar.open(None, 5, 20)
    bar.write(10, {"loss": 4.10456, "tokens_per_s": 12345.6, "eta_s": 3.0})
    bar.write(10, {"validation/loss": 3.5})
    bar.write_text("hello [bold]")
    bar.close()
    text = file.getvalue()
    assert "10/20" in text and "loss 4.105   12,346 tokens/s" in text
    assert "step 10   validation/loss 3.5" in text and "hello [bold]" in text


def test_lines_before_and_after_the_bar(capsys):
    file = io.StringIO()
    for bar, text in (
        (ProgressBarWriter(Console(file=file)), file.getvalue),
        (ProgressBarWriter(), lambda: capsys.readouterr().out),
    ):
        bar.write_text("resumed [at] step 3")
        bar.close()
        bar.open(None, 3, 20)
        bar.close()
        bar.write_text("the end")
        found = text()
        assert found.index("resumed [at] step 3") < found.index("3/20") < found.index("the end")


def test_which_one(monkeypatch):
    assert isinstance(console_writer(), LineWriter)  # pytest's stdout is no terminal
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert isinstance(console_writer(), ProgressBarWriter)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert isinstance(console_writer(), LineWriter)


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


def events(folder):
    for path in sorted(folder.glob("events*")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            yield event_pb2.Event.FromString(data[at + 12 : at + 12 + size])
            at += size + 16


def scalars(folder):
    return [(e.step, v.tag, round(v.simple_value, 4)) for e in events(folder) for v in e.summary.value]


def test_scalars(tmp_path):
    writer = TensorBoard()
    writer.open(tmp_path, 0, 9)
    writer.write(1, {"loss": 2.5, "validation/loss": 3.0})
    writer.close()
    assert scalars(tmp_path / "tensorboard") == [(1, "loss", 2.5), (1, "validation/loss", 3.0)]
    again = TensorBoard()
    again.open(tmp_path, 4, 9)
    again.write(5, {"loss": 1.5})
    again.close()
    assert (5, "loss", 1.5) in scalars(tmp_path / "tensorboard")
    restarts = [e for e in events(tmp_path / "tensorboard") if e.HasField("session_log")]
    assert [e.step for e in restarts] == [5]  # what came behind step 4 before does not count


def test_what_it_needs(tmp_path, monkeypatch):
    with pytest.raises(TrainError, match='out="run7"'):
        TensorBoard().open(None, 0, 9)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(TrainError, match=r"pip install .*\"tensorboardX>="):
        TensorBoard()


def test_an_offline_run(tmp_path, monkeypatch):
    calls = []

    class Run:
        def log(self, metrics, step):
            calls.append(("log", metrics, step))

        def finish(self):
            calls.append("finish")

    def init(**options):
        calls.append(options)
        return Run()

    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=init))
    writer = WandB("texts")
    writer.open(tmp_path / "run7", 0, 9)
    writer.write(3, {"loss": 2.0})
    writer.close()
    options = {"project": "texts", "name": "run7", "dir": str(tmp_path / "run7"), "mode": "offline"}
    assert calls == [options, ("log", {"loss": 2.0}, 3), "finish"]
    with pytest.raises(TrainError, match='out="run7"'):
        writer.open(None, 0, 9)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(TrainError, match="pip install wandb"):
        WandB()
