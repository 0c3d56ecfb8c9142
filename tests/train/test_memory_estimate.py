"""Counts of products, and the peak they are held against."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models
from sbpjax.auto import PRESETS
from sbpjax.errors import TrainError
from sbpjax.plan import Layout, Step, machine, search, transformer
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


SIZES = {
    "vocab_size": 512,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
}
LENGTH, BATCH = 128, 64


def llama(layout, **options):
    """Return what an estimate reads of the trainer of a small Llama, whose machine is absent."""
    parallel = SimpleNamespace(**vars(models.Parallel(**layout)) | {"device": "h100:8"})
    with flow.abstract():
        model = models.llama.Llama(models.llama.LlamaConfig(**SIZES))
        tokens = flow.zeros(BATCH, LENGTH, dtype=flow.int64)
    made = {"model": model, "parallel": parallel, "options": StepOptions(**options), "batch_size": BATCH}
    return SimpleNamespace(**made, abstract_batch=lambda: ([tokens, tokens], {}))


@pytest.mark.parametrize(
    "layout, options, expected",
    [
        ({"data": 8}, {"zero": 1, "accumulate": 2}, Layout(data=8, zero1=True, micro_batch=4)),
        ({"data": 8}, {"zero": 3}, Layout(fsdp=8, micro_batch=8)),
        ({"data": 2, "fsdp": 4}, {"zero": 3}, Layout(data=2, fsdp=4, micro_batch=8)),
        (
            {"fsdp": 4, "tensor": 2},
            {"zero": 3, "checkpointing": True},
            Layout(fsdp=4, tensor=2, micro_batch=16, recompute="full"),
        ),
        (
            {"data": 4, "pipeline": 2},
            {"zero": 1, "accumulate": 4},
            Layout(data=4, pipeline=2, zero1=True, micro_batch=4),
        ),
    ],
    ids=["zero 1", "zero 3", "data and fsdp", "tensor", "pipeline"],
)
def test_the_time_of_a_transformer_is_that_of_the_cluster_model(layout, options, expected):
    found = sizing.cluster_step(llama(layout, amp="bfloat16", **options))
    step = Step(transformer({"model_type": "llama"} | SIZES), expected, machine("h100:8"), LENGTH, BATCH)
    assert found.layout == expected and found.seconds == step.seconds and found.mfu == step.mfu


def test_the_fastest_layout_has_the_same_time_in_both_commands():
    found = search(transformer(SIZES), machine("h100:8"), LENGTH, BATCH, recompute=["none"]).choice
    layout = {axis: size for axis, size in found.layout.sizes().items() if size > 1}
    options = {"zero": 3 if found.layout.fsdp > 1 else 1, "accumulate": found.micro_batches}
    assert sizing.cluster_step(llama(layout, amp="bfloat16", **options)).seconds == found.seconds


def test_steps_that_the_search_does_not_price_have_none():
    frozen = llama({"data": 8}, amp="bfloat16")
    next(frozen.model.parameters()).requires_grad_(False)
    on_cpu = llama({"data": 8}, amp="bfloat16")
    on_cpu.parallel.device = "cpu"
    for made in (frozen, on_cpu, llama({"data": 8}), llama({"data": 8}, amp="bfloat16", auto=True)):
        assert sizing.cluster_step(made) is None
