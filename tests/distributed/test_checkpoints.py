"""Checkpoints between process counts: saved by one process and loaded by two, and the other way round."""

import pytest

import sbpjax as flow
from sbpjax import checkpoint

from .running import SCRIPTS, launch, passed


def test_between_one_and_two_processes(tmp_path):
    where = flow.placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    w = flow.arange(24, dtype=flow.float32, placement=where, sbp=[flow.sbp.broadcast] * 2).reshape(6, 4)
    w = w.to_global(sbp=[flow.sbp.split(1), flow.sbp.split(0)])
    checkpoint.save({"w": w, "step": 5}, tmp_path / "one")
    passed("checkpoints.py", 2, 2, tmp_path)
    loaded = checkpoint.load(tmp_path / "two", placement=where, sbp=[flow.sbp.broadcast, flow.sbp.split(0)])
    assert loaded["even"].numpy().ravel().tolist() == list(range(32))
    assert loaded["uneven"].tolist() == list(range(7)) and loaded["last"].tolist() == list(range(6))
    assert loaded["sum"].tolist() == [[2.0] * 3] * 2 and loaded["local"].tolist() == [0.0] and loaded["rank"] == 0
    assert not (tmp_path / "never").exists()
    assert flow.load(tmp_path / "plain")["x"].shape == (8, 4)


@pytest.mark.parametrize("kills, steps", [(2, 12), pytest.param(20, 200, marks=pytest.mark.exhaustive)])
def test_training_survives_kills_at_random_moments(kills, steps, tmp_path):
    options = ["--nproc_per_node", 2, "--cpu_devices", 1, "--max_restarts", kills]
    code, out, err = launch(*options, SCRIPTS / "survivor.py", tmp_path, kills, steps)
    assert code == 0, f"{out[-2000:]}\n{err[-6000:]}"
    assert err.count("was killed by SIGKILL") == kills and out.count("of 2 passed") == 2
