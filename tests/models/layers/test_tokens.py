import numpy as np
import pytest

import sbpjax as flow
from sbpjax import nn
from sbpjax.models.layers import normal_weights, positions_of, token_loss


def test_positions_lie_where_tokens_do():
    assert positions_of(flow.zeros(2, 4)).tolist() == [0, 1, 2, 3]
    place = flow.placement("cpu", [[0, 1], [2, 3]])
    tokens = flow.zeros(2, 4).to_global(place, [flow.sbp.split(0), flow.sbp.broadcast])
    found = positions_of(tokens)
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
