"""The adaptive softmax against PyTorch's."""

import numpy as np
import pytest
import torch

import sbpjax as flow
from sbpjax import nn
from tests.support.torch_layers import close, pair


def test_adaptive_softmax():
    ours, theirs = pair("AdaptiveLogSoftmaxWithLoss", (8, 20), {"cutoffs": [4, 10], "div_value": 2.0})
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x, t = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32), np.array([0, 3, 4, 9, 10, 19])
    a, b = ours(flow.tensor(x), flow.tensor(t)), theirs(torch.tensor(x), torch.tensor(t))
    close(a.output, b.output)
    close(a.loss, b.loss)
    a.loss.backward()
    b.loss.backward()
    close(ours.head.weight.grad, theirs.head.weight.grad)
    assert ours.predict(flow.tensor(x)).tolist() == theirs.predict(torch.tensor(x)).tolist()
    with pytest.raises(ValueError, match="cutoffs should be"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [10, 4])
