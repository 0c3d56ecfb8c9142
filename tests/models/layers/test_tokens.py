import re

import numpy as np
import pytest

import sbpjax as flow
from sbpjax import models, nn
from sbpjax.models.gpt2 import GPT2, GPT2Config
from sbpjax.models.layers import make_position_ids, normal_weights, token_loss
from sbpjax.models.llama import Llama, LlamaConfig
from tests.models.cases import GPT2_SIZE, LLAMA, Step


def test_positions_lie_where_tokens_do():
    assert make_position_ids(flow.zeros(2, 4)).tolist() == [0, 1, 2, 3]
    place = flow.placement("cpu", [[0, 1], [2, 3]])
    tokens = flow.zeros(2, 4).to_global(place, [flow.sbp.split(0), flow.sbp.broadcast])
    found = make_position_ids(tokens)
    assert found.placement == place and found.sbp == (flow.sbp.broadcast,) * 2 and found.tolist() == [0, 1, 2, 3]


def test_targets_that_do_not_count():
    logits = np.random.default_rng(0).standard_normal((2, 3, 5)).astype("f")
    targets = np.array([[1, -100, 4], [-100, 0, 2]])
    log = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    want = -np.mean([log[b, t, targets[b, t]] for b in range(2) for t in range(3) if targets[b, t] >= 0])
    assert token_loss(flow.tensor(logits), flow.tensor(targets)).item() == pytest.approx(want, rel=1e-5)
    low = token_loss(flow.tensor(logits).bfloat16(), flow.tensor(targets))
    assert low.dtype == flow.float32


def test_fresh_weights():
    flow.manual_seed(0)
    layer = nn.Sequential(nn.Linear(64, 64), nn.Embedding(64, 64), nn.LayerNorm(64)).apply(normal_weights(0.5))
    for weight in (layer[0].weight, layer[1].weight):
        assert weight.std().item() == pytest.approx(0.5, rel=0.05)
    assert layer[0].bias.abs().sum() == 0 and layer[2].weight.tolist() == [1.0] * 64


@pytest.mark.exhaustive  # a minute each
@pytest.mark.parametrize("case", ["llama", "gpt2"])
def test_the_loss_of_a_split_vocabulary_has_no_logits(case):
    """Under a tensor axis no rank has them whole, and none of them is moved."""
    size, count = {"vocab_size": 4096}, 8 * 512 * 4096
    made = {
        "llama": lambda: Llama(LlamaConfig(**LLAMA | size)),
        "gpt2": lambda: GPT2(GPT2Config(**GPT2_SIZE | size | {"n_positions": 512})),
    }
    spec = models.Parallel(tensor=4, device="cpu")
    step = Step(models.parallelize(made[case](), spec))
    tokens = spec.place(np.zeros((8, 512), np.int64))
    step.build_graph(tokens, tokens)
    report = str(step.explain(check=False, level=2))
    assert "linear and cross_entropy are one op: the logits f32[8, 512, 4096] are never whole" in report
    assert "4096, 4096]" not in report and "512, 4096]  " not in report
    assert int(re.search(r"(\d+) B per device", report)[1]) < count * 4 / 30
