"""Checkpointed chains: the values and gradients of the plain chain, with parts of it run again."""

import numpy as np
import pytest

import sbpjax as flow
from sbpjax.utils.checkpoint import checkpoint, checkpoint_sequential


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_values_and_gradients(segments):
    flow.manual_seed(0)
    layers = [flow.nn.Linear(3, 3) for _ in range(4)]
    runs = []

    def count(x):
        runs.append(1)
        return x.tanh()

    chain = [layers[0], count, layers[1], flow.nn.Dropout(0.5), layers[2], count, layers[3]]
    found = []
    for run in (lambda x: _plain(chain, x), lambda x: checkpoint_sequential(chain, segments, x)):
        flow.manual_seed(1)
        x = flow.ones(2, 3, requires_grad=True)
        run(x).square().sum().backward()
        found.append([x.grad.numpy(), *(p.grad.numpy() for layer in layers for p in layer.parameters())])
        for layer in layers:
            layer.zero_grad()
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert len(runs) == 2 + 2 + {1: 0, 2: 1, 3: 1}[segments]
    assert checkpoint(lambda a, b: a + b, flow.ones(1), flow.ones(1)).item() == 2


def _plain(chain, x):
    for part in chain:
        x = part(x)
    return x


def test_a_sequential():
    model = flow.nn.Sequential(flow.nn.Linear(2, 2), flow.nn.ReLU(), flow.nn.Linear(2, 1))
    x = flow.ones(1, 2, requires_grad=True)
    checkpoint_sequential(model, 2, x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
