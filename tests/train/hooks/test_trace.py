"""Some steps under the profiler."""

import pytest

from sbpjax.errors import TrainError
from sbpjax.train import Trace
from tests.train.cases import trainer


def test_a_trace_is_left(tmp_path):
    trainer(tmp_path, steps=4, hooks=[Trace(first=2, steps=2)]).fit()
    assert list((tmp_path / "trace").rglob("*.xplane.pb"))


def test_a_run_that_ends_before_ends_the_trace(tmp_path):
    trainer(tmp_path / "a", steps=3, hooks=[Trace(first=3, steps=9)]).fit()
    trainer(tmp_path / "b", steps=3, hooks=[Trace(first=3, steps=1)]).fit()  # the profiler is free again
    assert list((tmp_path / "b" / "trace").rglob("*.xplane.pb"))


def test_wrong_arguments():
    with pytest.raises(TrainError, match="first=10, steps=3"):
        Trace(first=0)
    with pytest.raises(TrainError, match='out="run7"'):
        trainer(hooks=[Trace(first=1)]).fit()
