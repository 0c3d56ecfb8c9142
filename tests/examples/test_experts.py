"""The recipe of experts: a few steps as on one device, with all-to-all; the loss falls; what a run leaves behind."""

import dataclasses
import sys

import numpy as np
import pytest

from examples.experts import train
from sbpjax import models

TINY = train.Options(steps=12, batch=8, context=16, lr=1e-2, warmup=2, every=6)
CONFIG = dataclasses.replace(train.CONFIG, hidden_size=32, intermediate_size=32, num_hidden_layers=1)
TOLERANCE = 2e-5  # relative, float32 sums in another order


def test_losses_are_those_of_one_device_and_fall():
    mesh, alone = (models.Parallel(**axes, device="cpu") for axes in ({"data": 2, "expert": 4}, {}))
    runs = [train.Run(TINY, spec, CONFIG) for spec in (mesh, alone)]
    ours, theirs = ([run.step(n) for n in range(TINY.steps)] for run in runs)
    np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE)
    assert ours[0] == pytest.approx(np.log(256), abs=0.2) and ours[-1] < ours[0] - 1.0
    assert runs[0].train.traffic().compiled["all-to-all"] > 0
    np.testing.assert_allclose(*(run.validation(batches=1) for run in runs), rtol=TOLERANCE)


def test_a_run_that_misses_its_score_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train, "CONFIG", CONFIG)
    monkeypatch.setattr(sys, "argv", ["train", "--out", str(tmp_path), "--steps", "2"])
    with pytest.raises(SystemExit) as ended:
        train.main()
    assert ended.value.code == 1
    assert f"wanted at most {train.SCORE}" in capsys.readouterr().out
    assert {file.name for file in tmp_path.iterdir()} == {"losses.csv", "loss.png", "model"}
    again = models.from_pretrained(tmp_path / "model")
    assert again.config.capacity_factor == 1.5 and again.config.num_local_experts == 8
