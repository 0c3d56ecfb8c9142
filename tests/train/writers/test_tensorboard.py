"""Scalars in TensorBoard's files."""

import struct
import sys

import pytest
from tensorboardX.proto import event_pb2

from sbpjax.errors import TrainError
from sbpjax.train.writers import TensorBoard


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
