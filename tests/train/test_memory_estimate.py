"""Counts of products, and the peak they are held against."""

from dataclasses import replace

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models
from sbpjax.auto import PRESETS
from sbpjax.errors import TrainError
from sbpjax.train import StepOptions
from sbpjax.train import memory_estimate as sizing
from tests.train.cases import HIDDEN, WIDTH, trainer


@pytest.mark.parametrize("options", [StepOptions(), StepOptions(accumulate=2, checkpointing=True)])
@pytest.mark.parametrize("mesh", [{}, {"data": 2, "pipeline": 2}])
def test_the_products_of_a_step_are_three_times_those_of_its_forward(mesh, options):
    made = trainer(parallel=models.Parallel(**mesh, device="cpu"), options=options)
    assert sizing.flops_per_step(made) == 3 * 2 * 8 * (2 * WIDTH * HIDDEN) * 2  # two blocks of two matrices, eight rows


def test_loops_count_as_often_as_they_run():
    import jax

    def run(x):
        return jax.lax.scan(lambda c, _: (c @ c, None), x, length=5)[0]

    assert sizing.flops_of(jax.make_jaxpr(run)(np.zeros((4, 4), np.float32)).jaxpr) == 5 * 2 * 4**3


def test_peaks_are_those_of_the_data_sheet(monkeypatch):
    made = trainer(parallel=models.Parallel(data=2, device="cpu"))
    assert sizing.peak_flops(made) is None  # a CPU has none
    monkeypatch.setattr(sizing, "preset_of", lambda where: PRESETS["h100"])
    assert sizing.peak_flops(made) == 2 * PRESETS["h100"].flops_f32
    made.options = StepOptions(amp="bfloat16")
    assert sizing.peak_flops(made) == 2 * PRESETS["h100"].flops_bf16


def test_a_step_takes_no_less_than_its_products_at_the_peak(monkeypatch):
    """By the machine's own prices, not by those that a plan of fixed layouts is chosen by."""
    slow = replace(PRESETS["v5e"], flops_f32=1e9)
    monkeypatch.setattr(sizing, "preset_of", lambda where: slow)
    monkeypatch.setattr(sizing, "of_placement", lambda where: slow)
    made = trainer(parallel=models.Parallel(data=2, device="cpu"))
    arguments, named = made.abstract_batch()
    made.train_step.build_graph(*arguments, **named)
    assert sizing.modelled_s(made) >= sizing.flops_per_step(made) / sizing.peak_flops(made)
    assert "MFU" in sizing.format_modelled_time(made)


def test_an_estimate_needs_one_sample_only():
    with flow.abstract():
        made = trainer(parallel=models.Parallel(data=2, device="cpu"), batch_size=4096)
    assert made.abstract_batch()[0][0].shape[0] == 4096
    with pytest.raises(TrainError, match="an epoch has one batch at least"):
        trainer(parallel=models.Parallel(data=2, device="cpu"), batch_size=4096)
