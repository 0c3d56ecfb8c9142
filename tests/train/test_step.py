"""Options of a step reach the graph, and batches reach the model by place or by name."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.errors import TrainError
from sbpjax.models.llama import Llama, LlamaConfig
from sbpjax.train.step import PredictStep, StepOptions, TrainStep, call, inputs_of, outputs_of
from tests.models.cases import LLAMA
from tests.train.cases import Tower, trainer


def test_options_are_the_graph_s():
    options = StepOptions(amp="bfloat16", accumulate=4, clip=0.5, zero=2, checkpointing=True, schedule="gpipe")
    config = trainer(options=options).train_step.config
    assert config.amp and config.amp_dtype == flow.bfloat16 and config.accumulation_steps == 4
    assert config.clip_grad_norm == (0.5, 2.0) and config.zero_stage == 2 and config.pipeline_schedule == "gpipe"


def test_each_block_is_checkpointed():
    graph = trainer(options=StepOptions(checkpointing=True)).train_step
    assert [bool(block.to(nn.graph.GraphModule).activation_checkpointing) for block in graph.model.blocks] == [True] * 2


@pytest.mark.parametrize(
    ("wrong", "rule"), [({"amp": "int8"}, "bfloat16, float16"), ({"zero": 4}, "stages of ZeRO are 1, 2 and 3")]
)
def test_wrong_options(wrong, rule):
    with pytest.raises(TrainError, match=rule):
        StepOptions(**wrong)


def test_a_model_gets_the_parts_of_a_batch_that_it_takes(compiled_ops):
    model = Tower()
    x = flow.ones(2, 4)
    outputs = outputs_of(model.forward)
    graph = PredictStep(model, outputs, StepOptions())
    expected = model(x).numpy()
    for batch in ([x, x], {"x": x, "y": x}):
        assert (call(graph, batch).numpy() == expected).all()
    assert not call(graph, [x]).requires_grad
    assert inputs_of(model.forward) == {"x"}


@pytest.mark.parametrize("amp", [None, "bfloat16"])
def test_masked_targets_have_the_batchs_loss_however_many_micro_batches(amp):
    rng = np.random.default_rng(0)
    tokens, targets = (flow.tensor(rng.integers(0, 61, (8, 16))) for _ in range(2))
    targets[2:4], targets[4, 3:], targets[6, :10] = -100, -100, -100  # the second micro-batch has no target

    def trained(count):
        flow.manual_seed(0)
        model = Llama(LlamaConfig(**LLAMA))
        optimizer = flow.optim.SGD(model.parameters(), lr=0.5)
        options = StepOptions(accumulate=count, amp=amp)
        step = TrainStep(model, optimizer, None, None, None, options, [])
        losses = [step(tokens, targets).numpy().mean() for _ in range(2)]
        return losses + [p.detach().numpy() for p in model.parameters()]

    for got, want in zip(trained(4), trained(1), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5 if amp is None else 2e-2, atol=2e-6 if amp is None else 2e-3)
