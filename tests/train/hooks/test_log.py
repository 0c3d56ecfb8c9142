"""What is recorded of the loss and the speed."""

import pytest

from tests.train.cases import losses, records, trainer


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


def test_mfu_is_held_against_the_peak(tmp_path, monkeypatch):
    from sbpjax.train.hooks import log

    monkeypatch.setattr(log, "peak_flops", lambda trainer: 1e9)
    made = trainer(tmp_path)
    made.fit()
    last = records(tmp_path)[6]
    assert last["mfu"] == pytest.approx(log.flops_per_step(made) / 1e9 / (last["step_ms"] / 1e3))
