"""An offline run of W&B, as its API is called; the package itself is optional."""

import sys
import types

import pytest

from sbpjax.errors import TrainError
from sbpjax.train.writers import WandB


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
