"""Schedules of a graph: the file of rates that OneFlow's debug mode writes."""

import os
import socket

import pytest

import sbpjax as flow


class Step(flow.nn.Graph):
    def __init__(self, *rates):
        super().__init__()
        self.layers = flow.nn.ModuleList([flow.nn.Linear(2, 1) for _ in rates])
        groups = [{"params": layer.parameters(), "lr": rate} for layer, rate in zip(self.layers, rates, strict=True)]
        optimizer = flow.optim.SGD(groups)
        self.add_optimizer(optimizer, lr_sch=flow.optim.lr_scheduler.StepLR(optimizer, 2, 0.5))

    def build(self, x):
        loss = sum(layer(x).sum() for layer in self.layers)
        loss.backward()
        return loss


@pytest.mark.parametrize("value", ["1", "True", "0", None])
def test_debug_mode_writes_the_rate_of_each_step(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ONEFLOW_DEBUG_MODE", raising=False)
    if value is not None:
        monkeypatch.setenv("ONEFLOW_DEBUG_MODE", value)
    step = Step(0.1, 1.0)
    for _ in range(3):
        step(flow.ones(3, 2))
    file = tmp_path / "log" / socket.gethostname() / f"{os.getpid()}-train_step2lr.csv"
    if value in ("0", None):
        assert not (tmp_path / "log").exists()
        return
    rates = ["0, 0.100000", "0, 1.000000", "1, 0.100000", "1, 1.000000", "2, 0.050000", "2, 0.500000"]
    assert file.read_text().splitlines() == ["train_step, lr", *rates]
