"""What is recorded of the loss and the speed."""

import time
import types

import numpy as np
import pytest

from sbpjax.train import Evaluation
from sbpjax.train.hooks import log
from tests.train.cases import Points, losses, records, trainer


def test_a_record_is_the_mean_of_its_steps(tmp_path):
    trainer(tmp_path / "each").fit()
    trainer(tmp_path / "every", log_every=4).fit()
    each, every = losses(tmp_path / "each"), losses(tmp_path / "every")
    assert every == {4: pytest.approx(sum(each[i] for i in range(1, 5)) / 4), 6: pytest.approx((each[5] + each[6]) / 2)}


def test_the_first_step_which_compiles_is_not_timed(tmp_path):
    trainer(tmp_path).fit()
    first, second, *_, last = records(tmp_path).values()
    assert set(first) == {"loss", "lr", "grad_norm", "steps_left_out"}
    assert second["samples_per_s"] == pytest.approx(8e3 / second["step_ms"])
    assert last["eta_s"] == 0 and 0 <= last["data_ms"] < last["step_ms"] and last["host_memory_mb"] > 1


class Slow:
    """A loss that the devices need a while for."""

    def numpy(self):
        time.sleep(0.02)
        return np.ones(())


def test_steps_are_timed_by_the_devices_and_not_by_the_host(monkeypatch):
    """The host hands out steps at once; a loss is there when its step and those before it are done."""
    monkeypatch.setattr(log, "_LONG_S", 0.0)
    found, lines = {}, []
    run = types.SimpleNamespace(
        step=0, max_steps=8, batch_size=2, data_s=0.0, tokens_per_step=0, loss=Slow(), write_text=lines.append,
        optimizer=types.SimpleNamespace(param_groups=[{"lr": 0.1}]),
        record=lambda metrics, step: found.__setitem__(step, metrics),
    )  # fmt: skip
    monkeypatch.setattr(log, "peak_flops", lambda trainer: None)
    hook = log.Log(4)
    hook.before_run(run)
    for _ in range(8):
        run.step += 1
        hook.after_step(run)
    hook.after_run(run)
    assert lines == ["the first step took 0 s, with compilation; later steps use its program"]
    for step, last in ((4, 4), (8, 0)):
        assert found[step]["step_ms"] >= 19
        assert found[step]["eta_s"] == pytest.approx(last * found[step]["step_ms"] / 1e3)


def test_an_evaluation_is_not_timed(tmp_path):
    class Sleeps(Evaluation):
        def run(self, trainer):
            time.sleep(1.0)
            return {"validation/loss": 0.0}

    trainer(tmp_path, steps=8, log_every=2, hooks=[Sleeps(Points(8), every=2)]).fit()
    assert all(one["step_ms"] < 400 for step, one in records(tmp_path).items() if step > 2)


def test_mfu_is_held_against_the_peak(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "peak_flops", lambda trainer: 1e9)
    made = trainer(tmp_path)
    made.fit()
    last = records(tmp_path)[6]
    assert last["mfu"] == pytest.approx(log.flops_per_step(made) / 1e9 / (last["step_ms"] / 1e3))
